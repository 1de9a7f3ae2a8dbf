//! Any interleaving of requests, answers, refusals, reconnects and changes keeps the promises.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldplane::events::Offset;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::{ACK_WAIT_MAX, Machine, Request, Response, Served, StreamId, Variant};
use proptest::prelude::*;
use proptest::sample::select;

use crate::dull_client::DullClient;
use foldplane::testing::scenario::Stock;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Change(String),
    Toggle(TypeUrl, &'static str),
    /// The server reads a message.
    Read,
    /// The server's wire has room.
    Send,
    /// The client reads a response and answers it.
    Receive,
    /// An old message arrives again.
    Stale,
    Reconnect,
    Wait(u64),
}

fn change() -> impl Strategy<Value = String> {
    let edit = (select(&TypeUrl::ALL), select(&NAMES), select(&["1", "2", "3", "bad", "-", "1>a", "2>b"]));
    let edits = prop::collection::vec(edit, 1..4);
    edits.prop_map(|edits| {
        let word = |(type_url, name, content): (TypeUrl, &str, &str)| match content {
            "-" => format!("{} -{name}", type_url.short()),
            _ => format!("{} {name}={content}", type_url.short()),
        };
        edits.into_iter().map(word).collect::<Vec<_>>().join(" ")
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => change().prop_map(Step::Change),
        4 => (select(&TypeUrl::ALL), select(&["a", "b", "c", "*"])).prop_map(|(t, n)| Step::Toggle(t, n)),
        6 => Just(Step::Read),
        6 => Just(Step::Send),
        6 => Just(Step::Receive),
        1 => Just(Step::Stale),
        1 => Just(Step::Reconnect),
        1 => (0..7_u64).prop_map(Step::Wait),
    ]
}

struct Run {
    variant: Variant,
    world: Stock,
    client: DullClient,
    machine: Machine,
    streams: u64,
    now: Duration,
    requests: VecDeque<Request>,
    responses: VecDeque<Arc<Response>>,
    old: Vec<Request>,
    /// What was sent and not answered for, by type, with the time.
    unanswered: BTreeMap<String, Vec<(String, Duration)>>,
    offsets: BTreeMap<String, Offset>,
    nonces: BTreeSet<String>,
}

impl Run {
    fn new(variant: Variant) -> Self {
        let world = Stock::default();
        Self {
            variant,
            machine: Machine::new(StreamId(1), variant, Served::All, &world.resources),
            world,
            client: DullClient::new(variant),
            streams: 1,
            now: Duration::from_secs(100),
            requests: VecDeque::new(),
            responses: VecDeque::new(),
            old: Vec::new(),
            unanswered: BTreeMap::new(),
            offsets: BTreeMap::new(),
            nonces: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Change(edits) => self.world.change(edits).unwrap(),
            // Collections are followed in delta only (xds-rules 35).
            Step::Toggle(TypeUrl::LbEndpoint, _) if self.variant == Variant::Sotw => {}
            Step::Toggle(type_url, name) => self.requests.extend(self.client.toggle(*type_url, name)),
            Step::Read => self.read(),
            Step::Send => self.send(),
            Step::Receive => self.receive(),
            Step::Stale => {
                // Only what carries no names may come twice: names are meant when they are said.
                let harmless = self.old.iter().find(|request| request.error.is_some()).cloned();
                if self.variant == Variant::Delta {
                    self.requests.extend(harmless);
                }
            }
            Step::Reconnect => self.reconnect(),
            Step::Wait(seconds) => self.now += Duration::from_secs(*seconds),
        }
    }

    fn read(&mut self) {
        let Some(request) = self.requests.pop_front() else { return };
        if let Some(unanswered) = self.unanswered.get_mut(&request.type_url)
            && let Some(place) = unanswered.iter().position(|(nonce, _)| *nonce == request.nonce)
        {
            unanswered.drain(..=place);
        }
        self.machine.on_request(&request, &self.world.resources, self.now).unwrap();
        self.old.push(request);
    }

    fn send(&mut self) {
        let Some(response) = self.machine.next(&self.world.resources, self.now) else { return };
        let type_url = response.type_url.as_str().to_owned();
        assert!(self.nonces.insert(response.nonce.clone()), "rule 3: a nonce was used twice");
        assert_ne!(response.nonce, response.version.to_string(), "rule 3: a nonce like a version");
        let before = self.offsets.insert(type_url.clone(), response.version.offset);
        assert!(before <= Some(response.version.offset), "rule 19: a stream went back");
        let unanswered = self.unanswered.entry(type_url).or_default();
        let late = |(_, at): &(String, Duration)| *at + ACK_WAIT_MAX <= self.now;
        assert!(unanswered.iter().all(late), "rule 17: two unanswered responses of a type");
        unanswered.push((response.nonce.clone(), self.now));
        self.responses.push_back(response);
    }

    fn receive(&mut self) {
        let Some(response) = self.responses.pop_front() else { return };
        let answer = self.client.receive(&response, &self.world);
        self.requests.push_back(answer);
    }

    fn reconnect(&mut self) {
        self.streams += 1;
        self.requests.clear();
        self.responses.clear();
        self.unanswered.clear();
        self.offsets.clear();
        self.old.clear();
        self.machine = Machine::new(StreamId(self.streams), self.variant, Served::All, &self.world.resources);
        self.requests.extend(self.client.reconnect());
    }

    /// Everybody reads and answers, until nothing is said any more.
    fn calm(&mut self) {
        const ROUNDS_MAX: usize = 1000;
        for _ in 0..ROUNDS_MAX {
            let said = self.nonces.len();
            for _ in 0..20 {
                self.read();
                self.send();
                self.receive();
            }
            let quiet = self.requests.is_empty() && self.responses.is_empty() && self.nonces.len() == said;
            match self.machine.deadline(self.now) {
                Some(deadline) if quiet => self.now = deadline,
                None if quiet => return,
                Some(_) | None => {}
            }
        }
        panic!("rule 15: the conversation does not end");
    }

    /// What was refused gets good again, everything is said, and then nothing more.
    fn settle(&mut self) {
        self.calm();
        let mut good = String::from(" ");
        for type_url in TypeUrl::ALL {
            for resource in self.world.resources.of(type_url).iter() {
                if crate::dull_client::is_bad(&self.world, resource) {
                    good += &format!("{} {}=good ", type_url.short(), resource.name);
                }
            }
        }
        self.world.change(&good).unwrap();
        self.calm();
        assert_eq!(self.client.differences(&self.world.resources), Vec::<String>::new());
        assert_eq!(self.machine.settled(), self.world.resources.offset());
        let said = self.nonces.len();
        self.now += Duration::from_secs(1000);
        self.send();
        assert_eq!(self.nonces.len(), said, "rule 15: an idle server spoke");
    }
}

proptest! {
    #[test]
    fn a_client_ends_with_its_view_of_the_world(steps in prop::collection::vec(step(), 1..120)) {
        for variant in [Variant::Sotw, Variant::Delta] {
            let mut run = Run::new(variant);
            for step in &steps {
                run.step(step);
            }
            run.settle();
        }
    }
}
