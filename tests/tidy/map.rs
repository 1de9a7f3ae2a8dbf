//! ARCHITECTURE.md shows the rooms that there are, and no others.

use std::collections::BTreeSet;

use super::Finding;
use super::graph::Graph;
use super::rooms::{ROOMS, Room, room_of};
use super::tree::Source;

/// Where the map is.
const MAP: &str = "ARCHITECTURE.md";

/// Where code, table and map differ.
pub(crate) fn findings(sources: &[Source], graph: &Graph) -> Vec<Finding> {
    check(sources, graph, ROOMS)
}

fn check(sources: &[Source], graph: &Graph, rooms: &[Room]) -> Vec<Finding> {
    let Some(map) = sources.iter().find(|source| source.path == MAP) else {
        return vec![Finding::new(MAP, 1, "the map is missing: write it".to_owned())];
    };
    let drawn: BTreeSet<&str> = map.text.lines().filter_map(room_of_row).collect();
    let known: BTreeSet<&str> = rooms.iter().map(|room| room.path).collect();
    let lived_in: BTreeSet<&str> =
        graph.library().filter_map(|module| room_of(rooms, &module.path)).map(|room| room.path).collect();
    let missing = known.difference(&drawn).map(|room| {
        Finding::new(MAP, 1, format!("the room `{room}` is not on the map: add a row to the table of rooms"))
    });
    let extra = drawn.difference(&known).map(|room| {
        Finding::new(
            MAP,
            1,
            format!("the map shows `{room}`, which tests/tidy/rooms.rs does not know: remove the row"),
        )
    });
    let empty = known.difference(&lived_in).map(|room| {
        Finding::new(
            "tests/tidy/rooms.rs",
            1,
            format!("nothing is in the room `{room}`: remove it from the table"),
        )
    });
    missing.chain(extra).chain(empty).collect()
}

/// The room that a row of the table of rooms is about: its first cell is the room's path as code, and it has three.
fn room_of_row(line: &str) -> Option<&str> {
    let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
    let room = cells.next()?.strip_suffix('`')?;
    (cells.filter(|cell| !cell.is_empty()).count() == 2).then_some(room)
}

#[cfg(test)]
mod tests {
    use super::super::rooms::Nature;
    use super::*;

    #[track_caller]
    fn found(map: &str, files: &[&str], expected: &[&str]) {
        let room = |path| Room { path, nature: Nature::Shell, may_name: &[] };
        let mut sources = vec![Source::new(MAP, map), Source::new("src/lib.rs", "mod a; mod b;")];
        sources.extend(files.iter().map(|path| Source::new(path, "")));
        let found = check(&sources, &Graph::of(&sources), &[room("a"), room("b")]);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(f, e)| f.message.contains(e)), "{found:?}");
    }

    #[test]
    fn a_room_that_the_map_or_the_code_lacks_is_found() {
        let both = "| room | what | names |\n|---|---|---|\n| `a` | x | nothing |\n| `b` | y | a |\n";
        found(both, &["src/a.rs", "src/b.rs"], &[]);
        found("| `a` | x | nothing |", &["src/a.rs", "src/b.rs"], &["`b` is not on the map"]);
        found(&format!("{both}| `c` | z | a |"), &["src/a.rs", "src/b.rs"], &["the map shows `c`"]);
        found(both, &["src/a.rs"], &["nothing is in the room `b`"]);
    }
}
