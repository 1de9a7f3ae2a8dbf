//! A log that can be shown to strangers: every name, address, label and sentence in it is replaced, each always by the
//! same, so that what happened stays what it was.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde_json::Value;

use crate::events::Envelope;

/// Fields whose texts are words of our own, or made by us: they tell nothing of anybody. All other texts are replaced,
/// those of events that are new too.
const OUR_WORDS: [&str; 15] = [
    "actor",
    "readiness",
    "cause",
    "Disconnected",
    "source",
    "verdict",
    "type_url",
    "version",
    "lb",
    "protocol",
    "locality_weighting",
    "degraded",
    "unready",
    "delivery",
    "kind",
];

/// Fields whose keys are data.
const LABELS: &str = "metadata";

/// The path of a socket, which stays one.
const SOCKET: &str = "Unix";

/// What an operator applied: its bytes are left out, whoever wrote them.
const RESOURCE: &str = "ResourceApplied";

/// Expressions of somebody's own, which name what they are about: none is left, so that nothing is decided by them.
const RULES: &str = "policy";

/// The replacements so far. One serves a whole log.
#[derive(Debug, Default)]
pub struct Scrubber {
    texts: BTreeMap<String, String>,
    addresses: BTreeMap<IpAddr, IpAddr>,
}

impl Scrubber {
    /// The event with everything replaced that could tell whose it was. Times, numbers and the order stay.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] when the result is no event, because a new kind has words of our own that are not known here.
    pub fn scrub(&mut self, envelope: &Envelope) -> Result<Envelope, serde_json::Error> {
        let mut value = serde_json::to_value(envelope)?;
        self.walk("", &mut value);
        serde_json::from_value(value)
    }

    fn walk(&mut self, field: &str, value: &mut Value) {
        match value {
            Value::String(_) if OUR_WORDS.contains(&field) => {}
            Value::String(text) => *text = self.replace(field, text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.walk(field, value)),
            Value::Object(fields) if field == LABELS => {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(label, mut value)| {
                        self.walk("value", &mut value);
                        (self.replace("label", &label), value)
                    })
                    .collect();
            }
            Value::Object(fields) if field == RULES => {
                fields.values_mut().for_each(|rule| *rule = Value::Null);
            }
            Value::Object(fields) if field == RESOURCE => {
                fields.insert("message".to_owned(), Value::String(String::new()));
                fields.values_mut().for_each(|value| self.walk("resource", value));
            }
            Value::Object(fields) => fields.iter_mut().for_each(|(field, value)| self.walk(field, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn replace(&mut self, field: &str, text: &str) -> String {
        if text.is_empty() || text == "*" {
            return text.to_owned();
        }
        if let Ok(address) = text.parse() {
            return self.address(address).to_string();
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return SocketAddr::new(self.address(socket.ip()), socket.port()).to_string();
        }
        // The cluster of a service's other ports is called `service:port`.
        if field == "names" {
            let parts: Vec<String> = text.split(':').map(|part| self.text("service", part)).collect();
            return parts.join(":");
        }
        if field == SOCKET {
            return format!("/{}", self.text(field, text));
        }
        self.text(field, text)
    }

    fn text(&mut self, field: &str, text: &str) -> String {
        let number = self.texts.len() + 1;
        let new = || format!("{}-{number}", field.to_ascii_lowercase().replace('_', "-"));
        self.texts.entry(text.to_owned()).or_insert_with(new).clone()
    }

    /// From the ranges for private use; the address of the machine itself says nothing and stays.
    fn address(&mut self, address: IpAddr) -> IpAddr {
        if address.is_loopback() {
            return address;
        }
        let number = u32::try_from(self.addresses.len() + 1).unwrap_or(u32::MAX);
        let new = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() | number)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits((0xfd00 << 112) | u128::from(number))),
        };
        *self.addresses.entry(address).or_insert(new)
    }
}
