//! No room names another than those it may name.

use std::collections::BTreeSet;

use super::Finding;
use super::facts::Mention;
use super::graph::{Graph, Module};
use super::rooms::{EXCEPTIONS, Exception, ROOMS, Room, room_of, starts_with};

/// Whatever names what it must not name.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    check(graph, ROOMS, EXCEPTIONS)
}

fn check(graph: &Graph, rooms: &[Room], exceptions: &[Exception]) -> Vec<Finding> {
    let known = graph.library_paths();
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    // The root only declares the rooms, and tests may lean on any of them.
    for module in graph.library().filter(|module| !module.path.is_empty() && !module.test) {
        let Some(room) = room_of(rooms, &module.path) else {
            findings.push(homeless(module));
            continue;
        };
        for mention in module.facts.mentions.iter().filter(|mention| !mention.place.test) {
            let path = resolve(module, mention, &known);
            let Some(inner) = path.strip_prefix(&["crate".to_owned()]) else { continue };
            if allows(room, rooms, inner) {
                continue;
            }
            let excepted =
                exceptions.iter().position(|e| e.file == module.file && starts_with(inner, e.may_name));
            match excepted {
                Some(index) => drop(used.insert(index)),
                None => findings.push(trespass(module, room, mention, inner)),
            }
        }
    }
    let idle = exceptions.iter().enumerate().filter(|(index, _)| !used.contains(index));
    findings.extend(idle.map(|(_, exception)| useless(exception)));
    findings
}

fn allows(room: &Room, rooms: &[Room], path: &[String]) -> bool {
    let Some(target) = room_of(rooms, path) else {
        // An item of the crate's root, such as its version.
        return path.len() < 2;
    };
    let at_home = target.path == room.path;
    at_home || room.may_name.iter().any(|allowed| starts_with(path, allowed) && covers(target, allowed))
}

/// A permission for a room is none for a room inside it.
fn covers(target: &Room, allowed: &str) -> bool {
    let allowed: Vec<String> = allowed.split("::").map(str::to_owned).collect();
    starts_with(&allowed, target.path)
}

/// The path from the root of its crate (`crate::…`), or of another crate (`std::…`).
pub(crate) fn resolve(module: &Module, mention: &Mention, known: &BTreeSet<Vec<String>>) -> Vec<String> {
    let here = [module.path.clone(), mention.place.scope.clone()].concat();
    absolute(module, &here, &mention.segments, known, ALIASES_MAX)
}

/// An alias of an alias is followed so far, so that two that name each other come to an end.
const ALIASES_MAX: usize = 4;

fn absolute(
    module: &Module,
    here: &[String],
    segments: &[String],
    known: &BTreeSet<Vec<String>>,
    aliases_left: usize,
) -> Vec<String> {
    let Some((first, rest)) = segments.split_first() else { return Vec::new() };
    let child = [here, std::slice::from_ref(first)].concat();
    match first.as_str() {
        "crate" | "foldplane" => from_root(&[], rest),
        "self" => from_root(here, rest),
        "super" => {
            let levels = segments.iter().take_while(|segment| *segment == "super").count();
            let above = here.get(..here.len().saturating_sub(levels)).unwrap_or_default();
            from_root(above, segments.get(levels..).unwrap_or_default())
        }
        _ if known.contains(&child) => from_root(&child, rest),
        _ => match module.facts.aliases.get(first) {
            Some(target) if aliases_left > 0 && target.first() != Some(first) => {
                let whole = [target.as_slice(), rest].concat();
                absolute(module, &module.path, &whole, known, aliases_left - 1)
            }
            _ => segments.to_vec(),
        },
    }
}

fn from_root(path: &[String], rest: &[String]) -> Vec<String> {
    [&["crate".to_owned()], path, rest].concat()
}

fn homeless(module: &Module) -> Finding {
    let message = "this belongs to no room: put it into one, or add the room to tests/tidy/rooms.rs and ARCHITECTURE.md";
    Finding::new(&module.file, 1, message.to_owned())
}

fn trespass(module: &Module, room: &Room, mention: &Mention, path: &[String]) -> Finding {
    let message = format!(
        "`{}` must not name `{}`; it may name [{}]: turn the dependency round, pass what is needed as an argument, \
         or add an exception with its reason to tests/tidy/rooms.rs",
        room.path,
        path.join("::"),
        room.may_name.join(", ")
    );
    Finding::new(&module.file, mention.place.line, message)
}

fn useless(exception: &Exception) -> Finding {
    let message = format!(
        "the exception for {} ({}) to name `{}` is not needed: delete it",
        exception.file, exception.reason, exception.may_name
    );
    Finding::new("tests/tidy/rooms.rs", 1, message)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Source;
    use super::*;

    const LIB: &str = "pub mod events; pub mod projection; pub mod engine; pub mod xds;";

    /// What is found when `text` is in the middle of a small library.
    fn found(file: &str, text: &str, exceptions: &[Exception]) -> Vec<String> {
        let mut files = vec![
            Source::new("src/lib.rs", LIB),
            Source::new("src/events/mod.rs", "pub mod log; pub mod offset;"),
            Source::new("src/events/log/mod.rs", ""),
            Source::new("src/events/offset.rs", ""),
            Source::new("src/projection/mod.rs", "pub mod resources; pub mod state;"),
            Source::new("src/projection/resources.rs", ""),
            Source::new("src/projection/state.rs", ""),
            Source::new("src/engine.rs", ""),
            Source::new("src/xds/mod.rs", "pub mod protocol;"),
            Source::new("src/xds/protocol.rs", ""),
        ];
        files.iter_mut().find(|source| source.path == file).expect("a file of the small library").text +=
            &format!("\n{text}");
        check(&Graph::of(&files), ROOMS, exceptions).iter().map(Finding::to_string).collect()
    }

    #[track_caller]
    fn refused(file: &str, text: &str, what: &str) {
        let findings = found(file, text, &[]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let expected = format!("must not name `{what}`");
        assert!(findings[0].starts_with(&format!("{file}:2: ")), "{findings:?}");
        assert!(findings[0].contains(&expected), "{findings:?}");
    }

    #[track_caller]
    fn allowed(file: &str, text: &str) {
        assert_eq!(found(file, text, &[]), [] as [String; 0]);
    }

    #[test]
    fn what_the_table_allows_is_allowed() {
        allowed("src/projection/state.rs", "use crate::events::{Event, Offset};");
        allowed("src/projection/state.rs", "use super::resources::Version;");
        allowed("src/engine.rs", "use crate::events::log::EventLog;");
        allowed("src/xds/protocol.rs", "use crate::projection::resources::Version;");
        allowed("src/events/mod.rs", "fn f() { std::mem::drop(1) }");
    }

    #[test]
    fn a_use_of_a_forbidden_room_is_found() {
        refused("src/projection/state.rs", "use crate::engine::Handle;", "engine::Handle");
        refused("src/projection/state.rs", "use crate::{events::Event, engine};", "engine");
        refused("src/projection/state.rs", "use foldplane::engine::*;", "engine");
    }

    #[test]
    fn a_path_without_a_use_is_found() {
        refused("src/projection/state.rs", "fn f() { crate::engine::start() }", "engine::start");
        refused("src/projection/state.rs", "fn f() { log!(\"{}\", crate::engine::LIMIT) }", "engine::LIMIT");
        refused("src/projection/state.rs", "fn f(h: &super::super::engine::Handle) {}", "engine::Handle");
    }

    #[test]
    fn a_way_round_through_a_parent_or_an_alias_is_found() {
        refused("src/events/offset.rs", "use super::log::Head;", "events::log::Head");
        refused("src/events/mod.rs", "pub use log::Head;", "events::log::Head");
        let text = "use crate::events as facts; fn f(h: facts::log::Head) {}";
        refused("src/projection/state.rs", text, "events::log::Head");
    }

    #[test]
    fn a_part_of_a_room_is_no_permission_for_the_rest() {
        refused("src/xds/protocol.rs", "use crate::projection::state::State;", "projection::state::State");
        refused("src/xds/protocol.rs", "use crate::events::Event;", "events::Event");
    }

    #[test]
    fn tests_inside_a_room_may_lean_on_any_other() {
        allowed("src/projection/state.rs", "#[cfg(test)] mod tests { use crate::engine::Handle; }");
    }

    #[test]
    fn a_file_outside_of_all_rooms_is_found() {
        let findings = found("src/lib.rs", "mod engine2 {} mod attic;", &[]);
        assert!(findings.is_empty(), "a declaration alone is nothing: {findings:?}");
        let sources = [Source::new("src/lib.rs", "mod attic;"), Source::new("src/attic.rs", "")];
        let findings = check(&Graph::of(&sources), ROOMS, &[]);
        assert!(findings[0].message.contains("no room"), "{findings:?}");
    }

    #[test]
    fn an_exception_holds_for_its_file_and_must_be_needed() {
        let exception = Exception { file: "src/projection/state.rs", may_name: "engine", reason: "a test" };
        let text = "use crate::engine::Handle;";
        assert!(found("src/projection/state.rs", text, std::slice::from_ref(&exception)).is_empty());
        let unneeded = found("src/engine.rs", "", std::slice::from_ref(&exception));
        assert!(unneeded[0].contains("not needed"), "{unneeded:?}");
    }
}
