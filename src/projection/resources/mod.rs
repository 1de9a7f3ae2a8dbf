//! What clients are sent: encoded resources, each with a version that binds it to its bytes.
//!
//! A [`Resources`] is immutable and shares structure with the one before it, so that publishing costs what
//! changed. The xDS room needs nothing else: a program with resources of its own builds one with
//! [`Resources::builder`] and serves it.

pub mod builders;

mod dials;
mod digest;
mod links;
mod resource;
mod scope;
mod set;
mod type_url;
mod variation;
mod version;
mod views;

pub use dials::Dials;
pub use digest::{ContentDigest, SetDigest};
pub use links::Reach;
pub use resource::{Resource, ResourceName, Served};
pub use scope::{Scope, Shown, Visible};
pub use set::{Change, ResourceSet, Resources, ResourcesBuilder};
pub use type_url::TypeUrl;
pub use variation::Variation;
pub use version::{InvalidVersion, Version};
pub use views::{NodeLabels, NodeViews};
