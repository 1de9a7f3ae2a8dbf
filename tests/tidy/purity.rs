//! The pure rooms touch nothing that could answer differently the second time.

use super::Finding;
use super::graph::{Graph, Module};
use super::imports::resolve;
use super::rooms::{Nature, ROOMS, room_of, starts_with};

/// What a pure room must not name, and what it does instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time::Instant", "take the time as an argument"),
    ("std::time::SystemTime", "take the time as an argument"),
    ("jiff::Timestamp::now", "take the time as an argument"),
    ("jiff::Zoned::now", "take the time as an argument"),
    ("uuid", "take the id as an argument"),
    ("rand", "take what chance decided as an argument"),
    ("getrandom", "take what chance decided as an argument"),
    ("fastrand", "take what chance decided as an argument"),
    ("std::hash::RandomState", "take what chance decided as an argument"),
    ("std::collections::HashMap", "its order is chance: use BTreeMap or imbl::OrdMap"),
    ("std::collections::HashSet", "its order is chance: use BTreeSet or imbl::OrdSet"),
    ("std::collections::hash_map", "its order is chance: use BTreeMap or imbl::OrdMap"),
    ("std::collections::hash_set", "its order is chance: use BTreeSet or imbl::OrdSet"),
    ("imbl::HashMap", "its order is chance: use imbl::OrdMap"),
    ("imbl::HashSet", "its order is chance: use imbl::OrdSet"),
    ("std::env", "take the setting as an argument"),
    ("std::fs", "IO belongs in a shell"),
    ("std::io", "IO belongs in a shell"),
    ("std::os", "IO belongs in a shell"),
    ("std::process", "IO belongs in a shell"),
    ("std::thread", "threads belong in a shell"),
    ("std::net::TcpListener", "IO belongs in a shell"),
    ("std::net::TcpStream", "IO belongs in a shell"),
    ("std::net::UdpSocket", "IO belongs in a shell"),
    ("std::net::ToSocketAddrs", "names are resolved in a shell"),
    ("tokio", "tokio belongs in a shell"),
    ("tokio_stream", "tokio belongs in a shell"),
    ("tokio_util", "tokio belongs in a shell"),
    ("futures_util", "waiting belongs in a shell"),
    ("tonic", "the wire belongs in a shell"),
    ("tower", "the wire belongs in a shell"),
    ("axum", "the wire belongs in a shell"),
    ("hyper", "the wire belongs in a shell"),
    ("hyper_util", "the wire belongs in a shell"),
    ("reqwest", "the wire belongs in a shell"),
    ("nix", "IO belongs in a shell"),
    ("sled", "storage belongs in events::log"),
    ("tracing", "return what is to be said, and let the shell say it"),
];

/// Whatever makes a pure room impure.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    let known = graph.library_paths();
    let pure = graph.library().filter(|module| !module.test && is_pure(module));
    pure.flat_map(|module| {
        let named = module.facts.mentions.iter().filter(|mention| !mention.place.test);
        let named = named.filter_map(|mention| {
            let path = resolve(module, mention, &known);
            let (what, instead) = forbidden(&path, mention.glob)?;
            Some(Finding::new(
                &module.file,
                mention.place.line,
                format!("`{what}` in a pure room: {instead}"),
            ))
        });
        let waits = module.facts.waits.iter().filter(|place| !place.test);
        let waits = waits.map(|place| {
            let message = "`async` in a pure room: return what is to be done, and let the shell wait for it";
            Finding::new(&module.file, place.line, message.to_owned())
        });
        named.chain(waits).collect::<Vec<_>>()
    })
    .collect()
}

fn is_pure(module: &Module) -> bool {
    room_of(ROOMS, &module.path).is_some_and(|room| room.nature == Nature::Pure)
}

fn forbidden(path: &[String], glob: bool) -> Option<(&'static str, &'static str)> {
    let mut path = path.to_vec();
    if matches!(path.first().map(String::as_str), Some("core" | "alloc")) {
        path.splice(..1, ["std".to_owned()]);
    }
    let hit = |what: &str| {
        let whole: Vec<String> = what.split("::").map(str::to_owned).collect();
        starts_with(&path, what) || (glob && starts_with(&whole, &path.join("::")))
    };
    FORBIDDEN.iter().copied().find(|(what, _)| hit(what))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Source;
    use super::*;

    fn found(room: &str, text: &str) -> Vec<String> {
        let sources = [
            Source::new("src/lib.rs", &format!("pub mod {room};")),
            Source::new(&format!("src/{room}.rs"), &format!("\n{text}")),
        ];
        findings(&Graph::of(&sources)).iter().map(Finding::to_string).collect()
    }

    #[track_caller]
    fn refused(text: &str, what: &str) {
        let findings = found("projection", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].starts_with(&format!("src/projection.rs:2: `{what}` in a pure room")),
            "{findings:?}"
        );
        assert!(found("engine", text).is_empty(), "a shell may");
    }

    #[track_caller]
    fn allowed(text: &str) {
        assert_eq!(found("projection", text), [] as [String; 0]);
    }

    #[test]
    fn clocks_chance_and_hash_order_are_found() {
        refused("use std::time::Instant;", "std::time::Instant");
        refused("use std::time; fn f() { time::SystemTime::now(); }", "std::time::SystemTime");
        refused("fn f() -> u64 { jiff::Timestamp::now() }", "jiff::Timestamp::now");
        refused("use std::time::*;", "std::time::Instant");
        refused("fn f() { rand::random() }", "rand");
        refused("use std::collections::{BTreeMap, HashMap};", "std::collections::HashMap");
    }

    #[test]
    fn io_and_environment_are_found() {
        refused("use std::fs;", "std::fs");
        refused("use std::env::var;", "std::env");
        refused("fn f() { dbg(std::env::args()) }", "std::env");
        refused("fn f() { format!(\"{}\", std::process::id()) }", "std::process");
        refused("use std::net::{IpAddr, TcpStream};", "std::net::TcpStream");
    }

    #[test]
    fn waiting_is_found() {
        refused("use tokio::sync::watch;", "tokio");
        refused("async fn f() {}", "async");
        refused("trait T { async fn f(); }", "async");
        refused("fn f() { async {}; }", "async");
    }

    #[test]
    fn addresses_durations_and_tests_are_allowed() {
        allowed("use std::net::{IpAddr, SocketAddr};");
        allowed("use std::time::Duration;");
        allowed("#[cfg(test)] mod tests { use std::fs; }");
    }
}
