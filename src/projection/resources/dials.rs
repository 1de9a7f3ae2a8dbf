//! To what a client can connect.

use crate::events::event::EndpointAddress;

/// To which addresses a client can connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dials {
    /// To all, as Envoy.
    #[default]
    Everything,
    /// To IP addresses only, as gRPC: it refuses a whole assignment in which there is anything else.
    IpOnly,
}

impl Dials {
    /// Whether this address is one of them.
    #[must_use]
    pub const fn reaches(self, address: &EndpointAddress) -> bool {
        match (self, address) {
            (Self::Everything, EndpointAddress::Ip(_) | EndpointAddress::Unix(_))
            | (Self::IpOnly, EndpointAddress::Ip(_)) => true,
            (Self::IpOnly, EndpointAddress::Unix(_)) => false,
        }
    }
}
