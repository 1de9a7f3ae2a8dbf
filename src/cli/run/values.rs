//! The values of the options of `foldplane run`.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use crate::agent::{MemoryMax, PlannedPlace, PlannedPort, ReadyBy};
use crate::command::ip_literal;
use crate::events::id::NAME_BYTES_MAX;
use crate::events::{PortName, SocketPath};

/// The longest time that an option takes: a day is beyond any sensible wait, and below any overflow.
const SECONDS_MAX: f64 = 86_400.0;

pub(super) fn port(text: &str) -> Result<PlannedPort, String> {
    let (name, place) = match text.split_once('=') {
        None => (text, PlannedPlace::AnyPort),
        Some((name, path)) if path.starts_with('/') => {
            let path = SocketPath::new(path).map_err(|invalid| invalid.to_string())?;
            (name, PlannedPlace::Path(path.to_string()))
        }
        Some((name, number)) => {
            let number: NonZeroU16 = number.parse().map_err(|_| {
                format!("{number:?} is no port number from 1 to 65535, and no absolute path of a socket")
            })?;
            (name, PlannedPlace::Port(number.get()))
        }
    };
    let name = PortName::new(name).map_err(|invalid| invalid.to_string())?;
    Ok(PlannedPort { name: name.to_string(), place })
}

pub(super) fn ready(text: &str) -> Result<ReadyBy, String> {
    match (text, text.strip_prefix("http:")) {
        ("now", _) => Ok(ReadyBy::Now),
        ("port", _) => Ok(ReadyBy::Listening),
        ("notify", _) => Ok(ReadyBy::Telling),
        (_, Some(path)) if path.starts_with('/') => Ok(ReadyBy::Answering(path.to_owned())),
        (_, Some(_)) => Err("the path starts with '/', as in http:/healthz".to_owned()),
        (_, None) => Err("it is none of now, port, notify, http:PATH".to_owned()),
    }
}

pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is no KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// `512M`, `2G`, or `80%` of the limit of its control group.
pub(super) fn memory(text: &str) -> Result<MemoryMax, String> {
    let Some(percent) = text.strip_suffix('%') else { return size(text).map(MemoryMax::Bytes) };
    let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
    percent
        .map(MemoryMax::PercentOfLimit)
        .ok_or_else(|| "it is no share such as 80%, from 1% to 100%".to_owned())
}

/// Powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().next_back() {
        Some((end, 'K')) => (text.get(..end), 10),
        Some((end, 'M')) => (text.get(..end), 20),
        Some((end, 'G')) => (text.get(..end), 30),
        _ => (Some(text), 0),
    };
    let number = number.and_then(|number| number.parse::<u64>().ok()).filter(|number| *number > 0);
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "it is no size such as 64M or 2G, and no share such as 80%".to_owned())
}

pub(super) fn cpus(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it is no number of processors such as 1.5".to_owned())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("it is no number of seconds from 0 to {SECONDS_MAX}")),
    }
}

/// `21000-21099`: both are included.
pub(super) fn port_range(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse::<NonZeroU16>().ok().map(NonZeroU16::get);
    let ends = text.split_once('-').and_then(|(first, last)| number(first).zip(number(last)));
    match ends {
        Some((first, last)) if first <= last => Ok((first, last)),
        Some((first, last)) => Err(format!("{first}-{last} is empty: give the lower number first")),
        None => Err("it is no range of port numbers such as 21000-21099".to_owned()),
    }
}

/// An address that others can connect to, with or without brackets.
pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    ip_literal("address", text).map_err(|rejection| rejection.message)
}

/// A part of a locality.
pub(super) fn place(text: &str) -> Result<String, String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(format!("give 1 to {NAME_BYTES_MAX} printable bytes")) }
}
