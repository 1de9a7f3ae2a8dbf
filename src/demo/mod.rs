//! THE DEMO: everything at work on one machine, with a real Envoy, while requests go on.
//!
//! It starts the program's own binary as users do, and believes only what it sees from outside: the answers to its
//! requests, Envoy's admin pages, and the output of `foldplane` commands.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it measures real time")]

mod commands;
mod error;
mod lending;
pub mod load;
mod narration;
pub mod ports;
pub mod process;
pub mod proxy;
mod recovery;
mod scenes;
mod stage;
mod summary;
pub mod worker;

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

pub use error::DemoError;
pub use narration::{LiveLine, Narrator};

use crate::provision::Envoy;
use stage::Stage;

/// What the demo needs.
#[derive(Debug)]
pub struct Demo {
    /// The `foldplane` program.
    pub program: PathBuf,
    /// The words that begin a command which must die with this process, even if this one is killed.
    pub launcher: Vec<String>,
    /// A real Envoy.
    pub envoy: Envoy,
    /// How it ends.
    pub end: End,
    /// Done when a person has had enough.
    pub interrupt: CancellationToken,
}

/// When the demo ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After its last scene.
    AfterScenes,
    /// When it is interrupted.
    OnInterrupt,
}

impl Demo {
    /// Plays it, and tells `narrator` what happens. Everything that it started has ended when this returns or is dropped.
    ///
    /// # Errors
    ///
    /// [`DemoError`] when it could not be played to its end, or when something that must hold did not.
    pub async fn play(self, narrator: &mut Narrator) -> Result<(), DemoError> {
        let interrupt = self.interrupt.clone();
        let Some(played) = interrupt.run_until_cancelled(self.scenes(narrator)).await else {
            return Err(DemoError::Interrupted);
        };
        let (mut stage, load) = played?;
        if self.end == End::OnInterrupt {
            summary::invite(&stage, narrator)?;
            stage.watch(&load, narrator, &self.interrupt).await?;
        }
        let end = recovery::close(&mut stage, narrator).await?;
        summary::print(&stage, &load.finish().await, end, narrator)
    }

    async fn scenes(&self, narrator: &mut Narrator) -> Result<(Stage, load::Load), DemoError> {
        let mut stage = scenes::open(self, narrator).await?;
        scenes::register(&mut stage, narrator).await?;
        let load = stage.start_load();
        scenes::spread(&mut stage, &load, narrator).await?;
        scenes::kill(&mut stage, &load, narrator).await?;
        scenes::come_back(&mut stage, &load, narrator).await?;
        scenes::drain(&mut stage, &load, narrator).await?;
        recovery::restart(&mut stage, &load, narrator).await?;
        recovery::replay(&mut stage, narrator).await?;
        Ok((stage, load))
    }
}
