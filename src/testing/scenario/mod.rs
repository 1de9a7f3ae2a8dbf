//! A little language for streams, so that a conversation between a client and the server reads like one.
//!
//! ```text
//! change cds web=1 eds web=a    one event: what the server has now
//! view web pay-*                one event: the client sees only these; `view` alone, everything
//! ask cds *                     a client's message: state of the world names the whole set
//! ask cds +web -old             delta edits it
//! ask cds web n=0               with the nonce of another response; `n=` for none
//! ask cds +web known web old~   what a delta client holds from before; `~` in an old version
//! ack cds      nack cds REASON  the answer to the newest response of a type; `nack cds n=1 REASON` to another
//! auto                          from here on every response is accepted at once
//! wait 5                        seconds pass
//! reconnect                     a new stream to the same server
//! ```
//!
//! Below each line stands what the machine sent: type, number of the response, offset in its version, resources,
//! and `-` with the names that were removed.
//!
//! ```
//! use foldplane::testing::scenario::play;
//! use foldplane::xds::protocol::{Served, Variant};
//!
//! let script = "
//!     change cds web=1
//!     ask cds *
//!     ack cds
//!     change cds web=2
//! ";
//! let said = play(Variant::Delta, Served::All, script)?;
//! assert!(said.ends_with("change cds web=2\n   → CDS 2 @2 [web=2]\n"), "{said}");
//! let wrong = play(Variant::Delta, Served::All, "ask cds *\nshout").unwrap_err();
//! assert_eq!(wrong.to_string(), "line 2: shout: there is no such verb");
//! # Ok::<(), foldplane::testing::scenario::ScenarioError>(())
//! ```

mod stock;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

pub use stock::Stock;
use stock::type_named;

use crate::projection::resources::TypeUrl;
use crate::xds::protocol::{
    Edit, Handled, Machine, Names, Request, Response, ResponseType, Served, StreamId, Variant, Verdict,
};

/// A line that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {line}: {problem}")]
pub struct ScenarioError {
    /// Which line, from 1.
    pub number: usize,
    /// What it says.
    pub line: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It begins with none of the verbs.
    #[error("there is no such verb")]
    NoVerb,
    /// It names no type.
    #[error("name a type, such as cds, or its URL")]
    NoType,
    /// A resource without its content.
    #[error("{0:?} is none of a type, name=content and -name")]
    NoContent(String),
    /// A view of something else than globs.
    #[error("{text:?} is no glob: {fault}")]
    NoGlob {
        /// What it says.
        text: String,
        /// Why.
        fault: String,
    },
    /// No number of seconds.
    #[error("{0:?} is no whole number of seconds")]
    NoSeconds(String),
}

/// Plays a scenario of one client and one stream, and gives it back with what the server sent below each line.
///
/// # Errors
///
/// The first line that says nothing.
pub fn play(variant: Variant, served: Served, script: &str) -> Result<String, ScenarioError> {
    let mut player = Player::new(variant, served);
    let lines = (1..).zip(script.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    for (number, line) in lines {
        player.say(line);
        player.step(line).map_err(|problem| ScenarioError { number, line: line.to_owned(), problem })?;
        player.drain();
    }
    Ok(player.out)
}

/// One client and one stream.
struct Player {
    variant: Variant,
    served: Served,
    stock: Stock,
    machine: Machine,
    streams: u64,
    now: Duration,
    answers: Answers,
    /// By type: the newest response's nonce, and the names that a state-of-the-world client repeats in its answer.
    nonces: BTreeMap<String, String>,
    names: BTreeMap<String, Vec<String>>,
    out: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    ByHand,
    Auto,
}

impl Player {
    fn new(variant: Variant, served: Served) -> Self {
        let stock = Stock::default();
        let machine = Machine::new(StreamId(1), variant, served, &stock.resources);
        Self {
            variant,
            served,
            stock,
            machine,
            streams: 1,
            now: Duration::from_secs(100),
            answers: Answers::ByHand,
            nonces: BTreeMap::new(),
            names: BTreeMap::new(),
            out: String::new(),
        }
    }

    /// Adds a line to what is given back.
    fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.out, "{line}").expect("memory takes every write");
    }

    fn step(&mut self, line: &str) -> Result<(), Problem> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "change" => self.stock.change(rest)?,
            "view" => self.stock.view(rest)?,
            "ask" => self.ask(rest)?,
            "ack" => self.answer(rest, None, None),
            "nack" => {
                let (short, reason) = rest.split_once(' ').unwrap_or((rest, "bad"));
                let (number, reason) = match reason.strip_prefix("n=") {
                    Some(text) => {
                        let (number, reason) = text.split_once(' ').unwrap_or((text, "bad"));
                        (Some(number), reason)
                    }
                    None => (None, reason),
                };
                self.answer(short, number, Some(reason.to_owned()));
            }
            "auto" => self.answers = Answers::Auto,
            "wait" => {
                let seconds = rest.parse().map_err(|_| Problem::NoSeconds(rest.to_owned()))?;
                self.now += Duration::from_secs(seconds);
            }
            "reconnect" => self.reconnect(),
            _ => return Err(Problem::NoVerb),
        }
        Ok(())
    }

    /// A new stream to a server with the same resources; the client keeps nothing but its names.
    fn reconnect(&mut self) {
        self.streams += 1;
        self.nonces.clear();
        self.machine = Machine::new(StreamId(self.streams), self.variant, self.served, &self.stock.shown());
    }

    fn ask(&mut self, rest: &str) -> Result<(), Problem> {
        let (words, known) = rest.split_once(" known").unwrap_or((rest, ""));
        let (short, words) = words.split_once(' ').unwrap_or((words, ""));
        if short.is_empty() {
            return Err(Problem::NoType);
        }
        let mut words: Vec<_> = words.split_whitespace().collect();
        let type_url = url(short);
        let mut nonce = self.nonces.get(&type_url).cloned().unwrap_or_default();
        words.retain(|word| match word.strip_prefix("n=") {
            Some("") => {
                nonce.clear();
                false
            }
            Some(number) => {
                nonce = format!("{}.{number}", self.streams);
                false
            }
            None => true,
        });
        let names = match self.variant {
            Variant::Sotw => {
                let names: Vec<_> = words.iter().map(|word| unquote(word)).collect();
                self.names.insert(type_url.clone(), names.clone());
                Names::Whole(names)
            }
            Variant::Delta => Names::Edit(self.edit(short, &words, known)?),
        };
        self.request(&Request { type_url, nonce, error: None, names });
        Ok(())
    }

    fn edit(&self, short: &str, words: &[&str], known: &str) -> Result<Edit, Problem> {
        let with = |sign| words.iter().filter_map(move |word| word.strip_prefix(sign)).map(unquote).collect();
        let known = known.split_whitespace().map(|word| match (word.strip_suffix('~'), type_named(short)) {
            (Some(name), _) => Ok((name.to_owned(), "1-0000000000000000".to_owned())),
            (None, Some(type_url)) => Ok((word.to_owned(), self.stock.version(type_url, word))),
            (None, None) => Err(Problem::NoType),
        });
        let known = known.collect::<Result<_, _>>()?;
        Ok(Edit { subscribe: with('+'), unsubscribe: with('-'), known })
    }

    fn answer(&mut self, short: &str, number: Option<&str>, error: Option<String>) {
        let type_url = url(short);
        let nonce = match number {
            Some(number) => format!("{}.{number}", self.streams),
            None => self.nonces.get(&type_url).cloned().unwrap_or_default(),
        };
        let names = match self.variant {
            Variant::Sotw => Names::Whole(self.names.get(&type_url).cloned().unwrap_or_default()),
            Variant::Delta => Names::Edit(Edit::default()),
        };
        self.request(&Request { type_url, nonce, error, names });
    }

    fn request(&mut self, request: &Request) {
        match self.machine.on_request(request, &self.stock.shown(), self.now) {
            Ok(handled) => self.show_handled(&handled),
            Err(refused) => self.say(format_args!("   closed: {refused}")),
        }
    }

    fn show_handled(&mut self, handled: &Handled) {
        if let Some(url) = &handled.unserved {
            self.say(format_args!("   noted: {url} is not served"));
        }
        let (word, type_url, rejection) = match &handled.verdict {
            None | Some(Verdict::Acked(_)) => return,
            Some(Verdict::Rejected(type_url, rejection)) => ("rejected", type_url, rejection),
            Some(Verdict::RejectedTogether(type_url, rejection)) => {
                ("rejected together", type_url, rejection)
            }
        };
        let names: Vec<_> = rejection.names.iter().map(ToString::to_string).collect();
        let (at, why) = (rejection.version.offset, &rejection.message);
        self.say(format_args!("   {word}: {type_url} {at} [{}] {why}", names.join(" ")));
    }

    fn drain(&mut self) {
        while let Some(response) = self.machine.next(&self.stock.shown(), self.now) {
            self.show(&response);
            let type_url = response.type_url.as_str().to_owned();
            self.nonces.insert(type_url.clone(), response.nonce.clone());
            if self.answers == Answers::Auto {
                self.answer(&type_url, None, None);
            }
        }
    }

    fn show(&mut self, response: &Arc<Response>) {
        let name = match &response.type_url {
            ResponseType::Served(type_url) => type_url.short(),
            ResponseType::Unserved(url) => url,
        };
        let number = response.nonce.split_once('.').map_or("", |(_, number)| number);
        let resources: Vec<_> =
            response.resources.iter().map(|resource| self.stock.label(resource)).collect();
        let removed: Vec<_> = response.removed.iter().map(ToString::to_string).collect();
        let removed = if removed.is_empty() { String::new() } else { format!(" -[{}]", removed.join(" ")) };
        let (at, resources) = (response.version.offset, resources.join(" "));
        self.say(format_args!("   → {name} {number} {at} [{resources}]{removed}"));
    }
}

fn url(short: &str) -> String {
    type_named(short).map_or_else(|| short.to_owned(), |type_url: TypeUrl| type_url.as_str().to_owned())
}

/// `""` stands for the empty name.
fn unquote(word: &str) -> String {
    word.trim_matches('"').to_owned()
}
