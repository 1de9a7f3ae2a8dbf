//! The shell of the agent: the session, the process, the signals and the clock.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::io;
use std::pin::Pin;

use tokio::time::{Instant, sleep_until};

use crate::agent::client::{Client, Config, InvalidServer};

use super::assignment::{Assignment, Place};
use super::child::Family;
use super::machine::{Effect, Input, Machine, Timer};
use super::notify::Mailbox;
use super::signals::Signals;
use super::{Launcher, Plan, ReadyBy, measure, ports, process};

/// What keeps an agent from starting.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The control plane's address is unusable.
    #[error(transparent)]
    Server(#[from] InvalidServer),
    /// The operating system does not let signals be caught.
    #[error("signals cannot be caught, so the worker could not be stopped in order")]
    Signals(#[source] io::Error),
    /// There is no place for the socket on which the child can report.
    #[error("the socket for the worker's reports cannot be made in the folder for temporary files")]
    Mailbox(#[source] io::Error),
}

/// Runs the plan to its end and returns the exit code: the child's own, 128 and the signal's number if it was
/// killed, 126 or 127 if it cannot be run, or 1, 4 or 5 for faults, refusals and an unreachable control plane.
///
/// `say` gets what the user should know, a line at a time. `seed` is any number that differs between agents; it scatters their waits. Await this on the thread that lives as
/// long as the process (`Runtime::block_on` does): with [`Launcher::Through`] the child dies with that thread.
///
/// # Errors
///
/// What keeps the agent from starting. Whatever happens later is in the exit code.
pub async fn run(plan: Plan, launcher: Launcher, seed: u64, say: Say) -> Result<u8, RunError> {
    let client = Client::start(&Config { server: plan.server.clone(), host: plan.host_report(), seed })?;
    let signals = Signals::new().map_err(RunError::Signals)?;
    let mailbox = Mailbox::open().map_err(RunError::Mailbox)?;
    let shell = Shell {
        machine: Machine::new(plan.clone(), process::this(), seed),
        plan,
        client,
        signals,
        mailbox,
        family: Family::new(launcher),
        timers: BTreeMap::new(),
        started: Instant::now(),
        say,
        watch: None,
        inputs: VecDeque::from([Input::Started]),
    };
    Ok(shell.drive().await)
}

/// Where lines for the user go.
pub type Say = Box<dyn Fn(&str) + Send>;

type Watch = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Shell {
    machine: Machine,
    plan: Plan,
    client: Client,
    signals: Signals,
    mailbox: Mailbox,
    family: Family,
    timers: BTreeMap<Timer, Instant>,
    started: Instant,
    say: Say,
    watch: Option<Watch>,
    /// What effects brought at once: at most one for each.
    inputs: VecDeque<Input>,
}

impl Shell {
    async fn drive(mut self) -> u8 {
        loop {
            let input = match self.inputs.pop_front() {
                Some(input) => input,
                None => self.next_input().await,
            };
            for effect in self.machine.handle(input) {
                if let Effect::Finish(code) = effect {
                    self.family.disband(self.plan.stop_within).await;
                    return code;
                }
                self.perform(effect).await;
            }
        }
    }

    async fn next_input(&mut self) -> Input {
        let alarm = self.timers.iter().min_by_key(|(_, at)| **at).map(|(timer, at)| (*timer, *at));
        tokio::select! {
            // The child's end comes first: whatever else waits is about a worker that is gone.
            biased;
            ending = self.family.ended() => Input::Exited(ending),
            signal = self.signals.next() => signal,
            Some(notice) = self.client.next() => Input::Notice(notice),
            () = watched(&mut self.watch) => {
                self.watch = None;
                Input::CanServe
            }
            timer = ring(alarm) => {
                self.timers.remove(&timer);
                Input::Rang(timer)
            }
            // Last, so that a child that never stops talking holds up nothing else.
            tidings = self.mailbox.next() => Input::Told(tidings),
        }
    }

    async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Add(ticket, register) => self.client.add(ticket, register).await,
            Effect::Wish(ticket, wish) => self.client.wish(ticket, wish).await,
            Effect::ReportBusy(port) => self.client.report_busy_port(&self.plan.host, port).await,
            Effect::Judge(ticket, source, opinion) => self.client.judge(ticket, &source, opinion).await,
            Effect::TestPorts(assignment) => {
                let taken = ports::first_taken(&assignment.places()).await;
                self.inputs.push_back(match taken {
                    None => Input::PortsFree,
                    Some(Place::Ip(address)) => Input::PortTaken(address.port()),
                    Some(Place::Path(path)) => Input::SocketTaken(path),
                });
            }
            Effect::Spawn(assignment) => self.spawn(&assignment),
            Effect::Watch(assignment) => self.watch = self.watch(&assignment),
            Effect::Unwatch => self.watch = None,
            Effect::Measure => {
                let child = self.family.child();
                let sample = child.and_then(|child| {
                    measure::measure(child, self.started.elapsed(), self.plan.thresholds.memory)
                });
                self.inputs.extend(sample.map(Input::Measured));
            }
            Effect::Signal(signal) => self.family.signal(signal),
            Effect::Arm(timer, after) => {
                self.timers.insert(timer, Instant::now() + after);
            }
            Effect::Disarm(timer) => {
                self.timers.remove(&timer);
            }
            Effect::Say(text) => (self.say)(&text),
            Effect::Finish(_) => {}
        }
    }

    fn watch(&self, assignment: &Assignment) -> Option<Watch> {
        let child = self.family.child()?;
        match (&self.plan.ready, assignment.first()) {
            (ReadyBy::Answering(path), Some(place)) => {
                Some(Box::pin(ports::answering(child, place.clone(), path.clone())))
            }
            (ReadyBy::Listening, _) => Some(Box::pin(ports::listening(child, assignment.places()))),
            (ReadyBy::Now | ReadyBy::Telling | ReadyBy::Answering(_), _) => None,
        }
    }

    fn spawn(&mut self, assignment: &Assignment) {
        let command = assignment.command(&self.plan);
        let mut environment = assignment.environment(&self.plan);
        environment.push(("NOTIFY_SOCKET".into(), self.mailbox.path().into()));
        if let Some(watchdog) = self.plan.watchdog {
            environment.push(("WATCHDOG_USEC".into(), watchdog.as_micros().to_string().into()));
        }
        let spawned = self.family.spawn(&command, environment);
        self.inputs.push_back(match spawned {
            Ok(()) => Input::Spawned,
            Err(ending) => Input::NotSpawned(ending),
        });
    }
}

async fn watched(watch: &mut Option<Watch>) {
    match watch {
        Some(watch) => watch.await,
        None => pending().await,
    }
}

async fn ring(alarm: Option<(Timer, Instant)>) -> Timer {
    match alarm {
        Some((timer, at)) => {
            sleep_until(at).await;
            timer
        }
        None => pending().await,
    }
}
