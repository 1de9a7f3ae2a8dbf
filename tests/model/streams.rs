//! Clients of both variants, slow ones, refusing ones and reconnecting ones, while the world and their views change: what
//! each ends up with is its view of what is published, and then it is quiet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use foldplane::events::Envelope;
use foldplane::projection::resources::{Dials, NodeLabels, Resources, Scope, Shown, TypeUrl, Version};
use foldplane::testing::model::views;
use foldplane::testing::{Answer, Client, Step, Turn, World, published, step, worker};
use foldplane::xds::protocol::Variant;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// What may happen.
#[derive(Clone, Debug)]
enum Act {
    World(Box<Step>),
    Turn(usize, Answer),
    Reconnect(usize),
    Wait(u64),
}

/// So many clients, by turns of either variant; the last two dial IP addresses only.
const CLIENTS: usize = 6;

fn act() -> impl Strategy<Value = Act> {
    let answer = select(&[Answer::Accept, Answer::Accept, Answer::Accept, Answer::Refuse, Answer::Later][..]);
    prop_oneof![
        8 => step(worker().boxed()).prop_map(Box::new).prop_map(Act::World),
        8 => (0..CLIENTS, answer).prop_map(|(client, answer)| Act::Turn(client, answer)),
        1 => (0..CLIENTS).prop_map(Act::Reconnect),
        1 => (0..6_000_u64).prop_map(Act::Wait),
    ]
}

/// A client with what its server shows it, kept in step as a server does.
struct Guest {
    id: String,
    cluster: &'static str,
    dials: Dials,
    scope: Scope,
    shown: Shown,
    variant: Variant,
    client: Client,
}

impl Guest {
    fn new(number: usize, variant: Variant, whole: &Arc<Resources>) -> Self {
        let scope = Scope::default();
        let shown = scope.show(whole);
        let client = Client::new(variant, shown.resources(), Duration::ZERO);
        let cluster = if number < CLIENTS / 2 { "edge" } else { "inner" };
        let dials = if number < CLIENTS - 2 { Dials::Everything } else { Dials::IpOnly };
        Self { id: format!("n{number}"), cluster, dials, scope, shown, variant, client }
    }

    fn look(&mut self, whole: &Arc<Resources>) -> Arc<Resources> {
        let (id, dials) = (&self.id, self.dials);
        let labels = NodeLabels { id, cluster: self.cluster, metadata: &Value::Null, dials };
        let scope = whole.views().scope(labels);
        self.shown = if scope == self.scope { scope.follow(&self.shown, whole) } else { scope.show(whole) };
        self.scope = scope;
        Arc::clone(self.shown.resources())
    }

    /// What it must hold in the end.
    fn view(&self, log: &[Envelope], whole: &Arc<Resources>) -> BTreeMap<(TypeUrl, String), Version> {
        let like = |glob: &str, text: &str| is_like(glob.as_bytes(), text.as_bytes());
        let views = views(log);
        let mine: Vec<_> = views
            .values()
            .filter(|view| view.nodes.ids.iter().any(|glob| like(glob.as_str(), &self.id)))
            .filter(|view| {
                let clusters = &view.nodes.clusters;
                clusters.is_empty() || clusters.iter().any(|glob| like(glob.as_str(), self.cluster))
            })
            .collect();
        let mut held = published(self.variant, &whole.dialled(self.dials));
        if !mine.is_empty() {
            held.retain(|(_, name), _| {
                let service = name.split_once(':').map_or(name.as_str(), |(service, _)| service);
                let mut globs = mine.iter().flat_map(|view| &view.services);
                globs.any(|glob| like(glob.as_str(), name) || like(glob.as_str(), service))
            });
        }
        held
    }
}

fn is_like(glob: &[u8], text: &[u8]) -> bool {
    match (glob, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|skipped| is_like(rest, &text[skipped..])),
        ([b'?', rest @ ..], [_, text @ ..]) => is_like(rest, text),
        ([letter, rest @ ..], [first, text @ ..]) => letter == first && is_like(rest, text),
        ([], _) | (_, []) => false,
    }
}

#[track_caller]
fn check(acts: &[Act]) {
    let mut world = World::default();
    let mut now = Duration::ZERO;
    let variants = [Variant::Sotw, Variant::Delta].into_iter().cycle().take(CLIENTS).enumerate();
    let mut guests: Vec<Guest> =
        variants.map(|(number, variant)| Guest::new(number, variant, world.snapshot.resources())).collect();
    for act in acts {
        let whole = Arc::clone(world.snapshot.resources());
        match act {
            Act::World(step) => drop(world.step(step)),
            Act::Turn(guest, answer) => {
                let resources = guests[*guest].look(&whole);
                guests[*guest].client.turn(*answer, &resources, now);
            }
            Act::Reconnect(guest) => {
                let resources = guests[*guest].look(&whole);
                guests[*guest].client.reconnect(&resources, now);
            }
            Act::Wait(ms) => now += Duration::from_millis(*ms),
        }
    }
    let whole = world.snapshot.resources();
    for guest in &mut guests {
        let resources = guest.look(whole);
        // What was refused is not sent again on its stream, until it changes (xds-rules 18).
        if guest.client.proxy().has_refused() {
            guest.client.reconnect(&resources, now);
        }
        let rest = guest.client.settle(&resources, now);
        let proxy = guest.client.proxy();
        assert_eq!(proxy.view(), guest.view(&world.log, whole), "what {} holds, and its view", guest.id);
        // xds-rules 22
        assert!(proxy.warming().is_empty(), "{} waits for assignments: {:?}", guest.id, proxy.warming());
        // xds-rules 15
        let later = rest + Duration::from_secs(3600);
        assert_eq!(
            guest.client.turn(Answer::Accept, &resources, later),
            Turn::Silent,
            "an idle stream spoke"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_client_ends_at_its_view_of_what_is_published(acts in vec(act(), 1..80)) {
        check(&acts);
    }
}
