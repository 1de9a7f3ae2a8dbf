//! Events as people read them: one line each.

use std::fmt;

use super::event::{Endpoint, EndpointAddress, ExitStatus, HostReport, Registration};
use super::view::NodeSelector;
use super::{Event, Glob};

impl fmt::Display for Event {
    /// The variant's name, whom it is about, and what matters of it. Not for programs: they read JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::ReplicaStarted { replica, version } => write!(f, " {replica} version {version}"),
            Self::HostReported { host, report } => write!(f, " {host} {}", Report(report)),
            Self::WorkerRegistered { worker, registration } => {
                write!(f, " {worker} {}", Registered(registration))
            }
            Self::WorkerReady { worker } => write!(f, " {}", worker.key),
            Self::WorkerUnready { worker, reason } => write!(f, " {} {reason:?}", worker.key),
            Self::WorkerDraining { worker, reason, drain_ms } => {
                write!(f, " {} for {drain_ms} ms {reason:?}", worker.key)
            }
            Self::WorkerDisconnected { worker, .. } | Self::WorkerReconnected { worker, .. } => {
                write!(f, " {}", worker.key)
            }
            Self::WorkerRemoved { worker, cause } => write!(f, " {} {cause}", worker.key),
            Self::WorkerHealthReported { worker, source, verdict, reason } => {
                write!(f, " {} {source} says {verdict} {reason:?}", worker.key)
            }
            Self::WorkerReweighted { worker, weight: Some(weight) } => {
                write!(f, " {} weight {weight}", worker.key)
            }
            Self::WorkerReweighted { worker, weight: None } => write!(f, " {} no weight", worker.key),
            Self::HostDraining { host, reason } => write!(f, " {host} {reason:?}"),
            Self::HostRemoved { host } => write!(f, " {host}"),
            Self::PortBusy { host, port } => write!(f, " {host} {port}"),
            Self::ServiceDeclared { service, spec } => write!(f, " {service} {spec}"),
            Self::ServiceRetired { service } => write!(f, " {service}"),
            Self::NodeViewSet { name, view } => {
                write!(f, " {name}: {} see {}", view.nodes, List(&view.services))
            }
            Self::NodeViewRemoved { name } => write!(f, " {name}"),
            Self::PolicyChanged { service: Some(service), policy } => write!(f, " {service} {policy}"),
            Self::PolicyChanged { service: None, policy } => write!(f, " for all {policy}"),
            Self::ExpiryHeld { reason, until } => write!(f, " until {until} {reason:?}"),
            Self::ExpiryReleased { reason } => write!(f, " {reason:?}"),
            Self::ResourceApplied { resource, message } => {
                write!(f, " {resource} {} bytes", message.as_slice().len())
            }
            Self::ResourceDeleted { resource } => write!(f, " {resource}"),
            Self::UpdateRejected { rejection } => write!(
                f,
                " {:?} {} {} {:?}",
                rejection.node, rejection.type_url, rejection.version, rejection.message
            ),
        }
    }
}

struct Report<'a>(&'a HostReport);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.0.addresses {
            write!(f, "{address} ")?;
        }
        write!(f, "ports {}", self.0.port_range)
    }
}

struct Registered<'a>(&'a Registration);

impl fmt::Display for Registered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.endpoints.is_empty() {
            return f.write_str("without endpoint");
        }
        for (index, Endpoint { port, address }) in self.0.endpoints.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{port}={address}")?;
        }
        Ok(())
    }
}

/// Items with commas between them, or a dash for none.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.0.split_first() else { return f.write_str("-") };
        first.fmt(f)?;
        rest.iter().try_for_each(|item| write!(f, ",{item}"))
    }
}

impl fmt::Display for NodeSelector {
    /// `id edge-*,front-* cluster edge zone=a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |name: &str, globs: &[Glob]| (!globs.is_empty()).then(|| format!("{name} {}", List(globs)));
        let globs = [of("id", &self.ids), of("cluster", &self.clusters)].into_iter().flatten();
        let metadata = self.metadata.iter().map(|(key, value)| format!("{key}={value}"));
        f.write_str(&globs.chain(metadata).collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for EndpointAddress {
    /// `192.0.2.1:9001`, `[2001:db8::1]:9001`, `unix:/run/web.sock`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}
