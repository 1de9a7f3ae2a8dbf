//! What a message says about its place among the others, read once when the resource is made.

use prost::Message;

use super::{ResourceName, TypeUrl};

/// Who is sent a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Those that ask for everything, and those that name it.
    Wildcard,
    /// Only those that name it: an API listener is for proxyless clients, and an Envoy's wildcard must not get
    /// it (xds-rules 29).
    Named,
}

/// The links of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Links {
    pub(super) reach: Reach,
    /// The assignment from which a cluster takes its endpoints.
    pub(super) assignment: Option<ResourceName>,
    /// The collection that an endpoint is in: its name up to the last slash, and a star.
    pub(super) collection: Option<ResourceName>,
}

/// Only the fields that are looked at; everything else is skipped while decoding.
#[derive(Clone, PartialEq, Message)]
struct ClusterLinks {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "3")]
    eds: Option<EdsLinks>,
}

#[derive(Clone, PartialEq, Message)]
struct EdsLinks {
    #[prost(string, tag = "2")]
    service_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListenerLinks {
    #[prost(message, optional, tag = "19")]
    api_listener: Option<()>,
}

impl Links {
    /// Reads the links of an encoded message. One that cannot be read has none.
    pub(super) fn of(type_url: TypeUrl, name: &ResourceName, message: &[u8]) -> Self {
        let none = Self { reach: Reach::Wildcard, assignment: None, collection: None };
        match type_url {
            TypeUrl::Cluster => Self { assignment: assignment(message), ..none },
            TypeUrl::LbEndpoint => Self { collection: collection(name), ..none },
            TypeUrl::Listener => Self { reach: listener_reach(message), ..none },
            TypeUrl::ClusterLoadAssignment | TypeUrl::RouteConfiguration => none,
        }
    }
}

fn assignment(message: &[u8]) -> Option<ResourceName> {
    let cluster = ClusterLinks::decode(message).ok()?;
    let service = cluster.eds?.service_name;
    Some(ResourceName::new(if service.is_empty() { &cluster.name } else { &service }))
}

fn collection(name: &ResourceName) -> Option<ResourceName> {
    let (prefix, _) = name.as_str().rsplit_once('/')?;
    Some(ResourceName::new(&format!("{prefix}/*")))
}

fn listener_reach(message: &[u8]) -> Reach {
    match ListenerLinks::decode(message) {
        Ok(ListenerLinks { api_listener: Some(()) }) => Reach::Named,
        Ok(ListenerLinks { api_listener: None }) | Err(_) => Reach::Wildcard,
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::config::cluster::v3::{Cluster, cluster::EdsClusterConfig};
    use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};

    use super::*;

    #[test]
    fn a_cluster_names_the_assignment_of_its_endpoints() {
        let with = |service_name: &str| Cluster {
            name: "web".into(),
            eds_cluster_config: Some(EdsClusterConfig {
                service_name: service_name.into(),
                ..EdsClusterConfig::default()
            }),
            ..Cluster::default()
        };
        let of = |cluster: Cluster| {
            Links::of(TypeUrl::Cluster, &"web".into(), &cluster.encode_to_vec()).assignment
        };
        assert_eq!(of(with("shared")), Some("shared".into()));
        assert_eq!(of(with("")), Some("web".into()));
        assert_eq!(of(Cluster { name: "static".into(), ..Cluster::default() }), None);
    }

    #[test]
    fn an_api_listener_is_only_for_those_that_name_it() {
        let of =
            |listener: Listener| Links::of(TypeUrl::Listener, &"web".into(), &listener.encode_to_vec()).reach;
        assert_eq!(of(Listener::default()), Reach::Wildcard);
        let api_listener = Some(ApiListener::default());
        assert_eq!(of(Listener { api_listener, ..Listener::default() }), Reach::Named);
    }
}
