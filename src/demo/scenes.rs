//! The scenes about workers: they come, share the load, die, return and drain.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill as send_signal};
use nix::unistd::Pid;

use super::error::CHANGE_LIMIT;
use super::load::{Load, Share};
use super::narration::Narrator;
use super::proxy::Hosts;
use super::stage::{SERVICE, Stage, shares};
use super::{Demo, DemoError};

/// Who works.
const WORKERS: [&str; 3] = ["a", "b", "c"];

/// How long requests are watched in a scene: some hundred of them.
const WATCH: Duration = Duration::from_millis(1500);

/// The least share of each of three workers, in percent. Round robin gives each a third; retries and the order of
/// connections shift it a little.
const SHARE_PERCENT_MIN: u64 = 20;

/// The longest that a killed worker may stay in Envoy. It takes some ten milliseconds; a busy machine gets more.
const KILL_LIMIT: Duration = Duration::from_secs(1);

pub(super) async fn open(demo: &Demo, narrator: &mut Narrator) -> Result<Stage, DemoError> {
    let envoy = &demo.envoy;
    narrator.title("Foldplane: endpoints for Envoy, folded from a log")?;
    narrator.scene("A control plane and an Envoy start")?;
    let stage = Stage::set(demo).await?;
    narrator.fact("folder", &stage.folder().display().to_string())?;
    narrator.fact("control plane", stage.cli.server())?;
    narrator.fact("envoy", &format!("{} {} ({})", envoy.version, envoy.origin, envoy.binary.display()))?;
    narrator.fact("requests go to", &format!("http://{}/", stage.proxy.listener))?;
    narrator.fact("envoy's admin pages", &format!("http://{}/", stage.proxy.admin))?;
    Ok(stage)
}

pub(super) async fn register(stage: &mut Stage, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.scene("Three workers register")?;
    narrator.explain("foldplane run --service shop --port http -- ./worker, three times")?;
    for id in WORKERS {
        stage.start_worker(id)?;
    }
    let what = "the registration of three workers";
    let seen = await_hosts(stage, what, |hosts| healthy(hosts) == WORKERS.len()).await?;
    let events = stage.show_events(narrator).await?;
    narrator.say(&stage.measure(&events, "WorkerReady", seen))?;
    Ok(())
}

pub(super) async fn spread(stage: &mut Stage, load: &Load, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.scene("Requests go through Envoy, all the time from here on")?;
    let share = watch(load, WATCH).await;
    narrator.say(&format!("{} requests: {}", share.requests(), shares(&share)))?;
    let count = |id: &str| share.workers.get(id).copied().unwrap_or_default();
    let uneven = WORKERS.iter().any(|id| count(id) * 100 < share.requests() * SHARE_PERCENT_MIN);
    narrator.verify("every worker has its share", uneven.then(|| shares(&share)))?;
    no_failure(&share, load, narrator)?;
    stage.server.still_runs()
}

pub(super) async fn kill(stage: &mut Stage, load: &Load, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.scene("Worker b is killed")?;
    let before = load.tally();
    let pid = before.workers.get("b").and_then(|answers| answers.pid);
    let pid = pid.ok_or_else(|| DemoError::NoAgent { worker: "b".to_owned() })?;
    narrator.explain(&format!("kill -9 {pid}"))?;
    let killed = Instant::now();
    // A process that is gone already is what is wanted.
    let _gone = send_signal(Pid::from_raw(pid), Signal::SIGKILL);
    let seen = await_hosts(stage, "the end of b", |hosts| hosts.len() == WORKERS.len() - 1).await?;
    watch(load, WATCH).await;
    let events = stage.show_events(narrator).await?;
    narrator.say(&stage.measure(&events, "WorkerRemoved", seen))?;
    stage.death = events.iter().find(|event| event.name == "WorkerRemoved").map(|event| event.offset);
    let last = load.tally().workers.get("b").map(|answers| answers.last.saturating_duration_since(killed));
    let last = last.unwrap_or_default();
    narrator.say(&format!("the last answer of b came {} ms after the kill", last.as_millis()))?;
    let gone = seen.at.saturating_duration_since(killed);
    let claim = format!("Envoy let go of b {} ms after the kill", gone.as_millis());
    let late = (gone > KILL_LIMIT).then(|| format!("more than {} ms", KILL_LIMIT.as_millis()));
    narrator.verify(&claim, late)?;
    no_failure(&load.tally().since(&before), load, narrator)?;
    let status = stage.agent("b")?.ended(CHANGE_LIMIT).await?;
    let code = status.code();
    let claim = "its `foldplane run` passed on that it was killed (exit code 137)";
    Ok(narrator.verify(claim, (code != Some(137)).then(|| status.to_string()))?)
}

pub(super) async fn come_back(
    stage: &mut Stage,
    load: &Load,
    narrator: &mut Narrator,
) -> Result<(), DemoError> {
    narrator.scene("Worker b comes back")?;
    let before = load.tally();
    stage.start_worker("b")?;
    let what = "the return of b";
    let seen = await_hosts(stage, what, |hosts| healthy(hosts) == WORKERS.len()).await?;
    let share = watch(load, WATCH).await;
    let events = stage.show_events(narrator).await?;
    narrator.say(&stage.measure(&events, "WorkerReady", seen))?;
    let absent = !share.workers.contains_key("b");
    narrator.verify("b answers again", absent.then(|| shares(&share)))?;
    Ok(no_failure(&load.tally().since(&before), load, narrator)?)
}

pub(super) async fn drain(stage: &mut Stage, load: &Load, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.scene("Worker a drains, and is started anew")?;
    narrator.explain("SIGTERM to its `foldplane run`")?;
    let before = load.tally();
    stage.agent("a")?.signal(Signal::SIGTERM);
    let draining = |hosts: &Hosts| healthy(hosts) < WORKERS.len();
    let seen = await_hosts(stage, "the draining of a", draining).await?;
    let status = stage.agent("a")?.ended(CHANGE_LIMIT).await?;
    let what = "the end of a";
    await_hosts(stage, what, |hosts| hosts.len() == WORKERS.len() - 1).await?;
    let events = stage.show_events(narrator).await?;
    narrator.say(&stage.measure(&events, "WorkerDraining", seen))?;
    let code = status.code();
    narrator.verify("a ended by itself", (code != Some(0)).then(|| status.to_string()))?;
    stage.start_worker("a")?;
    let what = "the return of a";
    await_hosts(stage, what, |hosts| healthy(hosts) == WORKERS.len()).await?;
    stage.show_events(narrator).await?;
    Ok(no_failure(&load.tally().since(&before), load, narrator)?)
}

/// Waits for Envoy. What does not come about is explained by the logs of the workers.
async fn await_hosts(
    stage: &Stage,
    what: &str,
    wanted: impl Fn(&Hosts) -> bool,
) -> Result<super::proxy::Seen, DemoError> {
    let seen = stage.proxy.hosts_become(SERVICE, what, CHANGE_LIMIT, wanted).await;
    seen.map_err(|mut fault| {
        if let DemoError::Late { detail, .. } = &mut fault {
            detail.push_str(&stage.worker_logs());
        }
        fault
    })
}

/// How many hosts get requests.
fn healthy(hosts: &Hosts) -> usize {
    hosts.values().filter(|health| *health == "HEALTHY").count()
}

/// What comes back in a while.
pub(super) async fn watch(load: &Load, time: Duration) -> Share {
    let before = load.tally();
    tokio::time::sleep(time).await;
    load.tally().since(&before)
}

/// No request may fail, whatever happens behind Envoy.
pub(super) fn no_failure(share: &Share, load: &Load, narrator: &mut Narrator) -> std::io::Result<()> {
    let claim = format!("{} requests, none failed", share.requests());
    let reason = |tally: super::load::Tally| tally.failures.last().map(|(_, reason)| reason.clone());
    let problem =
        || format!("{} failed, such as: {}", share.failed, reason(load.tally()).unwrap_or_default());
    narrator.verify(&claim, (share.failed > 0).then(problem))
}
