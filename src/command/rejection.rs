//! Why a wish was refused: data with a stable code.

use std::fmt;

/// Why a wish was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// For programs.
    pub code: RejectionCode,
    /// What was wrong, with which input.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Rejection {
    /// A refusal with this code, message and hint.
    pub(crate) fn new(code: RejectionCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// A refusal of input that could not be read.
    #[must_use]
    pub fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(RejectionCode::InvalidArgument, message, hint)
    }
}

/// The codes of refusals. Stable: programs rely on their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RejectionCode {
    /// The input is not what it should be.
    InvalidArgument,
    /// No such worker lives.
    UnknownWorker,
    /// Another registration has taken the worker's key.
    StaleGeneration,
    /// The worker is draining and does not come back.
    Draining,
    /// Another worker holds the port of this host.
    PortTaken,
    /// The host has no free port left.
    PortsExhausted,
    /// Another worker holds the address.
    AddressTaken,
    /// No such host is known.
    UnknownHost,
    /// The host is being emptied.
    HostDraining,
    /// The service is declared, and not so.
    NotDeclared,
    /// A resource names one that is not there.
    UnknownReference,
    /// Another resource names it.
    ResourceInUse,
}

impl RejectionCode {
    /// Its text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::UnknownWorker => "unknown_worker",
            Self::StaleGeneration => "stale_generation",
            Self::Draining => "draining",
            Self::PortTaken => "port_taken",
            Self::PortsExhausted => "ports_exhausted",
            Self::AddressTaken => "address_taken",
            Self::UnknownHost => "unknown_host",
            Self::HostDraining => "host_draining",
            Self::NotDeclared => "not_declared",
            Self::UnknownReference => "unknown_reference",
            Self::ResourceInUse => "resource_in_use",
        }
    }
}

impl fmt::Display for RejectionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<crate::events::InvalidName> for Rejection {
    fn from(invalid: crate::events::InvalidName) -> Self {
        let hint = format!("give another {}", invalid.kind);
        Self::invalid(invalid.to_string(), hint)
    }
}
