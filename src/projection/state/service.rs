//! One service: what it is declared to be, and what its workers show of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::events::PortName;
use crate::events::event::{ClusterPolicy, PortSpec, ServiceSpec};

/// A service that is declared, or has live workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// What it is declared to be.
    pub spec: Option<Arc<ServiceSpec>>,
    /// The ports of its workers in the order in which they became known.
    pub known_ports: Vec<PortName>,
    /// How many live workers it has.
    pub workers: u32,
}

impl Service {
    /// Its ports: those that are declared, then those that only workers have.
    pub fn ports(&self) -> impl Iterator<Item = &PortName> {
        let declared = self.declared_ports().iter().map(|port| &port.name);
        let others = self.known_ports.iter().filter(|name| self.declared_port(name).is_none());
        declared.chain(others)
    }

    /// The ports that are declared.
    #[must_use]
    pub fn declared_ports(&self) -> &[PortSpec] {
        self.spec.as_ref().map_or(&[], |spec| &spec.ports)
    }

    /// The declared port of this name.
    #[must_use]
    pub fn declared_port(&self, name: &PortName) -> Option<&PortSpec> {
        self.declared_ports().iter().find(|port| port.name == *name)
    }

    /// How clients are to use its clusters.
    #[must_use]
    pub fn policy(&self) -> ClusterPolicy {
        self.spec.as_ref().map(|spec| spec.cluster).unwrap_or_default()
    }
}
