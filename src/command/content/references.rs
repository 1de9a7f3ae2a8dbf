//! Which other resources a resource names.

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::ConfigSource;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::listener::v3::{Listener, filter};
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::{RouteAction, RouteConfiguration, route_action};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::{TcpProxy, tcp_proxy};
use envoy_types::pb::google::protobuf::Any;
use prost::{Message, Name};

use super::super::check::quoted;
use super::{ResourceKey, ResourceKind, refused};
use crate::command::Rejection;

/// Another resource that is named somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct Reference {
    /// The path of the field that names it.
    pub(in crate::command) place: String,
    /// What is named.
    pub(in crate::command) to: ResourceKey,
}

type References = Result<Vec<Reference>, Rejection>;

/// An EDS cluster names its endpoints.
pub(super) fn of_eds_cluster(key: &ResourceKey, cluster: &Cluster) -> References {
    let Some(eds) = &cluster.eds_cluster_config else {
        let hint = "give eds_cluster_config: { eds_config: { ads: {} } }";
        return Err(refused(key, "eds_cluster_config", "an EDS cluster needs it", hint));
    };
    if !is_ours(eds.eds_config.as_ref()) {
        return Ok(Vec::new());
    }
    let name = if eds.service_name.is_empty() { &cluster.name } else { &eds.service_name };
    Ok(vec![reference("eds_cluster_config.service_name", ResourceKind::ClusterLoadAssignment, name)])
}

/// Routes name clusters.
pub(super) fn of_route(key: &ResourceKey, place: &str, route: &RouteConfiguration) -> References {
    let mut found = Vec::new();
    let mut domains = std::collections::BTreeSet::new();
    for (number, host) in route.virtual_hosts.iter().enumerate() {
        let place = format!("{place}virtual_hosts[{number}]");
        if host.domains.is_empty() {
            let hint = "give domains, such as [\"*\"]";
            return Err(refused(key, &format!("{place}.domains"), "it matches nothing", hint));
        }
        if let Some(twice) = host.domains.iter().find(|domain| !domains.insert(domain.to_ascii_lowercase())) {
            let problem = format!("{} is a domain of two virtual hosts", quoted(twice));
            return Err(refused(key, &format!("{place}.domains"), &problem, "name each domain once"));
        }
        for (number, route) in host.routes.iter().enumerate() {
            if let Some(Action::Route(action)) = &route.action {
                found.extend(of_action(&format!("{place}.routes[{number}].route"), action));
            }
        }
    }
    Ok(found)
}

fn of_action(place: &str, action: &RouteAction) -> Vec<Reference> {
    let cluster = |place: String, name: &str| reference(&place, ResourceKind::Cluster, name);
    let mut found = match &action.cluster_specifier {
        Some(route_action::ClusterSpecifier::Cluster(name)) => {
            vec![cluster(format!("{place}.cluster"), name)]
        }
        Some(route_action::ClusterSpecifier::WeightedClusters(weighted)) => {
            let named = weighted.clusters.iter().enumerate().filter(|(_, of)| !of.name.is_empty());
            let place = |number| format!("{place}.weighted_clusters.clusters[{number}].name");
            named.map(|(number, of)| cluster(place(number), &of.name)).collect()
        }
        Some(
            route_action::ClusterSpecifier::ClusterHeader(_)
            | route_action::ClusterSpecifier::ClusterSpecifierPlugin(_)
            | route_action::ClusterSpecifier::InlineClusterSpecifierPlugin(_),
        )
        | None => Vec::new(),
    };
    let mirrors = action.request_mirror_policies.iter().enumerate();
    found.extend(mirrors.filter(|(_, mirror)| !mirror.cluster.is_empty()).map(|(number, mirror)| {
        cluster(format!("{place}.request_mirror_policies[{number}].cluster"), &mirror.cluster)
    }));
    found
}

/// Listeners name routes and clusters in their filters.
pub(super) fn of_listener(key: &ResourceKey, listener: &Listener) -> References {
    let api = listener.api_listener.as_ref().and_then(|api| api.api_listener.as_ref());
    if listener.address.is_none() && api.is_none() {
        let hint = "give an address, or an api_listener for proxyless clients";
        return Err(refused(key, "address", "nobody can reach it", hint));
    }
    let mut found = Vec::new();
    if let Some(manager) = api {
        found.extend(of_filter(key, "api_listener.api_listener", manager)?);
    }
    let chains = listener.filter_chains.iter().enumerate();
    let chains = chains.map(|(number, chain)| (format!("filter_chains[{number}]"), chain));
    let default =
        listener.default_filter_chain.iter().map(|chain| ("default_filter_chain".to_owned(), chain));
    for (place, chain) in chains.chain(default) {
        for (number, filter) in chain.filters.iter().enumerate() {
            if let Some(filter::ConfigType::TypedConfig(config)) = &filter.config_type {
                let place = format!("{place}.filters[{number}].typed_config");
                found.extend(of_filter(key, &place, config)?);
            }
        }
    }
    Ok(found)
}

fn of_filter(key: &ResourceKey, place: &str, config: &Any) -> References {
    if config.type_url == HttpConnectionManager::type_url() {
        return of_manager(key, place, &decode(key, place, config)?);
    }
    if config.type_url == TcpProxy::type_url() {
        return Ok(of_tcp_proxy(place, &decode(key, place, config)?));
    }
    Ok(Vec::new())
}

fn of_manager(key: &ResourceKey, place: &str, manager: &HttpConnectionManager) -> References {
    match &manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) if is_ours(rds.config_source.as_ref()) => Ok(vec![reference(
            &format!("{place}.rds.route_config_name"),
            ResourceKind::RouteConfiguration,
            &rds.route_config_name,
        )]),
        Some(RouteSpecifier::RouteConfig(route)) => of_route(key, &format!("{place}.route_config."), route),
        Some(RouteSpecifier::Rds(_) | RouteSpecifier::ScopedRoutes(_)) => Ok(Vec::new()),
        None => Err(refused(key, place, "nothing says where requests go", "give rds or route_config")),
    }
}

fn of_tcp_proxy(place: &str, proxy: &TcpProxy) -> Vec<Reference> {
    let cluster = |place: String, name: &str| reference(&place, ResourceKind::Cluster, name);
    match &proxy.cluster_specifier {
        Some(tcp_proxy::ClusterSpecifier::Cluster(name)) => vec![cluster(format!("{place}.cluster"), name)],
        Some(tcp_proxy::ClusterSpecifier::WeightedClusters(weighted)) => {
            let place = |number| format!("{place}.weighted_clusters.clusters[{number}].name");
            let clusters = weighted.clusters.iter().enumerate();
            clusters.map(|(number, of)| cluster(place(number), &of.name)).collect()
        }
        None => Vec::new(),
    }
}

/// Whether what is named comes from here: only that can be looked up.
fn is_ours(source: Option<&ConfigSource>) -> bool {
    matches!(
        source.and_then(|source| source.config_source_specifier.as_ref()),
        Some(ConfigSourceSpecifier::Ads(_) | ConfigSourceSpecifier::Self_(_))
    )
}

fn reference(place: &str, kind: ResourceKind, name: &str) -> Reference {
    Reference { place: place.to_owned(), to: ResourceKey { kind, name: name.to_owned() } }
}

fn decode<M: Message + Default>(key: &ResourceKey, place: &str, config: &Any) -> Result<M, Rejection> {
    M::decode(config.value.as_slice()).map_err(|fault| {
        refused(
            key,
            place,
            &fault.to_string(),
            "give the encoded message of the type that its type_url names",
        )
    })
}
