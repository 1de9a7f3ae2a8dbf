//! Expressions that are taken, refused, and bounded.

use std::collections::BTreeMap;

use super::*;
use crate::events::event::{Policy, Verdict};
use crate::projection::state::Opinion;
use facts::Place;

#[track_caller]
fn refused(text: &str, reason: &str) {
    let policy = Policy { include: Some(text.to_owned()), ..Policy::default() };
    let message = CompiledPolicy::check(&policy).unwrap_err().to_string();
    assert!(message.starts_with("include: ") && message.contains(reason), "{text}: {message}");
}

#[test]
fn what_cannot_be_right_is_refused_when_it_is_set() {
    refused("", "Syntax error");
    refused("worker.", "Syntax error");
    refused("wroker.id == '1'", "there is no wroker");
    refused("worker.metdata.track == 'canary'", "there is no field metdata: there are service, id");
    refused("has(worker.locality.zoen)", "there is no field zoen");
    refused("worker.id.matches('a+')", "there is no function matches");
    refused("timestamp('2026-01-01T00:00:00Z') < now()", "there is no function");
    refused("worker.metadata.exists(k, k == 'a')", "loops");
    refused("{'a': 1}.a == 1", "maps and messages");
}

#[test]
fn no_expression_takes_the_process_with_it() {
    refused(&"a".repeat(1025), "1025 bytes, at most 1024");
    for bomb in ["(", "[", "!", "-", "1?", "{1:"] {
        refused(&bomb.repeat(1024 / bomb.len()), "deeper than 32");
    }
    for bomb in ["1+", "worker.id+", "default==", "a.", "'a' in [", "worker.metadata["] {
        refused(&(bomb.repeat(1020 / bomb.len()) + "1"), "");
    }
    // What is long and flat is asked as anything else.
    let flat = format!("{}default == '' ? 'ABSENT' : default", "default == '' || ".repeat(55));
    assert_eq!(ask(&flat), Ok(Some(HealthStatus::Healthy)));
}

/// What an expression says of an endpoint with a label and a monitor that calls it degraded.
fn ask(expression: &str) -> Result<Option<HealthStatus>, HookFailure> {
    let metadata = BTreeMap::from([("track".to_owned(), "canary".to_owned())]);
    let opinion = Opinion { verdict: Verdict::Degraded, reason: String::new() };
    let opinions = BTreeMap::from([(crate::events::event::HealthSource::Memory, opinion)]);
    let locality = crate::events::event::Locality::default();
    let facts = EndpointFacts {
        service: "web",
        id: "a",
        host: "h1",
        locality: &locality,
        endpoint: Place { port: "http", address: "192.0.2.1:80".to_owned(), number: 80 },
        metadata: &metadata,
        monitors: facts::Monitors::of(&opinions),
        verdict: "degraded",
    };
    let policy = Policy { health: Some(expression.to_owned()), ..Policy::default() };
    CompiledPolicy::new(policy).health(&facts, Some(HealthStatus::Healthy))
}

#[test]
fn an_expression_looks_at_every_fact() {
    let all = "worker.service == 'web' && worker.id == 'a' && worker.host.startsWith('h') && worker.endpoint.number == 80 \
        && worker.endpoint.port == 'http' && worker.endpoint.address.endsWith(':80') && worker.locality.zone == '' \
        && worker.metadata.track in ['canary', 'beta'] && worker.monitors.memory == 'degraded' \
        && !has(worker.monitors.utilization) && worker.verdict == 'degraded' && default == 'HEALTHY' ? 'UNHEALTHY' : default";
    assert_eq!(ask(all), Ok(Some(HealthStatus::Unhealthy)));
    assert_eq!(ask("'ABSENT'"), Ok(None));
}

#[test]
fn a_failure_says_what_is_wrong_with_the_answer() {
    let fails = |expression: &str| ask(expression).unwrap_err().to_string();
    assert_eq!(fails("worker.metadata.zone"), "No such key: zone");
    assert_eq!(
        fails("'DRAINING'"),
        "its answer is \"DRAINING\", and not HEALTHY, DEGRADED, UNHEALTHY or ABSENT"
    );
    assert_eq!(fails("1"), "its answer is of the type int, and not HEALTHY, DEGRADED, UNHEALTHY or ABSENT");
    // A map has no order that a state could hold.
    assert_eq!(fails("worker + 1"), fails("worker + 1"));
    assert!(!fails("worker + 1").contains("web"), "{}", fails("worker + 1"));
}

#[test]
fn a_cluster_of_another_service_is_out_of_reach() {
    let web = crate::events::ServiceName::new("web").unwrap();
    let within = |name: &str| ClusterName::within(&web, name.to_owned()).map(|name| name.to_string());
    for name in ["web", "web:canary", "web:admin:canary"] {
        assert_eq!(within(name), Ok(name.to_owned()));
    }
    for name in [
        "",
        "pay",
        "website",
        "web:",
        "web:a b",
        "web::a",
        "*",
        "web:\n",
        &format!("web:{}", "a".repeat(300)),
    ] {
        assert!(within(name).is_err(), "{name}");
    }
}
