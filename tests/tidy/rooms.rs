//! The rooms, and which may name which: the one table of the house.

/// How strictly a room is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// No tokio, async, clock, environment, chance, hash order or IO.
    Pure,
    /// May do all that.
    Shell,
}

/// A folder or file of the library with one purpose.
pub(crate) struct Room {
    /// Its path in the crate.
    pub(crate) path: &'static str,
    pub(crate) nature: Nature,
    /// What it may name: rooms, or parts of rooms.
    pub(crate) may_name: &'static [&'static str],
}

/// A file that may name more than its room.
pub(crate) struct Exception {
    pub(crate) file: &'static str,
    pub(crate) may_name: &'static str,
    /// Why, in a sentence.
    pub(crate) reason: &'static str,
}

const fn pure(path: &'static str, may_name: &'static [&'static str]) -> Room {
    Room { path, nature: Nature::Pure, may_name }
}

const fn shell(path: &'static str, may_name: &'static [&'static str]) -> Room {
    Room { path, nature: Nature::Shell, may_name }
}

/// Every room. A room within a room (`events::log`) is a room of its own: neither has the other's rights.
pub(crate) const ROOMS: &[Room] = &[
    pure("events", &[]),
    shell("events::log", &["events"]),
    pure("projection", &["events"]),
    pure("command", &["events", "projection"]),
    // Resources as people write them: no state, no commands.
    pure("transcode", &["events", "projection::resources"]),
    // A program with its own resources serves them without ever touching events.
    pure("xds::protocol", &["events::Offset", "projection::resources"]),
    shell("engine", &["events", "events::log", "projection", "command"]),
    // It gets a watch on snapshots and knows no commands.
    shell("xds", &["xds::protocol", "projection", "events", "transcode"]),
    // Generated: the words of the worker protocol.
    shell("proto", &[]),
    // It asks how a worker's connection ended.
    shell("ingest", &["proto", "events", "projection", "command", "engine", "problem", "listen::Ending"]),
    // It reads the log for those who ask for events, and the ledger for those who ask who was sent what.
    shell(
        "api",
        &["events", "events::log", "projection", "command", "engine", "xds", "problem", "transcode"],
    ),
    // As any other client of the public worker API.
    shell("agent", &["proto"]),
    shell("listen", &[]),
    shell("provision", &[]),
    // A service that a route names is checked as everywhere.
    pure("bootstrap", &["events"]),
    shell("demo", &["provision", "bootstrap", "agent", "proto"]),
    shell("config", &["events", "events::log"]),
    // What went wrong at a door, as HTTP says it.
    shell("problem", &["events", "events::log", "command", "engine"]),
    shell("telemetry", &[]),
    // Puts the control plane together.
    shell(
        "serve",
        &[
            "proto",
            "events",
            "events::log",
            "projection",
            "command",
            "engine",
            "xds",
            "ingest",
            "api",
            "listen",
            "config",
        ],
    ),
    pure("testing", &["events", "projection", "command", "xds::protocol"]),
    shell("cli", EVERYTHING),
];

/// What the command line may name.
const EVERYTHING: &[&str] = &[
    "events",
    "events::log",
    "projection",
    "command",
    "xds::protocol",
    "engine",
    "xds",
    "ingest",
    "api",
    "problem",
    "agent",
    "listen",
    "provision",
    "bootstrap",
    "demo",
    "config",
    "serve",
    "telemetry",
    "transcode",
];

/// What goes beyond the table, each with its reason.
pub(crate) const EXCEPTIONS: &[Exception] = &[];

/// The innermost room that a path of the crate is in.
pub(crate) fn room_of<'a>(rooms: &'a [Room], path: &[String]) -> Option<&'a Room> {
    let inside = rooms.iter().filter(|room| starts_with(path, room.path));
    inside.max_by_key(|room| room.path.len())
}

/// Whether `path` is `prefix` or something in it.
pub(crate) fn starts_with(path: &[String], prefix: &str) -> bool {
    let prefix: Vec<&str> = prefix.split("::").collect();
    path.len() >= prefix.len() && path.iter().zip(prefix).all(|(part, expected)| part == expected)
}
