//! One stream: feeds its machine and hands out what it answers, whenever the wire has room.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::Shared;
use super::sight::Sight;
use super::watchdog::Watchdog;
use crate::events::{Offset, Timestamp};
use crate::projection::resources::{Resources, TypeUrl};
use crate::xds::ledger::{Entry, StreamStatus};
use crate::xds::node::Node;
use crate::xds::protocol::{Machine, RESPONSE_BYTES_MAX, Rejection, Response, Served, Variant, Verdict};
use crate::xds::wire::{Frame, WireRequest};

/// Where a stream comes from.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) peer: Option<SocketAddr>,
    /// Closes its connection.
    pub(super) connection: CancellationToken,
}

/// A stream and what it needs.
pub(super) struct Session<M> {
    shared: Arc<Shared>,
    variant: Variant,
    resources: watch::Receiver<Arc<Resources>>,
    requests: Streaming<M>,
    machine: Machine,
    entry: Entry,
    node: Node,
    sight: Sight,
    opened: Instant,
    heard: Instant,
    frame: Option<Frame>,
    watchdog: Watchdog,
    ended: bool,
}

/// What woke a stream.
enum Wake<M> {
    Shutdown,
    Request(Result<Option<M>, Status>),
    Changed,
    Deadline,
}

impl<M: WireRequest> Session<M> {
    pub(super) fn new(
        shared: Arc<Shared>,
        variant: Variant,
        served: Served,
        guest: Guest,
        requests: Streaming<M>,
    ) -> Self {
        let mut resources = shared.resources.clone();
        let seen = Arc::clone(&resources.borrow_and_update());
        let stream = shared.next_stream();
        let machine = Machine::new(stream, variant, served, &seen);
        let entry = shared.ledger.open(StreamStatus {
            stream,
            node: Node::default(),
            peer: guest.peer,
            variant,
            served,
            since: now_for_people(),
            seen,
            settled: Offset::ZERO,
            views: Vec::new(),
            types: BTreeMap::new(),
        });
        let opened = Instant::now();
        let watchdog = Watchdog::new(guest.connection, shared.limits.unread);
        let (node, sight) = (Node::default(), Sight::new(Arc::clone(&shared.lenses)));
        Self {
            shared,
            variant,
            resources,
            requests,
            machine,
            entry,
            node,
            sight,
            opened,
            heard: opened,
            frame: None,
            watchdog,
            ended: false,
        }
    }

    /// The next piece of the response, or how the stream ends; nothing after that.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Status>> {
        self.watchdog.asked();
        if self.ended {
            return None;
        }
        loop {
            if let Some(piece) = self.frame.as_mut().and_then(Frame::pop) {
                self.watchdog.handed_out();
                return Some(Ok(piece));
            }
            self.frame = self.respond();
            if self.frame.is_some() {
                continue;
            }
            if let Err(status) = self.wait().await {
                self.ended = true;
                return Some(Err(status));
            }
        }
    }

    fn respond(&mut self) -> Option<Frame> {
        let resources = self.look();
        let response = self.machine.next(&resources, self.opened.elapsed());
        self.entry.update(&self.machine);
        let response = response?;
        self.shared.ledger.count_response();
        self.warn_if_oversized(&response);
        Some(Frame::new(self.variant, response))
    }

    /// The newest resources, as far as this node sees them.
    fn look(&mut self) -> Arc<Resources> {
        let whole = Arc::clone(&self.resources.borrow_and_update());
        let (shown, news) = self.sight.look(&whole);
        if let Some(views) = news {
            self.entry.set_views(views);
        }
        shown
    }

    /// Waits for something that may call for a response.
    async fn wait(&mut self) -> Result<(), Status> {
        match self.wake().await {
            Wake::Shutdown => Err(Status::unavailable("the server is shutting down")),
            Wake::Request(Ok(Some(message))) => self.handle(message),
            // The client is done.
            Wake::Request(Ok(None)) => Err(Status::ok("")),
            Wake::Request(Err(status)) => Err(status),
            Wake::Changed => Ok(()),
            Wake::Deadline => self.check_silence(),
        }
    }

    async fn wake(&mut self) -> Wake<M> {
        let deadline = self.deadline();
        tokio::select! {
            () = self.shared.shutdown.cancelled() => Wake::Shutdown,
            message = self.requests.message() => Wake::Request(message),
            () = changed(&mut self.resources) => Wake::Changed,
            () = reached(deadline) => Wake::Deadline,
        }
    }

    /// When to look again although nothing happened. A stream that owes nothing and is owed nothing sleeps.
    fn deadline(&self) -> Option<Instant> {
        let machine = self.machine.deadline(self.opened.elapsed()).map(|deadline| self.opened + deadline);
        [machine, self.silence_ends()].into_iter().flatten().min()
    }

    /// When the patience with a client ends that owes an answer.
    fn silence_ends(&self) -> Option<Instant> {
        let since = self.opened + self.machine.unanswered_since()?;
        Some(since.max(self.heard) + self.shared.limits.silence)
    }

    fn check_silence(&self) -> Result<(), Status> {
        let over = self.silence_ends().is_some_and(|end| end <= Instant::now());
        let seconds = self.shared.limits.silence.as_secs();
        if over { Err(Status::unavailable(format!("no answer for {seconds} seconds"))) } else { Ok(()) }
    }

    fn handle(&mut self, message: M) -> Result<(), Status> {
        self.heard = Instant::now();
        self.shared.ledger.count_request();
        let (node, request) = message.read();
        if let Some(node) = node
            && self.node == Node::default()
        {
            self.node = node.clone();
            self.sight.set_node(node.clone());
            self.entry.set_node(node);
        }
        let resources = self.look();
        let handled = self
            .machine
            .on_request(&request, &resources, self.opened.elapsed())
            .map_err(|refused| Status::invalid_argument(refused.to_string()))?;
        if let Some(url) = handled.unserved {
            tracing::info!(node = self.node.id(), type_url = %url, "asked for a type that is not served");
        }
        match handled.verdict {
            None | Some(Verdict::Acked(_)) => {}
            Some(Verdict::Rejected(type_url, rejection)) => self.report(type_url, &rejection),
            Some(Verdict::RejectedTogether(type_url, rejection)) => self.note(type_url, &rejection),
        }
        Ok(())
    }

    /// Shows a refusal to people.
    fn note(&self, type_url: TypeUrl, rejection: &Rejection) {
        self.shared.ledger.count_rejection();
        let names: Vec<_> = rejection.names.iter().map(ToString::to_string).collect();
        tracing::warn!(
            node = self.node.id(),
            type_url = %type_url,
            version = %rejection.version,
            names = names.join(" "),
            reason = &*rejection.message,
            "a client refused an update"
        );
    }

    /// Shows a refusal to people, and records it in the log once.
    fn report(&self, type_url: TypeUrl, rejection: &Rejection) {
        self.note(type_url, rejection);
        let Some(report) = self.shared.ledger.report(&self.node, type_url, rejection) else { return };
        match self.shared.rejections.try_send(report) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => self.shared.ledger.count_report_dropped(),
        }
    }

    fn warn_if_oversized(&self, response: &Response) {
        let bytes = response.content_bytes();
        if bytes > RESPONSE_BYTES_MAX {
            self.shared.ledger.count_oversized();
            tracing::warn!(
                node = self.node.id(),
                type_url = response.type_url.as_str(),
                bytes,
                resources = response.resources.len(),
                "a response is above the 4 MiB that gRPC clients accept by default"
            );
        }
    }
}

/// Waits for newer resources; for ever, when nobody publishes any more.
async fn changed(resources: &mut watch::Receiver<Arc<Resources>>) {
    if resources.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Waits until then; for ever, when there is no such moment.
async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn now_for_people() -> Timestamp {
    Timestamp::from_millis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default())
}
