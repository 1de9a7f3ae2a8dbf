//! The rules of ARCHITECTURE.md and CONTRIBUTING.md, held over the whole repository.

#[path = "tidy/mod.rs"]
mod tidy;

use std::sync::LazyLock;

use tidy::graph::Graph;
use tidy::tree::{Source, text_files};
use tidy::{hold, imports, layout, map, planted, purity, shown, size, text};

/// The repository, read once.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(text_files);

/// Its Rust files, parsed once.
static GRAPH: LazyLock<Graph> = LazyLock::new(|| Graph::of(&SOURCES));

#[test]
fn no_file_is_too_long() {
    hold(size::files(&SOURCES));
}

#[test]
fn no_function_is_too_long() {
    hold(size::functions(&GRAPH.modules));
}

#[test]
fn every_rust_file_is_built() {
    hold(GRAPH.findings.clone());
}

#[test]
fn no_room_names_what_it_must_not() {
    hold(imports::findings(&GRAPH));
}

#[test]
fn the_map_shows_the_house_as_it_is() {
    hold(map::findings(&SOURCES, &GRAPH));
}

#[test]
fn the_pure_rooms_are_pure() {
    hold(purity::findings(&GRAPH));
}

#[test]
fn every_file_says_what_it_is_for() {
    hold(layout::purposes(&SOURCES));
}

#[test]
fn every_room_has_a_mod_file() {
    hold(layout::folders(&SOURCES));
}

#[test]
fn decisions_are_numbered_and_whole() {
    hold(layout::decisions(&SOURCES));
}

#[test]
fn test_data_is_used() {
    hold(layout::unnamed_test_data(&SOURCES));
}

#[test]
fn nothing_is_left_unfinished() {
    hold(text::unfinished(&GRAPH.modules));
}

#[test]
fn every_rule_of_the_wire_is_shown_by_a_test() {
    hold(shown::findings(&SOURCES));
}

#[test]
fn every_fault_that_is_planted_has_its_place_and_its_row() {
    hold(planted::findings(&SOURCES));
}

#[test]
fn no_text_depends_on_one_machine() {
    hold(text::local_places(&SOURCES));
}
