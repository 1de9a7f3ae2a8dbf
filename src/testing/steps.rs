//! Wishes whose generations are filled in when they are made, so that a shrunk run still makes sense.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU16, NonZeroU32};
use std::ops::Range;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::names::{every_worker, host, service, session, socket_path, view_name, worker};
use super::parts::{
    busy_port, disconnect_cause, health_source, lease, locality, node_view, readiness, reason, rejection,
    removal_cause, report, rules, spec, verdict,
};
use super::resources::change;
use crate::command::{Command, Listen, PortRequest, Registering, ResourceChange};
use crate::events::event::{
    DisconnectCause, HealthSource, HostReport, Policy, RemovalCause, ServiceSpec, UpdateRejection, Verdict,
};
use crate::events::view::NodeView;
use crate::events::{
    Generation, HostName, Offset, PortName, ReplicaId, ServiceName, SessionId, ViewName, WorkerKey, WorkerRef,
};
use crate::projection::state::State;

/// Why whatever is emptied is emptied.
const REASON: &str = "deploy";

/// A wish, some time after the one before it.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long after the step before it, in milliseconds.
    pub after_ms: u64,
    /// What is wished.
    pub wanted: Wanted,
}

/// Which registration of a worker, or which hold of expiry, a wish means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The one that lives.
    Live,
    /// One that is over, or never was.
    Old,
}

impl Aim {
    fn at(self, newest: Offset) -> Offset {
        match self {
            Self::Live => newest,
            Self::Old => Offset::new(newest.get().saturating_sub(1)),
        }
    }
}

/// A [`Command`] without generations.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the commands of the same names")]
pub enum Wanted {
    StartReplica { replica: ReplicaId },
    ReportHost { host: HostName, report: HostReport },
    Register(Registering),
    Rejoin { worker: WorkerKey, aim: Aim, session: SessionId },
    Renew { worker: WorkerKey, aim: Aim },
    Ready { worker: WorkerKey, aim: Aim },
    Unready { worker: WorkerKey, aim: Aim, reason: String },
    Drain { worker: WorkerKey, aim: Aim, drain_ms: Option<u32> },
    Remove { worker: WorkerKey, aim: Aim, cause: RemovalCause },
    ReportHealth { worker: WorkerKey, aim: Aim, source: HealthSource, verdict: Verdict, reason: String },
    Reweight { worker: WorkerKey, aim: Aim, weight: Option<NonZeroU32> },
    ReportBusyPort { host: HostName, port: NonZeroU16 },
    DrainHost { host: HostName, drain_ms: Option<u32> },
    RemoveHost { host: HostName },
    CloseSession { session: SessionId, cause: DisconnectCause },
    EndGrace { worker: WorkerKey, aim: Aim },
    ExpireSilent { overdue: Vec<(WorkerKey, Aim)>, quiet: Vec<(WorkerKey, Aim)> },
    ReviewHold { hold: Aim, quiet: Vec<(WorkerKey, Aim)> },
    EndHold { hold: Aim, overdue: Vec<(WorkerKey, Aim)> },
    RecordRejection { rejection: UpdateRejection },
    DeclareService { service: ServiceName, spec: ServiceSpec },
    RetireService { service: ServiceName },
    SetView { name: ViewName, view: NodeView },
    RemoveView { name: ViewName },
    SetPolicy { service: Option<ServiceName>, policy: Policy },
    ChangeResources(ResourceChange),
}

impl Wanted {
    /// The command, once it is known which registration of each worker lives, as in this state.
    #[must_use]
    pub fn command(&self, state: &State) -> Command {
        let aimed = |key: &WorkerKey, aim: Aim| {
            let newest = state.workers().get(key).map_or(Offset::new(1), |live| live.generation.offset());
            WorkerRef { key: key.clone(), generation: Generation::at(aim.at(newest)) }
        };
        let all = |aims: &[(WorkerKey, Aim)]| aims.iter().map(|(key, aim)| aimed(key, *aim)).collect();
        let hold = |aim: Aim| aim.at(state.expiry_hold().map_or(Offset::new(1), |hold| hold.since));
        match self.clone() {
            Self::StartReplica { replica } => Command::StartReplica { replica, version: "1.0.0".to_owned() },
            Self::ReportHost { host, report } => Command::ReportHost { host, report },
            Self::Register(wish) => Command::Register(wish),
            Self::Rejoin { worker, aim, session } => Command::Rejoin { worker: aimed(&worker, aim), session },
            Self::Renew { worker, aim } => Command::Renew { worker: aimed(&worker, aim) },
            Self::Ready { worker, aim } => Command::Ready { worker: aimed(&worker, aim) },
            Self::Unready { worker, aim, reason } => Command::Unready { worker: aimed(&worker, aim), reason },
            Self::Drain { worker, aim, drain_ms } => {
                Command::Drain { worker: aimed(&worker, aim), reason: REASON.to_owned(), drain_ms }
            }
            Self::Remove { worker, aim, cause } => Command::Remove { worker: aimed(&worker, aim), cause },
            Self::ReportHealth { worker, aim, source, verdict, reason } => {
                Command::ReportHealth { worker: aimed(&worker, aim), source, verdict, reason }
            }
            Self::Reweight { worker, aim, weight } => {
                Command::Reweight { worker: aimed(&worker, aim), weight }
            }
            Self::ReportBusyPort { host, port } => Command::ReportBusyPort { host, port },
            Self::DrainHost { host, drain_ms } => {
                Command::DrainHost { host, reason: REASON.to_owned(), drain_ms }
            }
            Self::RemoveHost { host } => Command::RemoveHost { host },
            Self::CloseSession { session, cause } => Command::CloseSession { session, cause },
            Self::EndGrace { worker, aim } => Command::EndGrace { worker: aimed(&worker, aim) },
            Self::ExpireSilent { overdue, quiet } => {
                Command::ExpireSilent { overdue: all(&overdue), quiet: all(&quiet) }
            }
            Self::ReviewHold { hold: aim, quiet } => {
                Command::ReviewHold { since: hold(aim), quiet: all(&quiet) }
            }
            Self::EndHold { hold: aim, overdue } => {
                Command::EndHold { since: hold(aim), overdue: all(&overdue) }
            }
            Self::RecordRejection { rejection } => Command::RecordRejection { rejection },
            Self::DeclareService { service, spec } => Command::DeclareService { service, spec },
            Self::RetireService { service } => Command::RetireService { service },
            Self::SetView { name, view } => Command::SetView { name, view },
            Self::RemoveView { name } => Command::RemoveView { name },
            Self::SetPolicy { service, policy } => Command::SetPolicy { service, policy },
            Self::ChangeResources(change) => Command::ChangeResources(change),
        }
    }
}

/// Some steps.
pub fn steps(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    vec(step(worker().boxed()), count)
}

/// One step; wishes for what lives already are for one of `workers`.
pub fn step(workers: BoxedStrategy<WorkerKey>) -> impl Strategy<Value = Step> {
    let wanted = prop_oneof![8 => registering().prop_map(Wanted::Register), 14 => of_worker(workers), 6 => of_others(), 4 => change().prop_map(Wanted::ChangeResources)];
    (after_ms(), wanted).prop_map(|(after_ms, wanted)| Step { after_ms, wanted })
}

fn of_worker(workers: BoxedStrategy<WorkerKey>) -> impl Strategy<Value = Wanted> {
    let aimed = (workers, aim()).boxed();
    let weight = weighted(0.7, 1..100_u32).prop_map(|weight| weight.and_then(NonZeroU32::new));
    prop_oneof![
        2 => (aimed.clone(), session())
            .prop_map(|((worker, aim), session)| Wanted::Rejoin { worker, aim, session }),
        4 => aimed.clone().prop_map(|(worker, aim)| Wanted::Ready { worker, aim }),
        3 => (aimed.clone(), reason())
            .prop_map(|((worker, aim), reason)| Wanted::Unready { worker, aim, reason }),
        2 => (aimed.clone(), weighted(0.8, 0..10_000_u32))
            .prop_map(|((worker, aim), drain_ms)| Wanted::Drain { worker, aim, drain_ms }),
        2 => (aimed.clone(), removal_cause())
            .prop_map(|((worker, aim), cause)| Wanted::Remove { worker, aim, cause }),
        3 => (aimed.clone(), health_source(), verdict(), reason()).prop_map(
            |((worker, aim), source, verdict, reason)| Wanted::ReportHealth { worker, aim, source, verdict, reason }
        ),
        2 => (aimed.clone(), weight)
            .prop_map(|((worker, aim), weight)| Wanted::Reweight { worker, aim, weight }),
        2 => aimed.clone().prop_map(|(worker, aim)| Wanted::Renew { worker, aim }),
        1 => aimed.prop_map(|(worker, aim)| Wanted::EndGrace { worker, aim }),
    ]
}

fn of_others() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        2 => select(&["r1", "r2", "r3", "r4"][..]).prop_map(start),
        3 => (host(), report()).prop_map(|(host, report)| Wanted::ReportHost { host, report }),
        1 => (host(), busy_port()).prop_map(|(host, port)| Wanted::ReportBusyPort { host, port }),
        1 => (host(), weighted(0.8, 0..10_000_u32)).prop_map(|(host, drain_ms)| Wanted::DrainHost { host, drain_ms }),
        1 => host().prop_map(|host| Wanted::RemoveHost { host }),
        2 => (session(), disconnect_cause())
            .prop_map(|(session, cause)| Wanted::CloseSession { session, cause }),
        3 => silence(),
        1 => rejection().prop_map(|rejection| Wanted::RecordRejection { rejection }),
        3 => (service(), spec()).prop_map(|(service, spec)| Wanted::DeclareService { service, spec }),
        1 => service().prop_map(|service| Wanted::RetireService { service }),
        2 => (view_name(), node_view()).prop_map(|(name, view)| Wanted::SetView { name, view }),
        1 => view_name().prop_map(|name| Wanted::RemoveView { name }),
        2 => (weighted(0.7, service()), rules())
            .prop_map(|(service, policy)| Wanted::SetPolicy { service, policy }),
    ]
}

/// Who is silent, as the timers could say.
fn silence() -> impl Strategy<Value = Wanted> {
    let some = || vec((worker(), aim()), 0..12);
    prop_oneof![
        3 => (some(), some()).prop_map(|(overdue, quiet)| Wanted::ExpireSilent { overdue, quiet }),
        1 => (aim(), some()).prop_map(|(hold, quiet)| Wanted::ReviewHold { hold, quiet }),
        1 => (aim(), some()).prop_map(|(hold, overdue)| Wanted::EndHold { hold, overdue }),
    ]
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![9 => Just(Aim::Live), 1 => Just(Aim::Old)]
}

/// Nearly every worker of the world, without ports, and then mostly silence: a crowd.
pub fn crowd() -> impl Strategy<Value = Vec<Step>> {
    let entries =
        (subsequence(every_worker(), 9..=12), vec(registering(), 12)).prop_map(|(workers, wishes)| {
            let entry = |(worker, wish)| {
                let wanted = Wanted::Register(Registering { worker, ports: Vec::new(), ..wish });
                Step { after_ms: 0, wanted }
            };
            workers.into_iter().zip(wishes).map(entry).collect::<Vec<_>>()
        });
    let silent = (silence(), after_ms()).prop_map(|(wanted, after_ms)| Step { after_ms, wanted });
    let later = prop_oneof![4 => silent, 3 => step(worker().boxed())];
    (entries, vec(later, 5..15)).prop_map(|(entries, later)| [entries, later].concat())
}

// Around the 30 s for which a port rests, and none at all, as within one batch.
fn after_ms() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 2 => 1..2_000_u64, 1 => 10_000..40_000_u64]
}

fn start(name: &str) -> Wanted {
    Wanted::StartReplica { replica: ReplicaId::new(name).expect("a valid name") }
}

fn requests() -> impl Strategy<Value = Vec<PortRequest>> {
    let number = weighted(0.4, 20_000..20_004_u16);
    let address = weighted(0.1, 1..3_u8);
    let port = (number, address).prop_map(|(number, address)| Listen::Port {
        number: number.and_then(NonZeroU16::new),
        address: address.map(|last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))),
    });
    let place = prop_oneof![6 => port, 1 => socket_path().prop_map(Listen::Path)];
    let names = subsequence(vec!["http", "admin", "grpc"], 0..=3).prop_shuffle();
    (names, vec(place, 3)).prop_map(|(names, places)| {
        let request =
            |(name, listen)| PortRequest { name: PortName::new(name).expect("a valid name"), listen };
        names.into_iter().zip(places).map(request).collect()
    })
}

fn registering() -> impl Strategy<Value = Registering> {
    let share = (weighted(0.3, 1..100_u32), 0..3_u32);
    let parts = (worker(), requests(), readiness(), share, weighted(0.2, locality()), session(), lease());
    parts.prop_map(|(worker, ports, readiness, (weight, priority), locality, session, lease)| Registering {
        worker,
        ports,
        readiness,
        weight: weight.and_then(NonZeroU32::new),
        priority,
        locality,
        metadata: BTreeMap::new(),
        process: None,
        session,
        lease,
    })
}
