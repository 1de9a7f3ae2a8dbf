//! What the control plane asks of workers, brought to the session that speaks for each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::convert;
use crate::events::event::RemovalCause;
use crate::events::{Envelope, Event, WorkerRef};
use crate::proto::order::Order;
use crate::proto::{AttachResponse, DrainOrder, StopOrder, attach_response};

type Responses = mpsc::Sender<Result<AttachResponse, Status>>;

/// Who speaks for which worker.
#[derive(Debug, Default)]
pub(super) struct Orders {
    by_worker: Mutex<BTreeMap<WorkerRef, Responses>>,
}

impl Orders {
    /// From now on the orders of this worker go here.
    pub(super) fn add(&self, worker: WorkerRef, responses: Responses) {
        self.locked().insert(worker, responses);
    }

    /// A session is over; a worker that another session has taken over since stays with that one.
    pub(super) fn remove(&self, workers: &BTreeSet<WorkerRef>, responses: &Responses) {
        let mut by_worker = self.locked();
        for worker in workers {
            if by_worker.get(worker).is_some_and(|current| current.same_channel(responses)) {
                by_worker.remove(worker);
            }
        }
    }

    /// Tells whoever speaks for the worker that it was removed.
    pub(super) fn stop(&self, worker: &WorkerRef, cause: &RemovalCause) {
        self.give(worker, Order::Stop(StopOrder { cause: cause.to_string() }));
    }

    fn give(&self, worker: &WorkerRef, order: Order) {
        let response = attach_response::Response::Order(crate::proto::Order {
            worker: Some(convert::worker(worker)),
            order: Some(order),
        });
        let is_last = matches!(&response, attach_response::Response::Order(order)
            if matches!(order.order, Some(Order::Stop(_))));
        let mut by_worker = self.locked();
        if let Some(responses) = by_worker.get(worker) {
            // A session that leaves 256 responses unread is stuck; it learns of its workers when it asks again.
            if responses.try_send(Ok(response.into())).is_err() {
                tracing::warn!(%worker, "an order could not be given: the session does not read");
            }
        }
        if is_last {
            by_worker.remove(worker);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<WorkerRef, Responses>> {
        self.by_worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns durable events into orders until `shutdown`.
pub(super) async fn follow(
    orders: Arc<Orders>,
    mut events: broadcast::Receiver<Arc<[Envelope]>>,
    shutdown: CancellationToken,
) {
    loop {
        let batch = tokio::select! {
            () = shutdown.cancelled() => return,
            batch = events.recv() => batch,
        };
        match batch {
            Ok(batch) => batch.iter().for_each(|envelope| obey(&orders, &envelope.event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "orders of some batches were not given: too many events at once");
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

fn obey(orders: &Orders, event: &Event) {
    match event {
        Event::WorkerDraining { worker, drain_ms, .. } => {
            orders.give(worker, Order::Drain(DrainOrder { drain_ms: *drain_ms }));
        }
        Event::WorkerRemoved { worker, cause } => {
            if is_news_to_the_worker(cause) {
                orders.stop(worker, cause);
            }
        }
        Event::ReplicaStarted { .. }
        | Event::HostReported { .. }
        | Event::WorkerRegistered { .. }
        | Event::WorkerReady { .. }
        | Event::WorkerUnready { .. }
        | Event::WorkerDisconnected { .. }
        | Event::WorkerReconnected { .. }
        | Event::UpdateRejected { .. }
        | Event::WorkerHealthReported { .. }
        | Event::WorkerReweighted { .. }
        | Event::HostDraining { .. }
        | Event::HostRemoved { .. }
        | Event::PortBusy { .. }
        | Event::ServiceDeclared { .. }
        | Event::ServiceRetired { .. }
        | Event::NodeViewSet { .. }
        | Event::NodeViewRemoved { .. }
        | Event::PolicyChanged { .. }
        | Event::ExpiryHeld { .. }
        | Event::ExpiryReleased { .. }
        | Event::ResourceApplied { .. }
        | Event::ResourceDeleted { .. } => {}
    }
}

const fn is_news_to_the_worker(cause: &RemovalCause) -> bool {
    match cause {
        RemovalCause::DidNotRejoin
        | RemovalCause::Replaced
        | RemovalCause::Drained
        | RemovalCause::Operator
        | RemovalCause::HostRemoved
        | RemovalCause::LeaseExpired
        | RemovalCause::ServiceRetired => true,
        RemovalCause::Deregistered | RemovalCause::Exited(_) | RemovalCause::Disconnected(_) => false,
    }
}
