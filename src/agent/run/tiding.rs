//! What the child says by itself, in the lines that `sd_notify` sends.

use crate::agent::client::Opinion;
use crate::proto::Verdict;

/// What the lines of our own begin with.
const OWN: &str = "X_FOLDPLANE_";

/// The longest name of a source: what a port's name may have, which is how the control plane checks it.
const SOURCE_BYTES_MAX: usize = 63;

/// How much of a line that cannot be read is shown again.
const SHOWN_CHARS_MAX: usize = 80;

/// One thing that the child said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tiding {
    /// `READY=1`: it can serve, for the first time or again.
    Ready,
    /// `X_FOLDPLANE_UNREADY=reason`: it cannot serve now.
    Unready(String),
    /// `STOPPING=1`: it is about to end.
    Stopping,
    /// `STATUS=text`: for people.
    Status(String),
    /// `WATCHDOG=1`: it is alive.
    Alive,
    /// `WATCHDOG=trigger`: it knows that it is stuck.
    Stuck,
    /// `X_FOLDPLANE_HEALTH=verdict: reason`, of the worker itself, or `X_FOLDPLANE_HEALTH_NAME=…` of a source with that name.
    Health(Source, Opinion),
    /// `X_FOLDPLANE_METRICS=requests_active=3 …`: how busy it is.
    Load(Load),
    /// A line of our own that cannot be read.
    Unclear(String),
}

/// Whose opinion the child passes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The child's own.
    Worker,
    /// That of a part of it, such as `db`.
    Custom(String),
}

/// How busy the child says that it is. What a message leaves out stays as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Requests that are being served.
    pub(super) requests_active: Option<u64>,
    /// Requests that were served or are.
    pub(super) requests_total: Option<u64>,
    /// Connections that are open.
    pub(super) connections_active: Option<u64>,
    /// Connections that were open or are.
    pub(super) connections_total: Option<u64>,
}

impl Tiding {
    /// What a message says. Lines of other meaning are left out, as the protocol wants.
    pub(super) fn read(message: &[u8]) -> Vec<Self> {
        String::from_utf8_lossy(message).lines().filter_map(Self::of_line).collect()
    }

    fn of_line(line: &str) -> Option<Self> {
        match line.split_once('=')? {
            ("READY", "1") => Some(Self::Ready),
            ("STOPPING", "1") => Some(Self::Stopping),
            ("WATCHDOG", "1") => Some(Self::Alive),
            ("WATCHDOG", "trigger") => Some(Self::Stuck),
            ("STATUS", text) => Some(Self::Status(text.to_owned())),
            (name, value) => {
                let own = Self::of_our_own(name.strip_prefix(OWN)?, value);
                Some(own.unwrap_or_else(|| Self::Unclear(line.chars().take(SHOWN_CHARS_MAX).collect())))
            }
        }
    }

    fn of_our_own(name: &str, value: &str) -> Option<Self> {
        match name {
            "UNREADY" => Some(Self::Unready(value.to_owned())),
            "METRICS" => Load::read(value).map(Self::Load),
            "HEALTH" => Some(Self::Health(Source::Worker, opinion(value)?)),
            _ => Some(Self::Health(Source::custom(name.strip_prefix("HEALTH_")?)?, opinion(value)?)),
        }
    }
}

impl Source {
    fn custom(name: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = !name.is_empty() && name.len() <= SOURCE_BYTES_MAX && name.chars().all(fits);
        is_name.then(|| Self::Custom(name.to_ascii_lowercase()))
    }

    /// As the worker protocol calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Worker => "worker".to_owned(),
            Self::Custom(name) => format!("custom:{name}"),
        }
    }
}

/// `unhealthy: the database is away`; the reason may be missing.
fn opinion(value: &str) -> Option<Opinion> {
    let (verdict, reason) = value.split_once(':').unwrap_or((value, ""));
    let verdict = match verdict.trim() {
        "healthy" => Verdict::Healthy,
        "degraded" => Verdict::Degraded,
        "unhealthy" => Verdict::Unhealthy,
        _ => return None,
    };
    Some(Opinion { verdict, reason: reason.trim().to_owned() })
}

impl Load {
    /// `requests_active=3 connections_total=17`, in any order. A name that is not known here is left out: a later version
    /// may know it.
    fn read(value: &str) -> Option<Self> {
        let mut load = Self::default();
        for word in value.split_ascii_whitespace() {
            let (name, number) = word.split_once('=')?;
            let number = Some(number.parse().ok()?);
            match name {
                "requests_active" => load.requests_active = number,
                "requests_total" => load.requests_total = number,
                "connections_active" => load.connections_active = number,
                "connections_total" => load.connections_total = number,
                _ => {}
            }
        }
        Some(load)
    }

    /// Takes over what a newer message says.
    pub(super) fn update(&mut self, newer: Self) {
        self.requests_active = newer.requests_active.or(self.requests_active);
        self.requests_total = newer.requests_total.or(self.requests_total);
        self.connections_active = newer.connections_active.or(self.connections_active);
        self.connections_total = newer.connections_total.or(self.connections_total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinks(verdict: Verdict, reason: &str) -> Opinion {
        Opinion { verdict, reason: reason.to_owned() }
    }

    #[test]
    fn a_message_says_what_its_lines_say() {
        let message = b"READY=1\nMAINPID=7\nSTATUS=all=well\nX_FOLDPLANE_UNREADY=db\nWATCHDOG=1\nWATCHDOG=trigger\nSTOPPING=1\n";
        let expected = [
            Tiding::Ready,
            Tiding::Status("all=well".to_owned()),
            Tiding::Unready("db".to_owned()),
            Tiding::Alive,
            Tiding::Stuck,
            Tiding::Stopping,
        ];
        assert_eq!(Tiding::read(message), expected);
    }

    #[test]
    fn a_verdict_is_the_workers_own_or_that_of_a_named_part() {
        let own = Tiding::Health(Source::Worker, thinks(Verdict::Degraded, "cache: cold"));
        assert_eq!(Tiding::read(b"X_FOLDPLANE_HEALTH=degraded: cache: cold"), [own]);
        let [Tiding::Health(source, opinion)] = &Tiding::read(b"X_FOLDPLANE_HEALTH_Main_DB=unhealthy")[..]
        else {
            panic!("no verdict");
        };
        assert_eq!((source.name().as_str(), opinion), ("custom:main_db", &thinks(Verdict::Unhealthy, "")));
    }

    #[test]
    fn what_a_message_about_load_leaves_out_stays_as_it_was() {
        let mut load = Load::default();
        for message in ["requests_active=3 requests_total=40", "connections_active=2 of_a_later_version=1"] {
            let line = format!("X_FOLDPLANE_METRICS={message}");
            let [Tiding::Load(newer)] = Tiding::read(line.as_bytes())[..] else { panic!("no load") };
            load.update(newer);
        }
        let expected = Load {
            requests_active: Some(3),
            requests_total: Some(40),
            connections_active: Some(2),
            connections_total: None,
        };
        assert_eq!(load, expected);
    }

    #[test]
    fn nonsense_says_nothing() {
        for message in [&b""[..], b"READY=0", b"READY", b"\xff\xfe=1", b"=\n=1\n", b"ready=1", b"X_OTHER=1"] {
            assert_eq!(Tiding::read(message), [], "{message:?}");
        }
    }

    #[test]
    fn a_line_of_our_own_that_cannot_be_read_is_shown_again_cut_to_a_line() {
        let long = format!("X_FOLDPLANE_HEALTH_{}=healthy", "a".repeat(64));
        for line in [
            "X_FOLDPLANE_HEALTH=ill: db",
            "X_FOLDPLANE_HEALTH_=healthy",
            "X_FOLDPLANE_HEALTH_a/b=healthy",
            "X_FOLDPLANE_METRICS=requests_active=-1",
            "X_FOLDPLANE_METRICS=many",
            "X_FOLDPLANE_WHAT=1",
            &long,
        ] {
            let shown: String = line.chars().take(80).collect();
            assert_eq!(Tiding::read(line.as_bytes()), [Tiding::Unclear(shown)]);
        }
    }
}
