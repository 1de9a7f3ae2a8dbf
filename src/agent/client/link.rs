//! The shell of a session: the socket, the clock, and the owner's two queues.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the shell is where the session's machine gets its time from"
)]

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

use crate::proto::workers_client::WorkersClient;
use crate::proto::{AttachRequest, AttachResponse, Register, ReportBusyPort, ReportHost};

use super::machine::{Effect, IN_FLIGHT_MAX, Input, Machine};
use super::{Notice, Opinion, Ticket, Wish};

/// Commands of the owner that wait: a supervisor's burst. The session takes them faster than it sends.
const COMMANDS_MAX: usize = 256;

/// Notices that wait for the owner. Beyond them the session reads no more from the control plane.
const NOTICES_MAX: usize = 256;

/// How long an attempt to open a session may take in all; a host that is down answers nothing.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// How often the connection is checked while it is silent: what xDS servers tolerate (xds-rules; grpc/grpc-go#2202).
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);

/// How long the other side may take to answer such a check.
const KEEPALIVE_MAX: Duration = Duration::from_secs(5);

/// Where a session goes.
#[derive(Clone, Debug)]
pub struct Config {
    /// The control plane's API, such as `http://127.0.0.1:18080`.
    pub server: String,
    /// What this host lends, if anybody has to say so: by default the ports 20000 to 32000 of 127.0.0.1.
    pub host: Option<ReportHost>,
    /// Scatters the waits of many sessions; any number that differs between them.
    pub seed: u64,
}

/// A server address that is no URL.
#[derive(Debug, thiserror::Error)]
#[error("the server address {server:?} is not a URL such as http://127.0.0.1:18080")]
pub struct InvalidServer {
    server: String,
    #[source]
    source: tonic::transport::Error,
}

/// One session. It opens at once, in a task of its own; dropping it closes the session, which is the death of its
/// workers.
#[derive(Debug)]
pub struct Client {
    commands: mpsc::Sender<Input>,
    notices: mpsc::Receiver<Notice>,
    /// Owns the task: it ends with the client.
    _task: JoinSet<()>,
}

impl Client {
    /// Starts a session with the control plane. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`InvalidServer`] when the address is no URL. A server that cannot be reached is no error: it is tried again,
    /// and [`Notice::Disconnected`] says so.
    pub fn start(config: &Config) -> Result<Self, InvalidServer> {
        let endpoint = Endpoint::from_shared(config.server.clone())
            .map_err(|source| InvalidServer { server: config.server.clone(), source })?
            .connect_timeout(OPEN_MAX)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_EVERY)
            .keep_alive_timeout(KEEPALIVE_MAX)
            .keep_alive_while_idle(true);
        let (commands, commands_in) = mpsc::channel(COMMANDS_MAX);
        let (notices_out, notices) = mpsc::channel(NOTICES_MAX);
        let shell = Shell {
            machine: Machine::new(config.seed, config.host.clone()),
            endpoint,
            link: Link::Closed,
            started: Instant::now(),
            notices: notices_out,
            untold: VecDeque::new(),
        };
        let mut task = JoinSet::new();
        task.spawn(shell.drive(commands_in));
        Ok(Self { commands, notices, _task: task })
    }

    /// Hands over a worker to register. The ticket must be new in this session.
    pub async fn add(&self, ticket: Ticket, register: Register) {
        self.command(Input::Add(ticket, register)).await;
    }

    /// Says what is wanted of a worker from now on.
    pub async fn wish(&self, ticket: Ticket, wish: Wish) {
        self.command(Input::Wish(ticket, wish)).await;
    }

    /// Passes on what a source thinks of a worker: `worker`, `process`, `memory`, `utilization` or `custom:NAME`. It holds until
    /// the same source thinks otherwise. Only changes are sent.
    pub async fn judge(&self, ticket: Ticket, source: &str, opinion: Opinion) {
        self.command(Input::Judge(ticket, source.to_owned(), opinion)).await;
    }

    /// Gives a worker another share of the load; nothing takes it back to 1.
    pub async fn weigh(&self, ticket: Ticket, weight: Option<u32>) {
        self.command(Input::Weigh(ticket, weight)).await;
    }

    /// Says that a stranger sits on a port of a host, so that it is not handed out for a while.
    pub async fn report_busy_port(&self, host: &str, port: u16) {
        let report = ReportBusyPort { host: host.to_owned(), port: port.into() };
        self.command(Input::Busy(report)).await;
    }

    /// The next thing that happened; nothing when the session's task is gone.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }

    async fn command(&self, input: Input) {
        if self.commands.send(input).await.is_err() {
            tracing::error!("the worker session has ended; what it was told is lost");
        }
    }
}

struct Shell {
    machine: Machine,
    endpoint: Endpoint,
    link: Link,
    started: Instant,
    notices: mpsc::Sender<Notice>,
    /// What the owner has not taken yet: what one answer brings, at most one a worker.
    untold: VecDeque<Notice>,
}

enum Link {
    Closed,
    Opening(Pin<Box<dyn Future<Output = Result<Stream, String>> + Send>>),
    Open(Box<Stream>),
}

struct Stream {
    out: mpsc::Sender<AttachRequest>,
    responses: Streaming<AttachResponse>,
}

impl Shell {
    async fn drive(mut self, mut commands: mpsc::Receiver<Input>) {
        let mut input = Some(Input::Woken);
        while let Some(happened) = input {
            let effects = self.machine.handle(self.started.elapsed(), happened);
            effects.into_iter().for_each(|effect| self.perform(effect));
            input = self.next_input(&mut commands).await;
        }
    }

    /// Waits for what happens next; nothing when the owner is gone.
    async fn next_input(&mut self, commands: &mut mpsc::Receiver<Input>) -> Option<Input> {
        loop {
            let deadline =
                self.machine.deadline().map(|at| tokio::time::Instant::from_std(self.started + at));
            tokio::select! {
                permit = self.notices.reserve(), if !self.untold.is_empty() => {
                    let permit = permit.ok()?;
                    if let Some(notice) = self.untold.pop_front() {
                        permit.send(notice);
                    }
                }
                command = commands.recv() => return command,
                input = self.link.next(), if self.untold.len() < NOTICES_MAX => return Some(input),
                () = until(deadline) => return Some(Input::Woken),
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Open => self.link = Link::Opening(Box::pin(open(self.endpoint.clone()))),
            Effect::Close => self.link = Link::Closed,
            Effect::Send(request) => self.link.send(request),
            Effect::Tell(notice) => self.untold.push_back(notice),
        }
    }
}

impl Link {
    async fn next(&mut self) -> Input {
        match self {
            Self::Closed => pending().await,
            Self::Opening(opening) => match opening.await {
                Ok(stream) => {
                    *self = Self::Open(Box::new(stream));
                    Input::Opened
                }
                Err(problem) => self.close(problem),
            },
            Self::Open(stream) => match stream.responses.message().await {
                Ok(Some(response)) => Input::Heard(response),
                Ok(None) => self.close("the control plane ended the session".to_owned()),
                Err(status) => self.close(describe(&status)),
            },
        }
    }

    fn close(&mut self, problem: String) -> Input {
        *self = Self::Closed;
        Input::Lost(problem)
    }

    /// The queue has room for every request that may be unanswered, so a refusal means that the stream is
    /// over, which its other half reports.
    fn send(&mut self, request: AttachRequest) {
        if let Self::Open(stream) = self
            && stream.out.try_send(request).is_err()
        {
            tracing::debug!("a request met a session that is over");
        }
    }
}

async fn open(endpoint: Endpoint) -> Result<Stream, String> {
    let attach = async {
        let channel = endpoint.connect().await.map_err(|error| chain(&error))?;
        let (out, requests) = mpsc::channel(IN_FLIGHT_MAX);
        let response = WorkersClient::new(channel).attach(ReceiverStream::new(requests)).await;
        Ok(Stream { out, responses: response.map_err(|status| describe(&status))?.into_inner() })
    };
    // Boxed: the future of a whole HTTP/2 handshake is large, and it lives in an enumeration.
    let attach = attach.boxed();
    match tokio::time::timeout(OPEN_MAX, attach).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("no answer within {} s", OPEN_MAX.as_secs())),
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}

/// What a status says, with what caused it.
fn describe(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => chain(source),
        None => format!("{}: {}", status.code().description(), status.message()),
    }
}

/// An error with all that caused it, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}
