//! What `foldplane run` says of its host.

use std::fs;
use std::net::IpAddr;

use clap::Args;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use super::values::{address, place, port_range};
use crate::agent::Lends;
use crate::cli::{Failure, out};

/// The host whose ports the program takes. Agents of one host should say the same of it: the last one holds.
#[derive(Debug, Args)]
pub(super) struct Lending {
    /// Where the workers of this host are reached; the first is used for ports that name none [default: 127.0.0.1]
    ///
    /// More can be given, such as one of each family.
    #[arg(help_heading = "Host", long, value_name = "IP", env = "FOLDPLANE_HOST_ADDRESS", value_parser = address, value_delimiter = ',')]
    host_address: Vec<IpAddr>,
    /// The network interface on whose addresses they are reached: IPv4 first, then IPv6; no link-local ones
    #[arg(
        help_heading = "Host",
        long,
        value_name = "NAME",
        env = "FOLDPLANE_INTERFACE",
        conflicts_with = "host_address"
    )]
    interface: Option<String>,
    /// The ports that this host hands out, both ends included [default: 20000-32000]
    #[arg(help_heading = "Host", long, value_name = "FIRST-LAST", env = "FOLDPLANE_PORT_RANGE", value_parser = port_range)]
    port_range: Option<(u16, u16)>,
    /// Where this host stands, such as eu-central
    #[arg(help_heading = "Host", long, value_name = "NAME", env = "FOLDPLANE_REGION", value_parser = place)]
    region: Option<String>,
    /// Finer, such as eu-central-1a
    #[arg(help_heading = "Host", long, value_name = "NAME", env = "FOLDPLANE_ZONE", value_parser = place)]
    zone: Option<String>,
    /// Finer still, such as a rack
    #[arg(help_heading = "Host", long, value_name = "NAME", env = "FOLDPLANE_SUB_ZONE", value_parser = place)]
    sub_zone: Option<String>,
}

impl Lending {
    /// What is to be said, if anything.
    pub(super) fn lends(self) -> Result<Option<Lends>, Failure> {
        let Self { host_address, interface, port_range, region, zone, sub_zone } = self;
        let locality = [region, zone, sub_zone];
        let is_known = !host_address.is_empty()
            || interface.is_some()
            || port_range.is_some()
            || locality.iter().any(Option::is_some);
        if !is_known {
            return Ok(None);
        }
        if let Some(range) = port_range {
            warn_of_overlap(range);
        }
        let mut addresses = match &interface {
            Some(name) => addresses_of(name)?,
            None => host_address,
        };
        if addresses.is_empty() {
            addresses.push(IpAddr::from([127, 0, 0, 1]));
        }
        Ok(Some(Lends { addresses, ports: port_range, locality: locality.map(Option::unwrap_or_default) }))
    }
}

/// The addresses of an interface at which others can reach it: IPv4 before IPv6, in the kernel's order.
fn addresses_of(interface: &str) -> Result<Vec<IpAddr>, Failure> {
    let all = getifaddrs()
        .map_err(|fault| Failure::fault("cannot read this machine's interfaces").because(fault))?;
    let all: Vec<_> = all.collect();
    let own = || all.iter().filter(|one| one.interface_name == interface);
    if own().next().is_none() {
        let mut names: Vec<&str> = all.iter().map(|one| one.interface_name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Failure::usage(format!("there is no interface {interface:?}"))
            .hint(format!("one of {}", names.join(", "))));
    }
    let up = own().filter(|one| one.flags.contains(InterfaceFlags::IFF_UP));
    let mut addresses: Vec<IpAddr> =
        up.filter_map(|one| ip(one.address.as_ref()?)).filter(|ip| !is_link_local(*ip)).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    if addresses.is_empty() {
        return Err(Failure::usage(format!(
            "the interface {interface:?} has no address that others can reach"
        ))
        .hint("bring it up, or give --host-address"));
    }
    Ok(addresses)
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// Such an address means something only together with an interface, which others do not have.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Ports that the kernel uses for outgoing connections are taken now and then (hashicorp/nomad#4285, hashicorp/nomad#2500).
fn warn_of_overlap((first, last): (u16, u16)) {
    const KERNELS: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    let text = fs::read_to_string(KERNELS).unwrap_or_default();
    let mut ends = text.split_ascii_whitespace().filter_map(|end| end.parse::<u16>().ok());
    let (Some(low), Some(high)) = (ends.next(), ends.next()) else { return };
    if first <= high && low <= last {
        out::note(&format!(
            "foldplane: ports {first}-{last} overlap with {low}-{high}, which the kernel uses for outgoing connections \
             ({KERNELS}): now and then one of them is taken"
        ));
    }
}
