//! Endpoints that clients accept (xds-rules 25).

use std::collections::BTreeSet;
use std::net::IpAddr;

use envoy_types::pb::envoy::config::core::v3::SocketAddress;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};

use super::super::check::quoted;
use super::{ResourceKey, refused};
use crate::command::Rejection;
use crate::events::SOCKET_PATH_BYTES_MAX;

/// What an endpoint's address may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    /// IP addresses only.
    Addresses,
    /// Host names too: the client resolves them.
    Names,
}

/// Refuses endpoints that a client would refuse, and with them the whole assignment.
pub(super) fn check(
    key: &ResourceKey,
    place: &str,
    assignment: &ClusterLoadAssignment,
    hosts: Hosts,
) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for (group, locality) in assignment.endpoints.iter().enumerate() {
        let place = format!("{place}[{group}]");
        if locality.load_balancing_weight.is_some_and(|weight| weight.value == 0) {
            return Err(zero(key, &format!("{place}.load_balancing_weight")));
        }
        for (index, endpoint) in locality.lb_endpoints.iter().enumerate() {
            let place = format!("{place}.lb_endpoints[{index}]");
            if endpoint.load_balancing_weight.is_some_and(|weight| weight.value == 0) {
                return Err(zero(key, &format!("{place}.load_balancing_weight")));
            }
            let place_of = |kind: &str| format!("{place}.endpoint.address.{kind}");
            let whole = match address(endpoint) {
                Some(Address::SocketAddress(socket)) => {
                    socket_address(key, &place_of("socket_address"), socket, hosts)?
                }
                Some(Address::Pipe(pipe)) => (pipe_path(key, &place_of("pipe.path"), &pipe.path)?, 0),
                Some(Address::EnvoyInternalAddress(_)) | None => continue,
            };
            if !seen.insert(whole) {
                return Err(refused(key, &place, "its address is listed twice", "list each endpoint once"));
            }
        }
    }
    priorities(key, place, assignment)
}

/// gRPC refuses an assignment whose priorities have a hole.
fn priorities(key: &ResourceKey, place: &str, assignment: &ClusterLoadAssignment) -> Result<(), Rejection> {
    let used: BTreeSet<u32> = assignment.endpoints.iter().map(|locality| locality.priority).collect();
    match (0..).zip(&used).find(|(expected, used)| expected != *used) {
        None => Ok(()),
        Some((missing, used)) => Err(refused(
            key,
            place,
            &format!("there is a priority {used} and no priority {missing}"),
            "count priorities from 0 without holes",
        )),
    }
}

/// Where the endpoint listens.
fn address(endpoint: &LbEndpoint) -> Option<&Address> {
    match endpoint.host_identifier.as_ref()? {
        HostIdentifier::Endpoint(endpoint) => endpoint.address.as_ref()?.address.as_ref(),
        HostIdentifier::EndpointName(_) => None,
    }
}

/// A path, or with `@` a name in Linux's abstract namespace. Envoy refuses a longer one, and with it the whole response.
fn pipe_path(key: &ResourceKey, place: &str, path: &str) -> Result<String, Rejection> {
    if path.is_empty() || path.len() > SOCKET_PATH_BYTES_MAX {
        let problem =
            format!("a socket's path has 1 to {SOCKET_PATH_BYTES_MAX} bytes, this one {}", path.len());
        return Err(refused(key, place, &problem, "give the path at which the endpoint listens"));
    }
    Ok(path.to_owned())
}

fn socket_address(
    key: &ResourceKey,
    place: &str,
    socket: &SocketAddress,
    hosts: Hosts,
) -> Result<(String, u32), Rejection> {
    let named_resolver = !socket.resolver_name.is_empty();
    if hosts == Hosts::Addresses && !named_resolver && socket.address.parse::<IpAddr>().is_err() {
        return Err(refused(
            key,
            &format!("{place}.address"),
            &format!("{} is not an IP address", quoted(&socket.address)),
            "give an IPv4 or IPv6 literal without brackets, or make it a cluster of type STRICT_DNS",
        ));
    }
    let port = match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => port,
        Some(PortSpecifier::NamedPort(_)) => return Ok((socket.address.clone(), 0)),
        None => 0,
    };
    if !(1..=65_535).contains(&port) {
        let problem = format!("{port} is not a port");
        return Err(refused(key, &format!("{place}.port_value"), &problem, "give a number from 1 to 65535"));
    }
    Ok((socket.address.clone(), port))
}

fn zero(key: &ResourceKey, place: &str) -> Rejection {
    refused(key, place, "a weight of 0 is refused by clients", "give 1 or more, or leave the endpoint out")
}
