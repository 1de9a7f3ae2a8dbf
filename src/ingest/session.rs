//! One session: requests in, answers and orders out; its end is the end of its workers' lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::FuturesOrdered;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::convert;
use super::orders::Orders;
use crate::command::Command;
use crate::engine::{Handle, SubmitError};
use crate::events::event::{DisconnectCause, RemovalCause};
use crate::events::{Actor, SessionId, WorkerRef};
use crate::listen::Ending;
use crate::proto::{AttachRequest, AttachResponse, attach_response};

/// How many requests of one session may be on their way at once. A supervisor that registers hundreds of workers
/// shares flushes with itself; beyond this it waits.
const IN_FLIGHT_MAX: usize = 256;

/// A session's parts.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) actor: Actor,
    pub(super) handle: Handle,
    pub(super) orders: Arc<Orders>,
    pub(super) responses: mpsc::Sender<Result<AttachResponse, Status>>,
    /// How its connection ended, once it did.
    pub(super) ending: Ending,
}

/// What a session heard next.
enum Heard {
    Request(AttachRequest),
    Answer(AttachResponse, Option<WorkerRef>),
    /// The client has said its last word, and hears the answers that it still waits for.
    LastWord,
    Lost,
    Shutdown,
}

/// Whether the client may still say something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speech {
    GoesOn,
    IsOver,
}

/// A request on its way to its answer, with the worker that the session speaks for from then on.
type InFlight = FuturesOrdered<BoxFuture<'static, (AttachResponse, Option<WorkerRef>)>>;

/// A new id, never used before.
pub(super) fn new_session_id() -> SessionId {
    SessionId::new(&uuid::Uuid::now_v7().to_string()).expect("a UUID is a name")
}

impl Session {
    /// Serves the session to its end.
    pub(super) async fn run(self, mut requests: Streaming<AttachRequest>, shutdown: CancellationToken) {
        let mut in_flight = InFlight::new();
        let mut workers = BTreeSet::new();
        let mut speech = Speech::GoesOn;
        while speech == Speech::GoesOn || !in_flight.is_empty() {
            match self.hear(&mut requests, speech, &mut in_flight, &shutdown).await {
                Heard::Request(request) => {
                    let answer = self.begin(request).await;
                    in_flight.push_back(answer);
                }
                Heard::Answer(answer, worker) => {
                    if let Some(worker) = worker {
                        self.speak_for(worker, &mut workers);
                    }
                    if self.responses.send(Ok(answer)).await.is_err() {
                        break;
                    }
                }
                Heard::LastWord => speech = Speech::IsOver,
                Heard::Lost => break,
                Heard::Shutdown => {
                    self.end_for_shutdown(workers).await;
                    return;
                }
            }
        }
        self.orders.remove(&workers, &self.responses);
        let cause = if self.ending.is_silence() { DisconnectCause::Silent } else { DisconnectCause::Closed };
        let closed = Command::CloseSession { session: self.id, cause };
        self.handle.notify(self.actor, closed).await;
    }

    /// From now on the session gets the worker's orders; one that went again before it could is told to stop.
    fn speak_for(&self, worker: WorkerRef, workers: &mut BTreeSet<WorkerRef>) {
        self.orders.add(worker.clone(), self.responses.clone());
        if self.handle.snapshot().state().current(&worker).is_err() {
            self.orders.stop(&worker, &RemovalCause::Replaced);
        }
        workers.insert(worker);
    }

    /// Our own end is not the workers' fault: nothing is said of them.
    async fn end_for_shutdown(&self, workers: BTreeSet<WorkerRef>) {
        self.orders.remove(&workers, &self.responses);
        let leaving = Status::unavailable("the control plane is stopping: reconnect and rejoin");
        // A session that no longer reads finds out by its connection.
        let _unread = self.responses.try_send(Err(leaving));
    }

    async fn hear(
        &self,
        requests: &mut Streaming<AttachRequest>,
        speech: Speech,
        in_flight: &mut InFlight,
        shutdown: &CancellationToken,
    ) -> Heard {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => Heard::Shutdown,
            Some((answer, worker)) = in_flight.next() => Heard::Answer(answer, worker),
            request = requests.message(), if speech == Speech::GoesOn && in_flight.len() < IN_FLIGHT_MAX => match request {
                Ok(Some(request)) => Heard::Request(request),
                Ok(None) => Heard::LastWord,
                Err(_) => Heard::Lost,
            },
        }
    }

    /// Hands a request to the writer, in order, and gives the future of its answer.
    async fn begin(&self, request: AttachRequest) -> BoxFuture<'static, (AttachResponse, Option<WorkerRef>)> {
        let request_id = request.request_id;
        let command = match convert::command(request, &self.id) {
            Ok(command) => command,
            Err(rejection) => return ready((convert::rejected(request_id, &rejection), None)).boxed(),
        };
        let subject = convert::subject(&command);
        let pending = self.handle.begin(self.actor.clone(), command).await;
        async move {
            let result = match pending {
                Ok(pending) => pending.answer().await,
                Err(stopping) => Err(stopping),
            };
            match result {
                Ok(accepted) => convert::accepted(request_id, &accepted, subject.as_ref()),
                Err(SubmitError::Rejected(rejection)) => (convert::rejected(request_id, &rejection), None),
                Err(fault @ (SubmitError::StorageUnavailable { .. } | SubmitError::Stopping)) => {
                    (convert::unavailable(request_id, &fault), None)
                }
            }
        }
        .boxed()
    }
}

impl From<attach_response::Response> for AttachResponse {
    fn from(response: attach_response::Response) -> Self {
        Self { response: Some(response) }
    }
}
