//! Runs one command of an installation, with a time limit, and keeps the end of what it printed.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::ProvisionError;

/// How many lines of a failed command's output are shown: its reason stands at the end.
const OUTPUT_LINES_MAX: usize = 12;

/// The longest line shown of a failed command's output, in characters.
const OUTPUT_LINE_CHARS_MAX: usize = 300;

/// One command, what it is for, and how long it may take.
pub(super) struct Step<'a> {
    /// In the infinitive, for the error: "cannot ...".
    pub(super) purpose: String,
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<&'a OsStr>,
    pub(super) limit: Duration,
}

impl Step<'_> {
    /// Runs it to its end and returns what it printed to stdout.
    ///
    /// When this future is dropped the command is killed.
    pub(super) async fn run(&self) -> Result<String, ProvisionError> {
        let mut command = Command::new(self.program);
        command
            .args(&self.arguments)
            .env("PIP_NO_INPUT", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        match tokio::time::timeout(self.limit, command.output()).await {
            Err(_) => Err(self.failed(format!("took longer than {} s", self.limit.as_secs()), "")),
            Ok(Err(error)) => Err(self.failed(format!("could not be started: {error}"), "")),
            Ok(Ok(output)) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(Ok(output)) => Err(self.failed(format!("ended with {}", output.status), &tail(&output))),
        }
    }

    fn failed(&self, outcome: String, output: &str) -> ProvisionError {
        let arguments = self.arguments.iter().map(|argument| argument.to_string_lossy());
        let words: Vec<_> = std::iter::once(self.program.to_string_lossy()).chain(arguments).collect();
        ProvisionError::Step {
            purpose: self.purpose.clone(),
            command: words.join(" "),
            outcome,
            output: output.to_owned(),
        }
    }
}

/// The last lines of both outputs, each indented on a line of its own, without control characters.
fn tail(output: &Output) -> String {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let lines: Vec<&str> =
        text.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(OUTPUT_LINES_MAX);
    lines.into_iter().skip(skipped).map(|line| format!("\n    {}", shown(line))).collect()
}

fn shown(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(OUTPUT_LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, limit: Duration) -> Result<String, String> {
        let step = Step {
            purpose: "try".to_owned(),
            program: Path::new("sh"),
            arguments: vec![OsStr::new("-c"), OsStr::new(script)],
            limit,
        };
        step.run().await.map_err(|error| error.to_string())
    }

    const ENOUGH: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_failure_shows_command_status_and_the_end_of_the_output() {
        let message = shell("seq 1 40; echo 'no \x1b[31mdisk' >&2; exit 3", ENOUGH).await.unwrap_err();
        assert!(message.starts_with("cannot try: `sh -c seq 1 40"), "{message}");
        assert!(message.contains("exit status: 3\n    30\n"), "{message}");
        assert!(message.ends_with("\n    no [31mdisk"), "{message}");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up() {
        let message = shell("sleep 60", Duration::from_millis(50)).await.unwrap_err();
        assert!(message.contains("took longer than"), "{message}");
    }

    #[tokio::test]
    async fn success_returns_what_was_printed() {
        assert_eq!(shell("echo fine", ENOUGH).await.unwrap(), "fine\n");
    }
}
