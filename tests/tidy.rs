//! The rules of ARCHITECTURE.md and CONTRIBUTING.md, held over the whole repository.

#[path = "tidy/mod.rs"]
mod tidy;

use tidy::graph::Graph;
use tidy::{hold, imports, layout, purity, size, text, tree};

#[test]
fn no_file_is_too_long() {
    hold(size::files(&tree::text_files()));
}

#[test]
fn no_function_is_too_long() {
    hold(size::functions(&Graph::of(&tree::text_files()).modules));
}

#[test]
fn every_rust_file_is_built() {
    hold(Graph::of(&tree::text_files()).findings);
}

#[test]
fn no_room_names_what_it_must_not() {
    hold(imports::findings(&Graph::of(&tree::text_files())));
}

#[test]
fn the_pure_rooms_are_pure() {
    hold(purity::findings(&Graph::of(&tree::text_files())));
}

#[test]
fn every_file_says_what_it_is_for() {
    hold(layout::purposes(&tree::text_files()));
}

#[test]
fn every_room_has_a_mod_file() {
    hold(layout::folders(&tree::text_files()));
}

#[test]
fn decisions_are_numbered_and_whole() {
    hold(layout::decisions(&tree::text_files()));
}

#[test]
fn test_data_is_used() {
    hold(layout::unnamed_test_data(&tree::text_files()));
}

#[test]
fn nothing_is_left_unfinished() {
    hold(text::unfinished(&Graph::of(&tree::text_files()).modules));
}

#[test]
fn no_text_depends_on_one_machine() {
    hold(text::local_places(&tree::text_files()));
}
