//! Waiting until every client has what there was at an offset.

use std::str::FromStr;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::Sources;
use super::proxies::RejectedView;
use crate::engine::wall_clock;
use crate::events::{Glob, InvalidOffset, Offset};
use crate::problem::{Problem, QueryOf};
use crate::projection::resources::TypeUrl;
use crate::xds::Standing;
use crate::xds::ledger::{StreamStatus, TypeStatus};

/// How long one request waits when it does not say, in milliseconds.
const TIMEOUT_MS_DEFAULT: u64 = 10_000;

/// How long one request may wait, in milliseconds: less than what proxies between us and the caller allow. Whoever
/// wants to wait longer asks again.
pub const TIMEOUT_MS_MAX: u64 = 60_000;

/// A client follows a link (listener, route, cluster, assignment) a moment after it has accepted it; a result must
/// hold for so long.
const LINKS_FOLLOWED_WITHIN: Duration = Duration::from_millis(50);

/// How long is between two looks while much happens: each goes over every stream.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// How long is between two looks while nothing happens: a silent stream stops to count by time alone.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many streams an answer lists: enough to see who it is.
const STREAMS_LISTED_MAX: usize = 100;

/// Which offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Target {
    /// The one that the log is at when it is asked.
    #[default]
    Latest,
    /// This one.
    At(Offset),
}

impl FromStr for Target {
    type Err = InvalidOffset;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "latest" { Ok(Self::Latest) } else { text.parse().map(Self::At) }
    }
}

impl TryFrom<String> for Target {
    type Error = InvalidOffset;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// How the clients stand with an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitView {
    /// The offset.
    pub offset: u64,
    /// The offset that the log is at.
    pub head: u64,
    /// `reached`, `rejected` when everybody has answered and some refused, or `waiting` when the time was over before.
    pub outcome: String,
    /// How many streams have it. One that it does not concern has it too.
    pub reached: usize,
    /// How many streams lack it.
    pub behind: usize,
    /// Those that lack it, by node, at most 100.
    pub streams: Vec<BehindView>,
}

/// A stream that lacks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BehindView {
    /// The node id that it gave itself; empty before it has said anything.
    pub node: String,
    /// From where, where that is known.
    pub peer: Option<String>,
    /// How many events it is behind.
    pub lag: u64,
    /// What it lacks; nothing before it has asked for anything.
    pub types: Vec<BehindTypeView>,
}

/// A type of which a client lacks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BehindTypeView {
    /// `CDS`, `EDS`, `LEDS`, `LDS` or `RDS`.
    pub r#type: String,
    /// `waiting` or `rejected`.
    pub state: String,
    /// The version of the newest response that it accepted.
    pub held: Option<String>,
    /// The version that it should have.
    pub wanted: String,
    /// What it refused, and why.
    pub rejected: Option<RejectedView>,
}

/// What is waited for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    #[serde(default)]
    offset: Target,
    node: Option<Glob>,
    timeout_ms: Option<u64>,
}

pub(super) async fn wait(
    State(sources): State<Sources>,
    QueryOf(wish): QueryOf<Wish>,
) -> Result<Json<WaitView>, Problem> {
    let timeout_ms = wish.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT);
    if timeout_ms > TIMEOUT_MS_MAX {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_argument",
            format!("timeout_ms={timeout_ms} is more than {TIMEOUT_MS_MAX}"),
            "ask again with the same offset when the time is over",
        ));
    }
    let offset = match wish.offset {
        Target::Latest => sources.handle.snapshot().offset(),
        Target::At(offset) => offset,
    };
    let waiting = Waiting { sources, offset, node: wish.node };
    let ended = timeout(Duration::from_millis(timeout_ms), waiting.end()).await;
    Ok(Json(ended.unwrap_or_else(|_elapsed| waiting.look().1)))
}

/// One wait.
struct Waiting {
    sources: Sources,
    offset: Offset,
    node: Option<Glob>,
}

impl Waiting {
    /// Waits until nobody is waited for.
    async fn end(&self) -> WaitView {
        let mut snapshots = self.sources.handle.snapshots();
        if snapshots.wait_for(|snapshot| snapshot.offset() >= self.offset).await.is_err() {
            return self.look().1;
        }
        let mut changes = self.sources.ledger.changes();
        loop {
            changes.mark_unchanged();
            let (standing, _) = self.look();
            if standing != Standing::Waiting {
                sleep(LINKS_FOLLOWED_WITHIN).await;
                let (later, view) = self.look();
                if later != Standing::Waiting {
                    return view;
                }
            }
            tokio::select! {
                _ = changes.changed() => sleep(LOOK_PAUSE).await,
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    fn look(&self) -> (Standing, WaitView) {
        let head = self.sources.handle.snapshot().offset();
        let progress = self.sources.ledger.progress(self.offset, self.node.as_ref(), wall_clock());
        let streams = progress.behind.iter();
        let worst = streams.map(|stream| stream.standing(self.offset, wall_clock())).max();
        // Somebody who is named must be there.
        let nobody = self.node.is_some() && progress.reached == 0 && worst.is_none();
        let standing =
            if head < self.offset || nobody { Standing::Waiting } else { worst.unwrap_or(Standing::Reached) };
        let listed = progress.behind.iter().take(STREAMS_LISTED_MAX);
        let view = WaitView {
            offset: self.offset.get(),
            head: head.get(),
            outcome: word(standing).to_owned(),
            reached: progress.reached,
            behind: progress.behind.len(),
            streams: listed.map(|stream| behind(stream, self.offset)).collect(),
        };
        (standing, view)
    }
}

fn behind(stream: &StreamStatus, offset: Offset) -> BehindView {
    let lacking = stream.types.iter().filter(|(_, status)| status.standing(offset) != Standing::Reached);
    BehindView {
        node: stream.node.id().to_owned(),
        peer: stream.peer.map(|address| address.to_string()),
        lag: stream.lag(),
        types: lacking.map(|(type_url, status)| behind_type(stream, *type_url, status, offset)).collect(),
    }
}

fn behind_type(
    stream: &StreamStatus,
    type_url: TypeUrl,
    status: &TypeStatus,
    offset: Offset,
) -> BehindTypeView {
    BehindTypeView {
        r#type: type_url.to_string(),
        state: word(status.standing(offset)).to_owned(),
        held: status.acked.map(|version| version.to_string()),
        wanted: stream.world(type_url).version().to_string(),
        rejected: status.rejection.as_ref().map(|rejection| RejectedView::of(stream, rejection)),
    }
}

const fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Reached => "reached",
        Standing::Rejected => "rejected",
        Standing::Waiting => "waiting",
    }
}
