//! The `foldplane` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    foldplane::cli::main()
}
