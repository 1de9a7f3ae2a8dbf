//! The doors for workers, over an engine with a log in memory. Whatever comes in, the control plane stays alive, its log makes
//! sense, and its state is what the log says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use foldplane::api::{self, Sources};
use foldplane::engine::{Handle, Settings, engine, open, wall_clock};
use foldplane::events::log::MemoryLog;
use foldplane::ingest::Ingest;
use foldplane::projection::state::State;
use foldplane::projection::{Snapshot, StateDigest};
use foldplane::proto::attach_response::Response as Sent;
use foldplane::proto::{AttachRequest, AttachResponse};
use foldplane::xds::Ledger;
use http::Request;
use http_body_util::BodyExt;
use prost::Message;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

/// How many messages or requests of one input are looked at.
const MESSAGES_MAX: usize = 32;

/// How long the writer may take for a wish for nothing: it is far more than any machine needs.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// A worker session: messages, each after its length in two bytes. Each is answered once, in order.
///
/// # Panics
///
/// When an answer is missing or out of order, or as this module says.
pub fn worker_session(bytes: &[u8]) {
    on_a_plane(async |handle, shutdown| {
        let (body, mut asked) = frames(bytes);
        let mut service = Ingest::new(handle, shutdown).service();
        let request = Request::post("/foldplane.worker.v1.Workers/Attach")
            .header("content-type", "application/grpc")
            .body(Body::from(body))
            .expect("a request that is always the same");
        let response = service.call(request).await.unwrap_or_else(|never: Infallible| match never {});
        let Ok(answers) = response.into_body().collect().await else { return };
        let mut rest = &*answers.to_bytes();
        while let Some((message, after)) = split_frame(rest) {
            rest = after;
            let answer = AttachResponse::decode(message).expect("an answer can be read");
            if let Some(Sent::Answer(answer)) = answer.response {
                assert_eq!(
                    Some(answer.request_id),
                    asked.pop_front(),
                    "every request is answered once, in order"
                );
            }
        }
    });
}

/// REST requests, a line each: method, path and body.
///
/// # Panics
///
/// When an answer says that the server is at fault, or as this module says.
pub fn rest_body(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    on_a_plane(async |handle, shutdown| {
        let rest = Ingest::new(handle.clone(), shutdown).rest();
        let door: Router = api::router(Sources { handle, ledger: Ledger::default() }).merge(rest);
        for line in text.lines().take(MESSAGES_MAX) {
            let mut words = line.splitn(3, ' ');
            let (Some(method), Some(path)) = (words.next(), words.next()) else { continue };
            // What is only read may be a stream that never ends.
            if method == "GET" {
                continue;
            }
            let peer = ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 51_234)));
            let request = Request::builder().method(method).uri(path).extension(peer);
            let request = request.header("content-type", "application/json");
            let body = Body::from(words.next().unwrap_or_default().to_owned());
            let Ok(request) = request.body(body) else { continue };
            let answer =
                door.clone().oneshot(request).await.unwrap_or_else(|never: Infallible| match never {});
            assert!(!answer.status().is_server_error(), "{}: {line}", answer.status());
        }
    });
}

/// Lets `work` do what it does, and checks what must hold after it.
fn on_a_plane(work: impl AsyncFnOnce(Handle, CancellationToken)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let log = Box::new(MemoryLog::new());
        let (handle, writer) = engine(log, Snapshot::default(), Settings::default(), wall_clock);
        let shutdown = CancellationToken::new();
        let writer = tokio::spawn(writer.run(shutdown.clone()));
        work(handle.clone(), shutdown.clone()).await;
        assert_eq!(handle.probe(ALIVE_WITHIN).await, Ok(()));
        let replayed = open(handle.log().as_ref(), State::default(), Some(handle.snapshot().offset()));
        let replayed = replayed.expect("a log in memory can be read");
        assert_eq!(replayed.anomalies, [], "an event that was decided made no sense");
        let (live, replayed) = (handle.snapshot(), replayed.snapshot);
        assert_eq!(StateDigest::of(live.state()), StateDigest::of(replayed.state()));
        shutdown.cancel();
        writer.await.expect("the writer ends when it is told to");
    });
}

/// The messages as gRPC frames, and the ids of those that can be read, up to the first that cannot.
fn frames(bytes: &[u8]) -> (Vec<u8>, VecDeque<u64>) {
    let (mut rest, mut body, mut ids, mut whole) = (bytes, Vec::new(), VecDeque::new(), true);
    for _ in 0..MESSAGES_MAX {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let Some((message, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
            break;
        };
        rest = after;
        body.push(0);
        body.extend_from_slice(&u32::from(u16::from_be_bytes(*length)).to_be_bytes());
        body.extend_from_slice(message);
        match AttachRequest::decode(message) {
            Ok(request) if whole => ids.push_back(request.request_id),
            Ok(_) | Err(_) => whole = false,
        }
    }
    (body, ids)
}

fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<5>()?;
    let [_, length @ ..] = *head;
    rest.split_at_checked(u32::from_be_bytes(length) as usize)
}
