//! A Python that can speak proxyless gRPC.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;
use super::step::Step;
use super::{Progress, ProvisionError};

/// The gRPC C-core with its Python face: the version that Foldplane is tested with.
const REQUIREMENT: &str = "grpcio==1.85.3";

/// How long Python may take to load it; a cold disk is slow.
const IMPORT_LIMIT: Duration = Duration::from_secs(60);

/// A Python interpreter that has grpcio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcPython {
    /// The interpreter.
    pub python: PathBuf,
    /// The version of grpcio.
    pub version: String,
}

/// Where to look for gRPC: in the cache, into which it is installed if need be.
#[derive(Clone, Debug)]
pub struct GrpcSearch {
    /// Where installed clients are kept, see [`default_cache`](super::default_cache).
    pub cache: PathBuf,
}

impl GrpcPython {
    /// Finds or installs it.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`] when it could not be installed or does not load.
    pub async fn locate(search: &GrpcSearch, progress: &Progress) -> Result<Self, ProvisionError> {
        let environment = Environment::obtain(&search.cache, REQUIREMENT, progress).await?;
        let python = environment.python();
        let step = Step {
            purpose: "load grpcio".to_owned(),
            program: &python,
            arguments: vec![OsStr::new("-c"), OsStr::new("import grpc; print(grpc.__version__)")],
            limit: IMPORT_LIMIT,
        };
        let version = step.run().await?.trim().to_owned();
        Ok(Self { python, version })
    }
}
