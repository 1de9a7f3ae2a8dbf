//! The `foldplane` command.

fn main() {}
