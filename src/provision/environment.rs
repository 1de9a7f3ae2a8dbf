//! A virtual Python environment that holds one requirement, made once and kept in the cache.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::step::Step;
use super::{Progress, ProvisionError};

/// How long a small command of Python may take. It is done in a second; a busy machine gets a hundred times that.
const PYTHON_LIMIT: Duration = Duration::from_secs(120);

/// How long one download and installation may take: 40 MB over a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

/// How often an installation is tried: package indexes fail now and then, and seldom twice.
const INSTALL_ATTEMPTS: u32 = 3;

/// The wait before the second attempt; doubled before the third.
const INSTALL_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// How often a lock that another process holds is tried again.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// How long another process may take to install the same: all its attempts and a little more.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1200);

/// Written last, so that an environment without it is known to be half made.
const COMPLETE_MARK: &str = "foldplane-complete";

/// A virtual environment with one requirement in it.
#[derive(Debug)]
pub(super) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment of `requirement` (such as `grpcio==1.2.3`) below `cache`, made now if it is not there.
    ///
    /// Processes that want the same one at the same time wait for the first. An environment whose maker was
    /// killed is made anew.
    pub(super) async fn obtain(
        cache: &Path,
        requirement: &'static str,
        progress: &Progress,
    ) -> Result<Self, ProvisionError> {
        let name = requirement.replace("==", "-");
        let environment = Self { folder: cache.join(&name) };
        if environment.is_complete() {
            return Ok(environment);
        }
        fs::create_dir_all(cache).map_err(|source| store("create the folder", cache, source))?;
        let _lock = lock(&cache.join(format!("{name}.lock")), progress).await?;
        if !environment.is_complete() {
            environment.make(requirement, progress).await?;
        }
        Ok(environment)
    }

    pub(super) fn python(&self) -> PathBuf {
        self.folder.join("bin").join("python")
    }

    /// A file that `requirement` brings, by its path below `site-packages`.
    pub(super) fn package_file(
        &self,
        requirement: &'static str,
        path: &'static str,
    ) -> Result<PathBuf, ProvisionError> {
        let versions = fs::read_dir(self.folder.join("lib")).into_iter().flatten().flatten();
        let mut files = versions.map(|version| version.path().join("site-packages").join(path));
        files.find(|file| file.is_file()).ok_or_else(|| ProvisionError::Incomplete {
            requirement,
            folder: self.folder.clone(),
            missing: path,
        })
    }

    fn is_complete(&self) -> bool {
        self.folder.join(COMPLETE_MARK).is_file()
    }

    async fn make(&self, requirement: &'static str, progress: &Progress) -> Result<(), ProvisionError> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .map_err(|source| store("remove the half-made folder", &self.folder, source))?;
        }
        progress.note(&format!("Installing {requirement} into {} (once).", self.folder.display()));
        let python = find_python().await?;
        let installer = self.create(&python, progress).await?;
        self.install(&installer, requirement, progress).await?;
        let mark = self.folder.join(COMPLETE_MARK);
        fs::write(&mark, requirement).map_err(|source| store("write", &mark, source))
    }

    /// Makes the empty environment, and says whose pip fills it. Debian's Python can make one without pip only,
    /// unless python3-venv is there; then the pip beside that Python does it.
    async fn create(&self, python: &Path, progress: &Progress) -> Result<Installer, ProvisionError> {
        progress.step("Creating a virtual environment");
        let folder = self.folder.as_os_str();
        let with_pip = python_step(python, "create a virtual environment", &["-m", "venv"], folder);
        let Err(first) = with_pip.run().await else {
            return Ok(Installer { python: self.python(), target: None });
        };
        let options = ["-m", "venv", "--clear", "--without-pip"];
        let bare = python_step(python, "create a virtual environment", &options, folder);
        let pip = python_step(python, "find pip", &["-m", "pip"], OsStr::new("--version"));
        if bare.run().await.is_err() || pip.run().await.is_err() {
            return Err(first);
        }
        Ok(Installer { python: python.to_owned(), target: Some(self.python()) })
    }

    async fn install(
        &self,
        installer: &Installer,
        requirement: &str,
        progress: &Progress,
    ) -> Result<(), ProvisionError> {
        let mut pause = INSTALL_RETRY_PAUSE;
        for attempt in 1.. {
            progress.step(&format!("Installing {requirement}, attempt {attempt} of {INSTALL_ATTEMPTS}"));
            match installer.step(requirement).run().await {
                Ok(_) => break,
                Err(error) if attempt >= INSTALL_ATTEMPTS => return Err(error),
                Err(error) => progress.note(&format!("{error}\nTrying again in {} s.", pause.as_secs())),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(())
    }
}

/// Whose pip fills which environment.
struct Installer {
    python: PathBuf,
    /// The environment to fill, where it is not the one of `python`.
    target: Option<PathBuf>,
}

impl Installer {
    fn step<'a>(&'a self, requirement: &'a str) -> Step<'a> {
        let mut arguments = vec![OsStr::new("-m"), OsStr::new("pip")];
        if let Some(target) = &self.target {
            arguments.extend([OsStr::new("--python"), target.as_os_str()]);
        }
        arguments.extend(["install", "--progress-bar", "off", requirement].map(OsStr::new));
        Step {
            purpose: format!("install {requirement}"),
            program: &self.python,
            arguments,
            limit: INSTALL_LIMIT,
        }
    }
}

/// A Python 3 of this machine that can make virtual environments.
async fn find_python() -> Result<PathBuf, ProvisionError> {
    let names = ["python3", "python"];
    for name in names {
        let probe = "import sys, venv; sys.exit(sys.version_info < (3, 8))";
        let found = python_step(Path::new(name), "look at Python", &["-c"], OsStr::new(probe)).run().await;
        if found.is_ok() {
            return Ok(PathBuf::from(name));
        }
    }
    Err(ProvisionError::NoPython { tried: names.join(", ") })
}

fn python_step<'a>(python: &'a Path, purpose: &str, options: &[&'a str], last: &'a OsStr) -> Step<'a> {
    let options = options.iter().copied().map(OsStr::new);
    Step {
        purpose: purpose.to_owned(),
        program: python,
        arguments: options.chain([last]).collect(),
        limit: PYTHON_LIMIT,
    }
}

/// Holds the lock until the file is dropped, or its process ends however it ends.
pub(super) async fn lock(path: &Path, progress: &Progress) -> Result<File, ProvisionError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|source| store("open the lock", path, source))?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(store("lock", path, source)),
            Err(TryLockError::WouldBlock) if waited >= LOCK_WAIT_MAX => {
                return Err(ProvisionError::Busy { lock: path.to_owned(), waited });
            }
            Err(TryLockError::WouldBlock) => {
                if waited.is_zero() {
                    progress.step("Waiting for another process that installs the same");
                }
                tokio::time::sleep(LOCK_POLL).await;
                waited += LOCK_POLL;
            }
        }
    }
}

pub(super) fn store(action: &'static str, path: &Path, source: io::Error) -> ProvisionError {
    ProvisionError::Store { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_lock_is_held_by_one_and_free_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let progress = Progress::stderr();
        let first = lock(&path, &progress).await.unwrap();
        let second = tokio::time::timeout(Duration::from_millis(50), lock(&path, &progress)).await;
        assert!(second.is_err(), "two processes would install at once");
        drop(first);
        lock(&path, &progress).await.unwrap();
    }

    #[tokio::test]
    async fn a_requirement_that_does_not_exist_fails_with_command_and_output() {
        // An index that refuses connections: nothing leaves this machine.
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment { folder: folder.path().join("env") };
        let python = find_python().await.unwrap();
        let mut installer = environment.create(&python, &Progress::stderr()).await.unwrap();
        assert!(environment.python().exists());
        installer.target.get_or_insert_with(|| environment.python());
        let mut step = installer.step("foldplane-has-no-such-package==0");
        step.arguments.extend(["--no-index"].map(OsStr::new));
        let message = step.run().await.unwrap_err().to_string();
        assert!(message.contains("cannot install foldplane-has-no-such-package==0: `"), "{message}");
        assert!(message.contains("\n    ERROR: No matching distribution"), "{message}");
        assert!(!environment.is_complete());
    }
}
