//! Resources by short labels: `web=1` is a cluster named web with content 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::events::view::{NodeSelector, NodeView};
use crate::events::{Glob, ViewName};
use crate::projection::resources::{Dials, NodeLabels, NodeViews, Resource, Resources, TypeUrl, Version};
use envoy_types::pb::envoy::config::cluster::v3::{Cluster, cluster::EdsClusterConfig};
use envoy_types::pb::envoy::config::core::v3::Locality;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use prost::Message;

use super::Problem;

/// What the server has, and what every version that it ever had stands for.
#[derive(Clone, Debug, Default)]
pub struct Stock {
    /// What it has now.
    pub resources: Arc<Resources>,
    labels: BTreeMap<(String, Version), String>,
}

impl Stock {
    /// Applies edits as one event: `cds web=1 eds web=a -old`. A cluster `c=1>shared` takes the assignment `shared`; a
    /// listener `l=api` is an API listener.
    ///
    /// # Errors
    ///
    /// [`Problem::NoContent`] where a word is neither a type, nor `name=content`, nor `-name`.
    pub fn change(&mut self, edits: &str) -> Result<(), Problem> {
        let offset = self.resources.offset().next();
        let mut builder = self.resources.builder(offset);
        let mut type_url = TypeUrl::Cluster;
        for word in edits.split_whitespace() {
            if let Some(named) = type_named(word) {
                type_url = named;
            } else if let Some(name) = word.strip_prefix('-') {
                builder.of(type_url).remove(&name.into(), offset);
            } else {
                let no_content = || Problem::NoContent(word.to_owned());
                let (name, content) = word.split_once('=').ok_or_else(no_content)?;
                let resource = Resource::new(type_url, name.into(), offset, &encode(type_url, name, content));
                self.labels.insert((name.to_owned(), resource.version), content.to_owned());
                // A fold keeps the resource whose bytes did not change, and with it its version (xds-rules 2).
                let held = builder.of(type_url).get(name).map(|held| held.version.digest);
                if held != Some(resource.version.digest) {
                    builder.of(type_url).insert(resource);
                }
            }
        }
        self.resources = Arc::new(builder.build());
        Ok(())
    }

    /// As one event: the client sees only what is like these from now on, or everything.
    ///
    /// # Errors
    ///
    /// [`Problem::NoGlob`].
    pub fn view(&mut self, globs: &str) -> Result<(), Problem> {
        let glob = |text: &str| {
            text.parse::<Glob>()
                .map_err(|fault| Problem::NoGlob { text: text.to_owned(), fault: fault.to_string() })
        };
        let nodes = NodeSelector { ids: vec![glob("*")?], ..NodeSelector::default() };
        let services: Vec<_> = globs.split_whitespace().map(glob).collect::<Result<_, _>>()?;
        let name = ViewName::new("v").expect("a letter is a name");
        let some = (!services.is_empty()).then(|| (name, Arc::new(NodeView { nodes, services })));
        let offset = self.resources.offset().next();
        let mut builder = self.resources.builder(offset);
        builder.set_views(NodeViews::new(offset, some.into_iter().collect()));
        self.resources = Arc::new(builder.build());
        Ok(())
    }

    /// What the client sees.
    #[must_use]
    pub fn shown(&self) -> Arc<Resources> {
        let labels =
            NodeLabels { id: "", cluster: "", metadata: &serde_json::Value::Null, dials: Dials::Everything };
        Arc::clone(self.resources.views().scope(labels).show(&self.resources).resources())
    }

    /// A resource as people read it: `web=1`, and `web=∅` for an assignment that is empty.
    #[must_use]
    pub fn label(&self, resource: &Resource) -> String {
        let key = (resource.name.to_string(), resource.version);
        format!("{}={}", resource.name, self.labels.get(&key).map_or("∅", String::as_str))
    }

    pub(super) fn version(&self, type_url: TypeUrl, name: &str) -> String {
        self.resources
            .of(type_url)
            .get(name)
            .map_or_else(|| "1-gone".into(), |found| found.version.to_string())
    }
}

pub(super) fn type_named(word: &str) -> Option<TypeUrl> {
    TypeUrl::ALL.into_iter().find(|type_url| type_url.short().eq_ignore_ascii_case(word))
}

fn encode(type_url: TypeUrl, name: &str, content: &str) -> Vec<u8> {
    let name = name.to_owned();
    match type_url {
        TypeUrl::Cluster => {
            let (label, service) = content.split_once('>').unwrap_or((content, ""));
            let eds = EdsClusterConfig { service_name: service.into(), ..EdsClusterConfig::default() };
            let eds_cluster_config = Some(eds);
            Cluster { name, alt_stat_name: label.into(), eds_cluster_config, ..Cluster::default() }
                .encode_to_vec()
        }
        TypeUrl::ClusterLoadAssignment => {
            let locality = Some(Locality { zone: content.into(), ..Locality::default() });
            let endpoints = vec![LocalityLbEndpoints { locality, ..LocalityLbEndpoints::default() }];
            ClusterLoadAssignment { cluster_name: name, endpoints, ..ClusterLoadAssignment::default() }
                .encode_to_vec()
        }
        TypeUrl::LbEndpoint => {
            let endpoint = Endpoint { hostname: content.into(), ..Endpoint::default() };
            let host_identifier = Some(HostIdentifier::Endpoint(endpoint));
            LbEndpoint { host_identifier, ..LbEndpoint::default() }.encode_to_vec()
        }
        TypeUrl::Listener => {
            let api_listener = (content == "api").then(ApiListener::default);
            Listener { name, stat_prefix: content.into(), api_listener, ..Listener::default() }
                .encode_to_vec()
        }
        TypeUrl::RouteConfiguration => RouteConfiguration {
            name,
            internal_only_headers: vec![content.into()],
            ..RouteConfiguration::default()
        }
        .encode_to_vec(),
    }
}
