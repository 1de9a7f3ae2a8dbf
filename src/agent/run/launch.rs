//! The child's first moment: it asks to die with its agent, then becomes the program.
//!
//! Asking has to happen in the child, and between fork and exec only unsafe code could do it. So the agent
//! starts its own binary, which asks and then replaces itself (`docs/decisions/0007-the-child-dies-with-its-agent.md`).

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::ending::Ending;

/// Becomes the program, and dies with `agent`, the process that started this one. Returns only if that fails: the
/// exit code that shells give, and what was wrong.
#[must_use]
pub fn launch(agent: u32, command: &[OsString]) -> (u8, String) {
    let Some((program, arguments)) = command.split_first() else {
        return failed("", &io::Error::new(io::ErrorKind::NotFound, "no program was given"));
    };
    let program_text = program.to_string_lossy();
    if let Err(error) = die_with(agent) {
        return failed(&program_text, &error);
    }
    failed(&program_text, &Command::new(program).args(arguments).exec())
}

fn failed(program: &str, error: &io::Error) -> (u8, String) {
    let ending = Ending::not_run(program, error);
    (ending.code(), ending.to_string())
}

#[cfg(target_os = "linux")]
fn die_with(agent: u32) -> io::Result<()> {
    use nix::sys::signal::Signal;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The agent may have died before the wish was in force; then its child has another parent by now.
    if std::os::unix::process::parent_id() == agent {
        Ok(())
    } else {
        Err(io::Error::other("the agent is gone"))
    }
}

/// Only Linux ties the life of a process to that of its parent.
#[cfg(not(target_os = "linux"))]
fn die_with(_agent: u32) -> io::Result<()> {
    Ok(())
}
