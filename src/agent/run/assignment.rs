//! What the control plane gave the worker, and how the child sees it.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::proto;

use super::Plan;

/// What the control plane gave the worker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) worker: proto::WorkerRef,
    pub(super) ports: Vec<AssignedPort>,
}

/// Where the child is to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AssignedPort {
    pub(super) name: String,
    pub(super) place: Place,
}

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Ip(SocketAddr),
    Path(PathBuf),
}

/// An answer that no control plane of ours gives.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control plane gave port {name:?} the unusable address {address:?} and number {number:?}")]
pub(super) struct UnusablePort {
    name: String,
    address: String,
    number: Option<u32>,
}

impl Place {
    /// What the child is told of it: the number of a port, or the path.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Ip(address) => address.port().to_string(),
            Self::Path(path) => path.display().to_string(),
        }
    }
}

impl fmt::Display for Place {
    /// `127.0.0.1:20001`, `unix:/run/web.sock`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Path(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Assignment {
    pub(super) fn new(worker: &proto::WorkerRef, ports: &[proto::Port]) -> Result<Self, UnusablePort> {
        let ports = ports.iter().map(AssignedPort::new).collect::<Result<_, _>>()?;
        Ok(Self { worker: worker.clone(), ports })
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.ports.iter().map(|port| port.place.clone()).collect()
    }

    /// Where the worker serves first of all.
    pub(super) fn first(&self) -> Option<&Place> {
        self.ports.first().map(|port| &port.place)
    }

    /// What the child finds in its environment.
    pub(super) fn environment(&self, plan: &Plan) -> Vec<(String, OsString)> {
        let mut variables: Vec<(String, OsString)> = vec![
            ("FOLDPLANE_SERVICE".to_owned(), plan.service.clone().into()),
            ("FOLDPLANE_WORKER".to_owned(), plan.id.clone().into()),
            ("FOLDPLANE_GENERATION".to_owned(), self.worker.generation.to_string().into()),
        ];
        if let Some(Place::Ip(first)) = self.first() {
            variables.push(("HOST".to_owned(), first.ip().to_string().into()));
        }
        variables.extend(self.first().map(|first| ("PORT".to_owned(), first.told().into())));
        variables.extend(self.ports.iter().map(|port| (variable(&port.name), port.place.told().into())));
        variables
    }

    /// The command with `{port}`, `{port:NAME}`, `{host}`, `{service}` and `{worker}` filled in. Other braces
    /// stay as they are, and so does text that is not UTF-8.
    pub(super) fn command(&self, plan: &Plan) -> Vec<OsString> {
        let mut fills =
            vec![("{service}".to_owned(), plan.service.clone()), ("{worker}".to_owned(), plan.id.clone())];
        fills.extend(self.first().map(|first| ("{port}".to_owned(), first.told())));
        if let Some(Place::Ip(first)) = self.first() {
            fills.push(("{host}".to_owned(), first.ip().to_string()));
        }
        fills.extend(self.ports.iter().map(|port| (format!("{{port:{}}}", port.name), port.place.told())));
        let fill = |argument: &OsString| match argument.to_str() {
            None => argument.clone(),
            Some(text) => fills
                .iter()
                .fold(text.to_owned(), |text, (pattern, value)| text.replace(pattern, value))
                .into(),
        };
        plan.command.iter().map(fill).collect()
    }
}

impl AssignedPort {
    fn new(port: &proto::Port) -> Result<Self, UnusablePort> {
        let name = port.name.clone();
        if !port.path.is_empty() {
            return Ok(Self { name, place: Place::Path(PathBuf::from(&port.path)) });
        }
        let ip = port.address.parse::<IpAddr>().ok();
        let number = port.number.and_then(|number| u16::try_from(number).ok());
        match (ip, number) {
            (Some(ip), Some(number)) => Ok(Self { name, place: Place::Ip(SocketAddr::new(ip, number)) }),
            _ => Err(UnusablePort { name, address: port.address.clone(), number: port.number }),
        }
    }
}

impl fmt::Display for Assignment {
    /// `pay/a@host as generation @42 (http 127.0.0.1:20001)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proto::WorkerRef { service, host, id, generation } = &self.worker;
        write!(f, "{service}/{id}@{host} as generation @{generation}")?;
        let ports: Vec<String> =
            self.ports.iter().map(|port| format!("{} {}", port.name, port.place)).collect();
        if ports.is_empty() { Ok(()) } else { write!(f, " ({})", ports.join(", ")) }
    }
}

/// `PORT_HTTP` for `http`, `PORT_ADMIN_UI` for `admin-ui`: a name that every shell can read.
pub(super) fn variable(port: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("PORT_{}", port.chars().map(letter).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned() -> Assignment {
        let port = |name: &str, number| proto::Port {
            name: name.to_owned(),
            number: Some(number),
            address: "::1".to_owned(),
            path: String::new(),
        };
        let worker = proto::WorkerRef { generation: 42, ..Default::default() };
        Assignment::new(&worker, &[port("http", 20_001), port("admin-ui", 20_002)]).unwrap()
    }

    #[test]
    fn the_child_finds_its_ports_and_its_name_in_the_environment() {
        let variables = assigned().environment(&Plan::of(&["server"]));
        let text: Vec<String> =
            variables.iter().map(|(name, value)| format!("{name}={}", value.display())).collect();
        assert_eq!(
            text,
            [
                "FOLDPLANE_SERVICE=pay",
                "FOLDPLANE_WORKER=a",
                "FOLDPLANE_GENERATION=42",
                "HOST=::1",
                "PORT=20001",
                "PORT_HTTP=20001",
                "PORT_ADMIN_UI=20002"
            ]
        );
    }

    #[test]
    fn arguments_are_filled_in_and_other_braces_are_left_alone() {
        let plan = Plan::of(&["server", "--on={host}:{port:admin-ui}", "{port}", "{worker}", "{port:x} {a}"]);
        assert_eq!(assigned().command(&plan), ["server", "--on=::1:20002", "20001", "a", "{port:x} {a}"]);
    }

    #[test]
    fn a_socket_is_told_by_its_path_and_has_no_host() {
        let port = |name: &str, path: &str| proto::Port {
            name: name.to_owned(),
            path: path.to_owned(),
            ..proto::Port::default()
        };
        let assigned =
            Assignment::new(&proto::WorkerRef::default(), &[port("http", "/run/a"), port("adm", "/run/b")]);
        let assigned = assigned.unwrap();
        let plan = Plan::of(&["server", "unix:{port}", "{port:adm}", "{host}"]);
        assert_eq!(assigned.command(&plan), ["server", "unix:/run/a", "/run/b", "{host}"]);
        let variables = assigned.environment(&plan);
        let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        assert_eq!(value("PORT_HTTP"), Some(&"/run/a".into()));
        assert_eq!(value("PORT"), Some(&"/run/a".into()));
        assert_eq!(value("HOST"), None);
    }

    #[test]
    fn an_answer_without_a_usable_port_is_refused() {
        let port = proto::Port {
            name: "http".to_owned(),
            number: Some(70_000),
            address: "::1".to_owned(),
            path: String::new(),
        };
        let refusal = Assignment::new(&proto::WorkerRef::default(), &[port]).unwrap_err().to_string();
        assert!(refusal.contains("70000"), "{refusal}");
    }
}
