//! PROVISION: finds real clients (Envoy, gRPC for Python and for Node.js), or installs them once into a cache of this user.
//!
//! The demo and the tests use the same functions, so that both run with the same client.

mod environment;
mod envoy;
mod error;
mod grpc;
mod node;
mod progress;
mod step;

pub use envoy::{Envoy, EnvoyOrigin, EnvoySearch};
pub use error::ProvisionError;
pub use grpc::{GrpcPython, GrpcSearch};
pub use node::GrpcNode;
pub use progress::Progress;

use std::path::PathBuf;

/// Where installed clients are kept: `foldplane` in this user's cache folder.
///
/// # Errors
///
/// [`ProvisionError::NoCacheFolder`] where the user has none, such as without a home.
pub fn default_cache() -> Result<PathBuf, ProvisionError> {
    dirs::cache_dir().map(|folder| folder.join("foldplane")).ok_or(ProvisionError::NoCacheFolder)
}
