//! What enters is checked here, so that nothing that a client would refuse can reach a response (xds-rules 25).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

use super::{Listen, Rejection};
use crate::events::SocketPath;
use crate::events::event::{HostReport, Lease, Locality, PortRange};
use crate::events::id::NAME_BYTES_MAX;
use crate::projection::ClusterName;

/// The most addresses of one host: every interface of a large machine in both families.
const HOST_ADDRESSES_MAX: usize = 64;

/// The most labels of one worker, so that a registration stays far below the limit of a message and of an event.
const LABELS_MAX: usize = 64;

/// The longest value of a label, in bytes: the same reason.
const LABEL_BYTES_MAX: usize = 1024;

/// The shortest time to live, in milliseconds: below it a slow request would end a lease.
const TTL_MS_MIN: u32 = 1000;

/// The longest time to live, in milliseconds: a day. What lives longer unseen is not a lease.
const TTL_MS_MAX: u32 = 86_400_000;

/// The longest reason that is kept, in bytes: a paragraph.
const REASON_BYTES_MAX: usize = 512;

/// An IP address, with or without brackets around IPv6.
///
/// # Errors
///
/// A rejection that names `field` when the text is a host name, or an address that nobody can connect to.
pub fn ip_literal(field: &str, text: &str) -> Result<IpAddr, Rejection> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address: IpAddr = inner.parse().map_err(|_| {
        Rejection::invalid(
            format!("{field}: {} is not an IP address", quoted(text)),
            "EDS takes IP addresses only: give an IPv4 or IPv6 literal, not a host name",
        )
    })?;
    // One address has one spelling: ::ffff:192.0.2.1 is 192.0.2.1.
    let address = address.to_canonical();
    if address.is_unspecified() || address.is_multicast() {
        return Err(Rejection::invalid(
            format!("{field}: nobody can connect to {address}"),
            "give the address at which clients reach the worker",
        ));
    }
    Ok(address)
}

/// A port number from 1 to 65535.
///
/// # Errors
///
/// A rejection that names `field`.
pub fn port_number(field: &str, number: u32) -> Result<NonZeroU16, Rejection> {
    u16::try_from(number).ok().and_then(NonZeroU16::new).ok_or_else(|| {
        Rejection::invalid(
            format!("{field}: {number} is not a port"),
            "give a number from 1 to 65535, or none to let the control plane choose",
        )
    })
}

/// Where a worker wants to listen: on a port, or at the path of a Unix domain socket.
///
/// # Errors
///
/// A rejection that names the field.
pub fn listen(number: Option<u32>, address: Option<&str>, path: Option<&str>) -> Result<Listen, Rejection> {
    let Some(path) = path else {
        return Ok(Listen::Port {
            number: number.map(|number| port_number("number", number)).transpose()?,
            address: address.map(|text| ip_literal("address", text)).transpose()?,
        });
    };
    if number.is_some() || address.is_some() {
        return Err(Rejection::invalid(
            format!("path: {} is given beside a number or an address", quoted(path)),
            "give the path of a Unix domain socket alone",
        ));
    }
    let path = SocketPath::new(path).map_err(|invalid| {
        let hint = "give an absolute path, such as /run/web.sock";
        Rejection::invalid(format!("path: {}: {invalid}", quoted(path)), hint)
    })?;
    Ok(Listen::Path(path))
}

/// A weight from 1 to 4294967295.
///
/// # Errors
///
/// A rejection that names `field`: clients refuse a weight of 0 (grpc/grpc-go#5560).
pub fn weight(field: &str, weight: u32) -> Result<NonZeroU32, Rejection> {
    NonZeroU32::new(weight).ok_or_else(|| {
        Rejection::invalid(
            format!("{field}: a weight of 0 is refused by clients"),
            "give 1 to 4294967295, or none; to take a worker out of rotation report it unready",
        )
    })
}

/// A range of ports that a host lends; 0 and 0 are the default.
///
/// # Errors
///
/// A rejection when it is empty or starts at 0.
pub fn port_range(first: u32, last: u32) -> Result<PortRange, Rejection> {
    if (first, last) == (0, 0) {
        return Ok(PortRange::default());
    }
    let first = port_number("port_first", first)?.get();
    let last = port_number("port_last", last)?.get();
    if first > last {
        return Err(Rejection::invalid(
            format!("the port range {first}-{last} is empty"),
            "give the lower number first",
        ));
    }
    Ok(PortRange { first, last })
}

/// Refuses a host report that could not be used.
pub(super) fn host_report(report: &HostReport) -> Result<(), Rejection> {
    if report.addresses.is_empty() || report.addresses.len() > HOST_ADDRESSES_MAX {
        return Err(Rejection::invalid(
            format!("a host has 1 to {HOST_ADDRESSES_MAX} addresses, not {}", report.addresses.len()),
            "report the addresses at which its workers are reached",
        ));
    }
    port_range(report.port_range.first.into(), report.port_range.last.into())?;
    locality(&report.locality)
}

/// Refuses a lease that would end before it could be renewed, or never.
pub(super) fn lease(lease: Lease) -> Result<(), Rejection> {
    match lease {
        Lease::Ttl { ttl_ms } if !(TTL_MS_MIN..=TTL_MS_MAX).contains(&ttl_ms) => Err(Rejection::invalid(
            format!("a time to live of {ttl_ms} ms is not between {TTL_MS_MIN} and {TTL_MS_MAX} ms"),
            "give 1 second to 1 day, and renew three times as often",
        )),
        Lease::Ttl { .. } | Lease::Session { .. } => Ok(()),
    }
}

/// Refuses a locality whose parts could poison a response.
pub(super) fn locality(locality: &Locality) -> Result<(), Rejection> {
    let Locality { region, zone, sub_zone } = locality;
    [("region", region), ("zone", zone), ("sub_zone", sub_zone)]
        .into_iter()
        .try_for_each(|(field, value)| text(field, value, NAME_BYTES_MAX))
}

/// Refuses labels that are too many, too long, or unprintable.
pub(super) fn metadata(labels: &BTreeMap<String, String>) -> Result<(), Rejection> {
    if labels.len() > LABELS_MAX {
        return Err(Rejection::invalid(
            format!("{} labels are given, at most {LABELS_MAX} are allowed", labels.len()),
            "keep labels for what policies and people need",
        ));
    }
    labels.iter().try_for_each(|(key, value)| {
        text("metadata key", key, NAME_BYTES_MAX)?;
        text(&format!("metadata {}", quoted(key)), value, LABEL_BYTES_MAX)
    })
}

/// Refuses a cluster whose name no client would take.
pub(super) fn cluster_name(name: &ClusterName) -> Result<(), Rejection> {
    let length = name.as_str().len();
    if length <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(Rejection::invalid(
        format!(
            "the cluster name {} would have {length} bytes, at most {NAME_BYTES_MAX} are allowed",
            quoted(name.as_str())
        ),
        "shorten the service name or the port name",
    ))
}

/// Refuses text that is too long or unprintable.
pub(super) fn text(field: &str, value: &str, bytes_max: usize) -> Result<(), Rejection> {
    if value.len() > bytes_max {
        return Err(Rejection::invalid(
            format!("{field} has {} bytes, at most {bytes_max} are allowed", value.len()),
            "shorten it",
        ));
    }
    match value.chars().find(|character| character.is_control()) {
        None => Ok(()),
        Some(bad) => Err(Rejection::invalid(
            format!("{field} holds the control character {bad:?}"),
            "use printable text",
        )),
    }
}

/// A reason as it is kept: printable, and not longer than a paragraph.
pub(super) fn shortened(reason: &str) -> String {
    let printable = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept = String::new();
    for character in printable {
        if kept.len() + character.len_utf8() > REASON_BYTES_MAX {
            break;
        }
        kept.push(character);
    }
    kept
}

/// Text as a message may show it: quoted, escaped, never longer than a line.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let shown: String = text.escape_debug().take(SHOWN_CHARS_MAX).collect();
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: Result<T, Rejection>, reason: &str) {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }

    // xds-rules 25; F21: envoyproxy/gateway#2832, kumahq/kuma#17839, kubermatic/kubelb#438
    #[test]
    fn a_host_name_never_reaches_eds() {
        refused(ip_literal("address", "db.example"), "address: \"db.example\" is not an IP address");
        refused(ip_literal("address", "localhost"), "is not an IP address");
        refused(ip_literal("address", "192.0.2.512"), "is not an IP address");
        refused(ip_literal("address", "0.0.0.0"), "nobody can connect to 0.0.0.0");
    }

    // F18: grpc/grpc-go#5710, l7mp/stunner#231
    #[test]
    fn one_address_has_one_spelling() {
        let plain = ip_literal("address", "2001:db8::1").unwrap();
        assert_eq!(ip_literal("address", "[2001:db8::1]").unwrap(), plain);
        assert_eq!(ip_literal("address", "2001:0db8:0:0::1").unwrap(), plain);
        assert_eq!(ip_literal("a", "::ffff:192.0.2.1").unwrap(), ip_literal("a", "192.0.2.1").unwrap());
    }

    // xds-rules 25; F19: grpc/grpc-go#5560, grpc/grpc-go#5568
    #[test]
    fn numbers_that_clients_refuse_are_refused_here() {
        refused(port_number("number", 0), "number: 0 is not a port");
        refused(port_number("number", 65_536), "65536 is not a port");
        refused(weight("weight", 0), "weight of 0");
        assert_eq!(weight("weight", u32::MAX).unwrap().get(), u32::MAX);
        refused(port_range(30, 20), "30-20 is empty");
    }
}
