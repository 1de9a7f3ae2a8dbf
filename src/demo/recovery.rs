//! The scenes about the control plane: it is killed and restarted, and its log is folded again.

use std::time::{Duration, Instant};

use super::DemoError;
use super::commands::{Accepted, Folded, Version};
use super::error::CHANGE_LIMIT;
use super::load::Load;
use super::narration::Narrator;
use super::scenes::{no_failure, watch};
use super::stage::{SERVICE, Stage};

/// How long requests go on without a control plane.
const OUTAGE: Duration = Duration::from_secs(2);

/// How long Envoy is watched after everybody is back: it must be told nothing new.
const QUIET: Duration = Duration::from_secs(1);

/// How often the control plane is asked who is back.
const REJOIN_POLL: Duration = Duration::from_millis(20);

pub(super) async fn restart(
    stage: &mut Stage,
    load: &Load,
    narrator: &mut Narrator,
) -> Result<(), DemoError> {
    narrator.scene("The control plane is killed, and started again")?;
    let tally = load.tally();
    let (before, known) = (stage.live().await?, news(stage).await?);
    narrator.explain(&format!("kill -9 {}", stage.server.pid()))?;
    stage.server.kill(CHANGE_LIMIT).await?;
    let outage = watch(load, OUTAGE).await;
    narrator.say(&format!("{} requests while there was no control plane", outage.requests()))?;
    let started = Instant::now();
    stage.restart_server().await?;
    rejoin(stage).await?;
    narrator.say(&format!("all workers are back {} ms after its start", started.elapsed().as_millis()))?;
    tokio::time::sleep(QUIET).await;
    stage.show_events(narrator).await?;
    let after = stage.live().await?;
    let changed = (after.versions != before.versions).then(|| differing(&before, &after));
    narrator.verify("every version is what it was", changed)?;
    let told = news(stage).await? - known;
    narrator.verify("Envoy was told nothing new", (told > 0).then(|| format!("{told} updates")))?;
    Ok(no_failure(&load.tally().since(&tally), load, narrator)?)
}

/// Waits until Envoy is connected and every worker speaks for itself again.
async fn rejoin(stage: &Stage) -> Result<(), DemoError> {
    let start = Instant::now();
    loop {
        let workers = stage.cli.workers().await?;
        let connected = stage.proxy.counters("^control_plane.connected_state$").await?;
        let back = workers.len() == stage.agents.len() && workers.iter().all(|(_, state)| state == "ready");
        if back && connected.values().any(|state| *state == 1) {
            return Ok(());
        }
        if start.elapsed() > CHANGE_LIMIT {
            let what = "the return of workers and Envoy after the restart".to_owned();
            let detail = format!(": workers are {workers:?}, Envoy's connections {connected:?}");
            return Err(DemoError::Late { what, limit: CHANGE_LIMIT, detail });
        }
        tokio::time::sleep(REJOIN_POLL).await;
    }
}

/// How often Envoy was sent endpoints of the service that differed from what it had. On its return it names them and is
/// answered, as the protocol wants (xds-rules 9); that must be no news.
async fn news(stage: &Stage) -> Result<u64, DemoError> {
    let counters = stage.proxy.counters(&format!("^cluster.{SERVICE}.update_(success|no_rebuild)$")).await?;
    let count = |name: &str| counters.get(&format!("cluster.{SERVICE}.{name}")).copied().unwrap_or_default();
    Ok(count("update_success").saturating_sub(count("update_no_rebuild")))
}

pub(super) async fn replay(stage: &mut Stage, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.scene("The log is folded again, by another process")?;
    let live = stage.live().await?;
    narrator.explain(&format!("foldplane replay --server {}", stage.cli.server()))?;
    for version in live.versions.iter().filter(|version| version.name == SERVICE) {
        narrator.fact(&format!("{} {}", version.r#type, version.name), &version.version)?;
    }
    let replayed = stage.cli.replay_running(live.offset).await?;
    narrator.fact("digest of the state", &short(&replayed.state_digest))?;
    let problem = (replayed != live).then(|| differing(&live, &replayed));
    narrator.verify("the replay gives the state and every version that are live", problem)?;
    let accepted = stage.cli.accepted().await?;
    narrator.verify("Envoy has accepted (ACK) these very versions", other(&accepted, &replayed))?;
    past(stage, narrator).await
}

/// What was true before and after the death of a worker.
async fn past(stage: &Stage, narrator: &mut Narrator) -> Result<(), DemoError> {
    let death = stage.death.unwrap_or(1);
    let last = death - 1;
    let before = stage.cli.endpoints_at(last).await?;
    let after = stage.cli.endpoints_at(death).await?;
    let claim = format!("the past can be asked: {before} endpoints at @{last}, {after} at @{death}");
    let wrong = (before != after + 1).then(|| "that is not what happened".to_owned());
    Ok(narrator.verify(&claim, wrong)?)
}

/// What Envoy accepted that is not what the replay gives for the whole of a type.
fn other(accepted: &[Accepted], replayed: &Folded) -> Option<String> {
    let whole =
        |kind: &str| replayed.versions.iter().find(|version| version.r#type == kind && version.name == "*");
    let differs =
        |item: &&Accepted| whole(&item.r#type).map(|version| &version.version) != item.acked.as_ref();
    let wrong = accepted.iter().find(differs);
    match wrong {
        Some(item) => Some(format!("of {} it has {:?}", item.r#type, item.acked)),
        None => accepted.is_empty().then(|| "it has accepted nothing".to_owned()),
    }
}

/// Stops the control plane, folds what is on disk, and returns the last offset.
pub(super) async fn close(stage: &mut Stage, narrator: &mut Narrator) -> Result<u64, DemoError> {
    narrator.scene("The control plane stops, and its log is read from disk")?;
    let live = stage.live().await?;
    let status = stage.stop_server().await?;
    narrator.verify("it ended in order", (!status.success()).then(|| status.to_string()))?;
    let read = stage.cli.replay_folder(&stage.data(), live.offset).await?;
    let problem = (read != live).then(|| differing(&live, &read));
    narrator.verify("the log on disk gives the same state and versions", problem)?;
    Ok(live.offset)
}

fn differing(one: &Folded, other: &Folded) -> String {
    let missing = |version: &&Version| !other.versions.contains(version);
    let versions: Vec<String> = one
        .versions
        .iter()
        .filter(missing)
        .map(|version| format!("{} {} {}", version.r#type, version.name, version.version))
        .collect();
    format!(
        "@{} has digest {}, @{} has {}; versions only in the first: [{}]",
        one.offset,
        short(&one.state_digest),
        other.offset,
        short(&other.state_digest),
        versions.join(", ")
    )
}

/// Enough of a digest to compare by eye.
fn short(digest: &str) -> String {
    digest.chars().take(16).collect()
}
