//! Requests through Envoy, all the time, and a tally of what came back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::HOST;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::worker::PID_HEADER;

/// How many requests are in flight at once at most: enough that every worker has one in flight most of the time, and
/// few enough that two busy cores keep up.
const CLIENTS: usize = 4;

/// The pause of each client between two requests: some 300 requests a second in total.
const PAUSE: Duration = Duration::from_millis(10);

/// A request without an answer for this long has failed. Far longer than any pause that is expected here.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// How many failures are kept with their reasons; all are counted.
const FAILURES_KEPT: usize = 20;

/// Sends GET requests for one service through one proxy until it is finished or dropped.
///
/// A failure is what a user would call one: no answer, or any status but 200. What Envoy repeats on its own and then
/// answers with 200 is not a failure.
#[derive(Debug)]
pub struct Load {
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    clients: JoinSet<()>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Answers with status 200, by the worker that gave them.
    pub workers: BTreeMap<String, Answers>,
    /// How many requests failed.
    pub failed: u64,
    /// The first failures: when, and why.
    pub failures: Vec<(Instant, String)>,
    /// The longest time between two answers.
    pub longest_pause: Duration,
    /// When the load started.
    pub started: Instant,
    last_answer: Instant,
}

/// The answers of one worker.
#[derive(Clone, Debug)]
pub struct Answers {
    /// How many.
    pub count: u64,
    /// When the last one came.
    pub last: Instant,
    /// The process that gave it.
    pub pid: Option<i32>,
}

/// What came back between two tallies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many answers each worker gave; those that gave none are absent.
    pub workers: BTreeMap<String, u64>,
    /// How many requests failed.
    pub failed: u64,
}

impl Load {
    /// Starts the clients: requests for `service` to the proxy at `proxy`.
    #[must_use]
    pub fn start(proxy: SocketAddr, service: &str) -> Self {
        let tally = Arc::new(Mutex::new(Tally::new(Instant::now())));
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let asking = ask_for_ever(proxy, service.to_owned(), Arc::clone(&tally), stop.clone());
            clients.spawn(asking);
        }
        Self { tally, stop, clients }
    }

    /// The tally of now.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets requests in flight come back and returns the final tally.
    pub async fn finish(mut self) -> Tally {
        self.stop.cancel();
        while self.clients.join_next().await.is_some() {}
        self.tally()
    }
}

impl Tally {
    fn new(started: Instant) -> Self {
        Self {
            workers: BTreeMap::new(),
            failed: 0,
            failures: Vec::new(),
            longest_pause: Duration::ZERO,
            started,
            last_answer: started,
        }
    }

    /// How many answers with status 200 there were.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.workers.values().map(|answers| answers.count).sum()
    }

    /// What came back since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Share {
        let before = |name: &str| earlier.workers.get(name).map_or(0, |answers| answers.count);
        let counts = self.workers.iter().map(|(name, answers)| (name.clone(), answers.count - before(name)));
        Share {
            workers: counts.filter(|(_, count)| *count > 0).collect(),
            failed: self.failed - earlier.failed,
        }
    }

    fn record(&mut self, now: Instant, outcome: Result<(String, Option<i32>), String>) {
        match outcome {
            Ok((worker, pid)) => {
                self.longest_pause = self.longest_pause.max(now - self.last_answer);
                self.last_answer = now;
                let answers = self.workers.entry(worker).or_insert(Answers { count: 0, last: now, pid });
                *answers = Answers { count: answers.count + 1, last: now, pid };
            }
            Err(reason) => {
                self.failed += 1;
                if self.failures.len() < FAILURES_KEPT {
                    self.failures.push((now, reason));
                }
            }
        }
    }
}

impl Share {
    /// How many requests there were.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.workers.values().sum::<u64>() + self.failed
    }
}

async fn ask_for_ever(proxy: SocketAddr, service: String, tally: Arc<Mutex<Tally>>, stop: CancellationToken) {
    // One connection each, kept alive, as a real client would.
    let client = Client::builder().timeout(REQUEST_LIMIT).no_proxy().build();
    while !stop.is_cancelled() {
        let outcome = match &client {
            Ok(client) => ask(client, proxy, &service).await,
            Err(fault) => Err(fault.to_string()),
        };
        tally.lock().unwrap_or_else(PoisonError::into_inner).record(Instant::now(), outcome);
        tokio::time::sleep(PAUSE).await;
    }
}

/// One request: which worker answered, or why it failed.
async fn ask(client: &Client, proxy: SocketAddr, service: &str) -> Result<(String, Option<i32>), String> {
    let request = client.get(format!("http://{proxy}/")).header(HOST, service);
    let response = request.send().await.map_err(|fault| format!("{:#}", ErrorChain(&fault)))?;
    let status = response.status();
    let pid = response.headers().get(PID_HEADER).and_then(|pid| pid.to_str().ok()?.parse().ok());
    let text = response.text().await.map_err(|fault| format!("{:#}", ErrorChain(&fault)))?;
    if status == reqwest::StatusCode::OK {
        Ok((text.trim().to_owned(), pid))
    } else {
        Err(format!("status {}: {}", status.as_u16(), text.trim()))
    }
}

/// An error with all its causes in one line.
struct ErrorChain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{ports, worker};

    #[tokio::test]
    async fn answers_and_failures_are_told_apart() {
        let address = ports::free_address().unwrap();
        let load = Load::start(address, "shop");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let early = load.tally();
        assert!(early.failed > 0 && early.answered() == 0, "nobody listened yet: {early:?}");
        assert!(early.failures[0].1.contains("Connection refused"), "{:?}", early.failures[0]);

        let mut server = JoinSet::new();
        server.spawn(worker::serve(address, "a".to_owned()));
        while load.tally().answered() < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let middle = load.tally();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let share = load.tally().since(&middle);
        assert_eq!(share.failed, 0);
        assert_eq!(share.requests(), share.workers["a"]);
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(load.finish().await.workers["a"].pid, Some(pid));
    }
}
