//! `/metrics`: the status as numbers, in the text format of OpenMetrics. Every name is in docs/metrics.md.

use std::fmt;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::Sources;
use super::findings::FindingKind;
use super::status::{self, StatusView};
use crate::engine::Meters;
use crate::problem::Problem;

/// What Prometheus and others ask for by this name.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn metrics(State(sources): State<Sources>) -> Result<Response, Problem> {
    let text = text(status::view(&sources), sources.handle.meters()).map_err(|fault| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", fault.to_string(), "see the server's log")
    })?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

fn text(status: StatusView, meters: &Meters) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register("foldplane_wishes", "What was asked for, by what came of it", meters.wishes.clone());
    let help = "How long it took to make a batch of events durable";
    registry.register_with_unit("foldplane_commit", help, Unit::Seconds, meters.commit_seconds.clone());
    registry.register("foldplane_commit_events", "Events of a batch", meters.commit_events.clone());
    registry.register_collector(Box::new(Scrape(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// One number, by its labels.
type Sample = (Vec<(&'static str, String)>, u64);

/// What is shown under one name.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<Sample>,
}

fn family(name: &'static str, help: &'static str, samples: Vec<Sample>) -> Metric {
    Metric { name, help, kind: MetricType::Gauge, samples }
}

fn gauge(name: &'static str, help: &'static str, value: u64) -> Metric {
    family(name, help, vec![(Vec::new(), value)])
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Metric {
    Metric { kind: MetricType::Counter, ..gauge(name, help, value) }
}

/// The numbers of one moment.
#[derive(Debug)]
struct Scrape(StatusView);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Metric { name, help, kind, samples } in of_state(&self.0).into_iter().chain(of_xds(&self.0)) {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in samples {
                let mut sample = metric.encode_family(&labels)?;
                if matches!(kind, MetricType::Counter) {
                    sample.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                } else {
                    sample.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }
}

fn by(label: &'static str, counts: &std::collections::BTreeMap<String, usize>) -> Vec<Sample> {
    counts.iter().map(|(name, count)| (vec![(label, name.clone())], *count as u64)).collect()
}

fn of_state(status: &StatusView) -> Vec<Metric> {
    let version = vec![("version", status.version.clone())];
    let of_kind = |kind: FindingKind| {
        let count = status.findings.iter().filter(|finding| finding.kind == kind).count();
        (vec![("kind", kind.to_string())], count as u64)
    };
    vec![
        family("foldplane_build", "The version of the program; always 1", vec![(version, 1)]),
        gauge("foldplane_offset", "The last event that is published", status.offset),
        gauge("foldplane_log_durable_offset", "The last event that is durable", status.durable_offset),
        gauge("foldplane_log_oldest_offset", "The oldest event that is kept", status.oldest_offset),
        gauge(
            "foldplane_log_writable",
            "1 while the log can be written, 0 while it cannot",
            status.storage_fault.is_none().into(),
        ),
        gauge(
            "foldplane_log_ignored_events",
            "Events in the log that made no sense where they stood",
            status.ignored_events,
        ),
        gauge(
            "foldplane_expiry_held",
            "1 while nobody expires because a crowd is silent",
            status.expiry_held.is_some().into(),
        ),
        gauge("foldplane_services", "Services with live workers", status.services as u64),
        gauge("foldplane_clusters", "Clusters that are published", status.clusters as u64),
        gauge("foldplane_sessions", "Who speaks for workers", status.sessions as u64),
        family("foldplane_workers", "Live workers by state", by("state", &status.workers)),
        family("foldplane_hosts", "Hosts by state", by("state", &status.hosts)),
        family("foldplane_endpoints", "Published endpoints by health", by("health", &status.endpoints)),
        family("foldplane_ports", "Ports of all hosts by use", by("use", &status.ports)),
        family("foldplane_findings", "Findings by kind", FindingKind::ALL.map(of_kind).to_vec()),
    ]
}

fn of_xds(status: &StatusView) -> Vec<Metric> {
    let xds = &status.xds;
    vec![
        gauge("foldplane_xds_streams", "Open streams", xds.streams as u64),
        gauge("foldplane_xds_lag_events", "How many events the last stream is behind", xds.lag_events),
        counter("foldplane_xds_streams_opened", "Streams that were opened", xds.streams_opened),
        counter("foldplane_xds_requests", "Messages from clients", xds.requests),
        counter("foldplane_xds_responses", "Messages to clients", xds.responses),
        counter("foldplane_xds_rejections", "Responses that clients refused", xds.rejections),
        counter(
            "foldplane_xds_reports_dropped",
            "Refusals that were not recorded, because too many were waiting",
            xds.reports_dropped,
        ),
        counter(
            "foldplane_xds_oversized",
            "Responses above the 4 MiB that clients accept by default",
            xds.oversized,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENT: &str = include_str!("../../docs/metrics.md");

    /// The first cell of each row of a table, as far as it starts like this.
    fn documented(start: &str) -> BTreeSet<&str> {
        let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        rows.filter(|name| name.starts_with(start)).collect()
    }

    #[test]
    fn every_name_that_is_served_is_documented_and_every_other_way() {
        let text = text(StatusView::default(), &Meters::default()).unwrap();
        let served: BTreeSet<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
            .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
            .collect();
        assert_eq!(served.iter().map(String::as_str).collect::<BTreeSet<_>>(), documented("foldplane_"));
        assert!(text.contains("foldplane_xds_requests_total 0\n"), "{text}");
        assert!(text.contains("foldplane_findings{kind=\"expiry_held\"} 0\n"), "{text}");
    }

    #[test]
    fn every_kind_of_finding_is_documented() {
        let rows = documented("").into_iter().filter(|name| !name.starts_with("foldplane_"));
        assert_eq!(
            rows.collect::<BTreeSet<_>>(),
            FindingKind::ALL.map(FindingKind::as_str).into_iter().collect()
        );
    }
}
