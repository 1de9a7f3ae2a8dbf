//! What the audience sees.

use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// Numbers and headings.
const HEADING: Style = Style::new().bold();
/// Lines of the log.
const EVENT: Style = AnsiColor::Cyan.on_default();
/// What holds.
const GOOD: Style = AnsiColor::Green.on_default();
/// What does not.
const BAD: Style = AnsiColor::Red.on_default().bold();
/// What explains.
const QUIET: Style = Style::new().dimmed();

/// How a line that changes is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveLine {
    /// Over itself, on a terminal.
    Rewritten,
    /// As one more line, now and then.
    Appended,
}

/// Writes the story, and keeps what did not hold. Its writer strips colours where there are none.
pub struct Narrator {
    out: Box<dyn Write + Send>,
    live: LiveLine,
    scene: usize,
    problems: Vec<String>,
}

impl fmt::Debug for Narrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Narrator").field("scene", &self.scene).field("problems", &self.problems).finish()
    }
}

impl Narrator {
    /// Writes to `out`.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, live: LiveLine) -> Self {
        Self { out, live, scene: 0, problems: Vec::new() }
    }

    /// How a line that changes is shown.
    #[must_use]
    pub fn live(&self) -> LiveLine {
        self.live
    }

    /// What did not hold so far, each in a sentence.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(super) fn title(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{HEADING}{text}{HEADING:#}")
    }

    /// Begins the next scene.
    pub(super) fn scene(&mut self, title: &str) -> io::Result<()> {
        self.scene += 1;
        writeln!(self.out, "\n{HEADING}{:>2}  {title}{HEADING:#}", self.scene)?;
        self.out.flush()
    }

    /// Begins what is not a scene.
    pub(super) fn heading(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out, "\n    {HEADING}{title}{HEADING:#}")
    }

    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "    {text}")?;
        self.out.flush()
    }

    /// A name and its value, aligned with others.
    pub(super) fn fact(&mut self, name: &str, value: &str) -> io::Result<()> {
        writeln!(self.out, "    {name:<22} {value}")
    }

    pub(super) fn explain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "    {QUIET}{text}{QUIET:#}")
    }

    /// A line of the log.
    pub(super) fn event(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "    {EVENT}{line}{EVENT:#}")
    }

    /// Says whether `claim` holds; a problem is what was seen instead.
    pub(super) fn verify(&mut self, claim: &str, problem: Option<String>) -> io::Result<()> {
        match problem {
            None => writeln!(self.out, "    {GOOD}✓{GOOD:#} {claim}")?,
            Some(problem) => {
                writeln!(self.out, "    {BAD}✗ {claim}: {problem}{BAD:#}")?;
                self.problems.push(format!("{claim}: {problem}"));
            }
        }
        self.out.flush()
    }

    /// The line that changes.
    pub(super) fn now(&mut self, text: &str) -> io::Result<()> {
        match self.live {
            LiveLine::Rewritten => write!(self.out, "\r\x1b[K    {text}")?,
            LiveLine::Appended => writeln!(self.out, "    {text}")?,
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn without_a_terminal_it_is_plain_text_and_problems_are_kept() {
        let shared = Shared::default();
        let inner: Box<dyn Write + Send> = Box::new(shared.clone());
        let plain = Box::new(anstream::StripStream::new(inner));
        let mut narrator = Narrator::new(plain, LiveLine::Appended);
        narrator.scene("Three workers").unwrap();
        narrator.verify("no request failed", None).unwrap();
        narrator.verify("b left", Some("it is still there".to_owned())).unwrap();
        narrator.now("5 requests").unwrap();
        let text = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
        let expected =
            "\n 1  Three workers\n    ✓ no request failed\n    ✗ b left: it is still there\n    5 requests\n";
        assert_eq!(text, expected);
        assert_eq!(narrator.problems(), ["b left: it is still there"]);
    }
}
