//! The control plane dies again and again; what it acknowledged stays, and Envoy does not notice.

use std::time::Duration;

use foldplane::demo::load::Load;
use foldplane::proto::attach_request::Request;
use foldplane::proto::attach_response::Response;
use foldplane::proto::workers_client::WorkersClient;
use foldplane::proto::{AttachRequest, Ready, Register, Unready, WorkerRef, answer};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::support::{World, envoy, eventually, worker};

/// How often it is killed.
const KILLS: u64 = 20;

/// What the control plane acknowledged: an offset, and the reason that the event there must carry, if it is an `Unready`.
type Acknowledged = (u64, Option<String>);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_twenty_times_under_load_it_forgets_nothing_and_repeats_nothing() {
    let mut world = World::start().await;
    let workers = ["a", "b"].map(|id| worker::start(&world.plane, "web", id));
    envoy::hosts_become(&world.proxy, "web", &workers.each_ref().map(|worker| worker.address)).await;
    let load = Load::start(world.proxy.listener, "web");
    let (acknowledge, mut acknowledged) = mpsc::channel(1 << 20);
    let mut reporter = JoinSet::new();
    reporter.spawn(report_for_ever(world.plane.url(), acknowledge));
    let told = Told::to(&world).await;
    let mut known: Vec<Acknowledged> = Vec::new();

    for kill in 0..KILLS {
        let before = known.len();
        eventually("acknowledged reports", async || {
            known.extend(std::iter::from_fn(|| acknowledged.try_recv().ok()));
            if known.len() > before + 20 { Ok(()) } else { Err(format!("{} reports", known.len())) }
        })
        .await;
        // Different moments of the writer's work.
        tokio::time::sleep(Duration::from_micros(kill * 700)).await;
        world.plane.kill().await;
        world.plane.restart().await;
        world.plane.workers_are_ready("web", workers.len()).await;
        connected(&world).await;
    }
    known.extend(std::iter::from_fn(|| acknowledged.try_recv().ok()));
    all_are_there(&known, &world.plane.events().await);
    // What is sent after a rejoin would have come by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    told.nothing_since(&Told::to(&world).await);
    let tally = load.finish().await;
    eprintln!("{} acknowledged reports, {} requests", known.len(), tally.answered());
    assert_eq!(tally.failed, 0, "{:?}", tally.failures);
}

/// Offsets count up from 1, and at each acknowledged one stands what was acknowledged.
fn all_are_there(known: &[Acknowledged], events: &[Value]) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["offset"], index + 1, "a gap before {event}");
    }
    for (offset, reason) in known {
        let event = usize::try_from(*offset).ok().and_then(|offset| events.get(offset.checked_sub(1)?));
        let event = event.unwrap_or_else(|| panic!("@{offset} was acknowledged and is gone"));
        if let Some(reason) = reason {
            assert_eq!(event["event"]["WorkerUnready"]["reason"], reason.as_str(), "{event}");
        }
    }
}

async fn connected(world: &World) {
    eventually("the return of Envoy", async || {
        let states = world.proxy.counters("^control_plane.connected_state$").await.unwrap();
        if states.values().any(|state| *state == 1) { Ok(()) } else { Err(format!("{states:?}")) }
    })
    .await;
}

/// What Envoy was told about the steady service.
#[derive(Debug)]
struct Told {
    /// How often it was sent the endpoints.
    updates: u64,
    /// How often they were what it had.
    repeats: u64,
    /// How often a cluster was changed under it, its own or another.
    clusters: u64,
}

impl Told {
    async fn to(world: &World) -> Self {
        let pattern = "^(cluster.web.update_(success|no_rebuild)|cluster_manager.cluster_modified)$";
        let counters = world.proxy.counters(pattern).await.unwrap();
        Self {
            updates: counters["cluster.web.update_success"],
            repeats: counters["cluster.web.update_no_rebuild"],
            clusters: counters["cluster_manager.cluster_modified"],
        }
    }

    /// Each return of Envoy names its endpoints and is answered once, as the protocol wants (xds-rules 9). Beyond that
    /// nothing may come, least of all when the workers are back.
    fn nothing_since(&self, now: &Self) {
        let (updates, repeats) = (now.updates - self.updates, now.repeats - self.repeats);
        assert_eq!(updates, repeats, "endpoints changed: {self:?}, {now:?}");
        assert!(updates <= KILLS, "more than one answer for each return: {self:?}, {now:?}");
        assert_eq!(now.clusters, self.clusters, "clusters changed: {self:?}, {now:?}");
    }
}

/// A supervisor that reports as fast as it is answered, and comes back whenever it is cut off.
async fn report_for_ever(url: String, acknowledge: mpsc::Sender<Acknowledged>) {
    for session in 0_u64.. {
        if let Ok(mut client) = WorkersClient::connect(url.clone()).await {
            // It ends with the control plane; the next session goes on.
            let _cut_off = report(&mut client, session, &acknowledge).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn report(
    client: &mut WorkersClient<tonic::transport::Channel>,
    session: u64,
    acknowledge: &mpsc::Sender<Acknowledged>,
) -> Option<()> {
    let (requests, stream) = mpsc::channel(4);
    let mut answers = client.attach(ReceiverStream::new(stream)).await.ok()?.into_inner();
    let register = Register {
        service: "churn".to_owned(),
        host: "test".to_owned(),
        id: format!("worker-{session}"),
        ..Register::default()
    };
    send(&requests, 0, Request::Register(register)).await?;
    let (offset, worker) = accepted(&mut answers).await?;
    acknowledge.send((offset, None)).await.ok()?;
    for number in 1.. {
        let reason = format!("session {session} report {number}");
        let unready = Unready { worker: worker.clone(), reason: reason.clone() };
        send(&requests, 2 * number, Request::Unready(unready)).await?;
        acknowledge.send((accepted(&mut answers).await?.0, Some(reason))).await.ok()?;
        let ready = Ready { worker: worker.clone() };
        send(&requests, 2 * number + 1, Request::Ready(ready)).await?;
        acknowledge.send((accepted(&mut answers).await?.0, None)).await.ok()?;
    }
    Some(())
}

async fn send(requests: &mpsc::Sender<AttachRequest>, request_id: u64, request: Request) -> Option<()> {
    requests.send(AttachRequest { request_id, request: Some(request) }).await.ok()
}

async fn accepted(
    answers: &mut Streaming<foldplane::proto::AttachResponse>,
) -> Option<(u64, Option<WorkerRef>)> {
    let Some(Response::Answer(answer)) = answers.message().await.ok()??.response else {
        panic!("an order instead of an answer");
    };
    match answer.result.unwrap() {
        answer::Result::Accepted(accepted) => {
            Some((accepted.offset, accepted.registered.and_then(|registered| registered.worker)))
        }
        answer::Result::Rejected(rejected) => panic!("{rejected:?}"),
    }
}
