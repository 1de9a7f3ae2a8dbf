//! What a hook may look at: facts in the state, and nothing else.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::events::WorkerKey;
use crate::events::event::{Endpoint, HealthSource, Locality, Verdict};
use crate::projection::state::{Opinion, Worker};

/// One endpoint of a worker, and the worker.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointFacts<'a> {
    /// What the worker serves.
    pub service: &'a str,
    /// What it calls itself.
    pub id: &'a str,
    /// Where it runs.
    pub host: &'a str,
    /// Where it stands.
    pub locality: &'a Locality,
    /// The endpoint.
    pub endpoint: Place<'a>,
    /// Its labels.
    pub metadata: &'a BTreeMap<String, String>,
    /// What those who watch it say.
    pub monitors: Monitors<'a>,
    /// The worst of it.
    pub verdict: &'static str,
}

/// Where an endpoint listens.
#[derive(Clone, Debug, Serialize)]
pub struct Place<'a> {
    /// What the worker calls the port.
    pub port: &'a str,
    /// `host:port`, with brackets around IPv6, or `unix:/path`.
    pub address: String,
    /// The port's number; 0 for a socket with a path.
    pub number: u16,
}

/// The verdict of each source, by the source's name.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Monitors<'a> {
    #[serde(serialize_with = "by_name")]
    opinions: &'a BTreeMap<HealthSource, Opinion>,
}

impl<'a> Monitors<'a> {
    pub(super) const fn of(opinions: &'a BTreeMap<HealthSource, Opinion>) -> Self {
        Self { opinions }
    }

    /// What this source says; healthy when it has said nothing.
    #[must_use]
    pub fn verdict_of(&self, source: &HealthSource) -> Verdict {
        self.opinions.get(source).map_or(Verdict::Healthy, |opinion| opinion.verdict)
    }
}

fn by_name<S: serde::Serializer>(
    opinions: &&BTreeMap<HealthSource, Opinion>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer
        .collect_map(opinions.iter().map(|(source, opinion)| (source.to_string(), opinion.verdict.as_str())))
}

impl<'a> EndpointFacts<'a> {
    pub(super) fn of(
        key: &'a WorkerKey,
        worker: &'a Worker,
        locality: &'a Locality,
        endpoint: &'a Endpoint,
    ) -> Self {
        let number = endpoint.address.port().unwrap_or_default();
        Self {
            service: key.service.as_str(),
            id: key.id.as_str(),
            host: key.host.as_str(),
            locality,
            endpoint: Place { port: endpoint.port.as_str(), address: endpoint.address.to_string(), number },
            metadata: &worker.registration.metadata,
            monitors: Monitors::of(&worker.verdicts),
            verdict: worker.verdict().as_str(),
        }
    }
}
