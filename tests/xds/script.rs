//! A little language for streams, so that a rule reads like a conversation.
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
//! ```
//!
//! Below each line stands what the machine sent: type, number of the response, offset in its version, resources,
//! and `-` with the names that were removed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use expect_test::Expect;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::{
    Edit, Handled, Machine, Names, Request, Response, ResponseType, Served, StreamId, Variant, Verdict,
};

use crate::world::{World, type_named};

#[track_caller]
pub(crate) fn sotw(script: &str, expected: Expect) {
    check(Variant::Sotw, Served::All, script, expected);
}

#[track_caller]
pub(crate) fn delta(script: &str, expected: Expect) {
    check(Variant::Delta, Served::All, script, expected);
}

#[track_caller]
pub(crate) fn check(variant: Variant, served: Served, script: &str, expected: Expect) {
    expected.assert_eq(&Player::new(variant, served).play(script));
}

/// One client and one stream.
pub(crate) struct Player {
    variant: Variant,
    served: Served,
    pub(crate) world: World,
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
    pub(crate) fn new(variant: Variant, served: Served) -> Self {
        let world = World::default();
        let machine = Machine::new(StreamId(1), variant, served, &world.resources);
        Self {
            variant,
            served,
            world,
            machine,
            streams: 1,
            now: Duration::from_secs(100),
            answers: Answers::ByHand,
            nonces: BTreeMap::new(),
            names: BTreeMap::new(),
            out: String::new(),
        }
    }

    pub(crate) fn play(mut self, script: &str) -> String {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            writeln!(self.out, "{line}").unwrap();
            self.step(line);
            self.drain();
        }
        self.out
    }

    fn step(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "change" => self.world.change(rest),
            "view" => self.world.view(rest),
            "ask" => self.ask(rest),
            "ack" => self.answer(rest, None, None),
            "nack" => {
                let (short, reason) = rest.split_once(' ').unwrap_or((rest, "bad"));
                let (number, reason) = match reason.strip_prefix("n=") {
                    Some(text) => {
                        text.split_once(' ').map(|(number, reason)| (Some(number), reason)).unwrap()
                    }
                    None => (None, reason),
                };
                self.answer(short, number, Some(reason.to_owned()));
            }
            "auto" => self.answers = Answers::Auto,
            "wait" => self.now += Duration::from_secs(rest.parse().unwrap()),
            "reconnect" => self.reconnect(),
            _ => panic!("{line}: no such verb"),
        }
    }

    /// A new stream to a server with the same resources; the client keeps nothing but its names.
    fn reconnect(&mut self) {
        self.streams += 1;
        self.nonces.clear();
        self.machine = Machine::new(StreamId(self.streams), self.variant, self.served, &self.world.shown());
    }

    fn ask(&mut self, rest: &str) {
        let (words, known) = rest.split_once(" known").unwrap_or((rest, ""));
        let mut words: Vec<_> = words.split_whitespace().collect();
        let short = words.remove(0);
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
            Variant::Delta => Names::Edit(self.edit(short, &words, known)),
        };
        self.request(Request { type_url, nonce, error: None, names });
    }

    fn edit(&self, short: &str, words: &[&str], known: &str) -> Edit {
        let with = |sign| words.iter().filter_map(move |word| word.strip_prefix(sign)).map(unquote).collect();
        let known = known.split_whitespace().map(|word| match word.strip_suffix('~') {
            Some(name) => (name.to_owned(), "1-0000000000000000".to_owned()),
            None => (word.to_owned(), self.world.version(type_named(short).unwrap(), word)),
        });
        Edit { subscribe: with('+'), unsubscribe: with('-'), known: known.collect() }
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
        self.request(Request { type_url, nonce, error, names });
    }

    fn request(&mut self, request: Request) {
        match self.machine.on_request(&request, &self.world.shown(), self.now) {
            Ok(handled) => self.show_handled(&handled),
            Err(refused) => writeln!(self.out, "   closed: {refused}").unwrap(),
        }
    }

    fn show_handled(&mut self, handled: &Handled) {
        if let Some(url) = &handled.unserved {
            writeln!(self.out, "   noted: {url} is not served").unwrap();
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
        writeln!(self.out, "   {word}: {type_url} {at} [{}] {why}", names.join(" ")).unwrap();
    }

    fn drain(&mut self) {
        while let Some(response) = self.machine.next(&self.world.shown(), self.now) {
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
        let number = response.nonce.split_once('.').unwrap().1;
        let resources: Vec<_> =
            response.resources.iter().map(|resource| self.world.label(resource)).collect();
        write!(self.out, "   → {name} {number} {} [{}]", response.version.offset, resources.join(" "))
            .unwrap();
        if !response.removed.is_empty() {
            let removed: Vec<_> = response.removed.iter().map(ToString::to_string).collect();
            write!(self.out, " -[{}]", removed.join(" ")).unwrap();
        }
        self.out.push('\n');
    }
}

fn url(short: &str) -> String {
    type_named(short).map_or_else(|| short.to_owned(), |type_url: TypeUrl| type_url.as_str().to_owned())
}

/// `""` stands for the empty name.
fn unquote(word: &str) -> String {
    word.trim_matches('"').to_owned()
}
