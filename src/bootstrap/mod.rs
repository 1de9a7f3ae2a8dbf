//! BOOTSTRAP: the configuration with which a proxy starts and finds Foldplane.
//!
//! Pure: options in, text out.

mod envoy;
mod server;
mod text;

pub use envoy::{EnvoyBootstrap, ServiceRoute, XdsVariant};
pub use server::{InvalidServer, ServerAddress};
pub use text::{InvalidLabel, Label};
