//! Clients of both variants, slow ones, refusing ones and reconnecting ones, while the world changes: what each ends
//! up with is what is published, and then it is quiet.

use std::sync::Arc;
use std::time::Duration;

use foldplane::testing::{Answer, Client, Step, Turn, World, published, step, worker};
use foldplane::xds::protocol::Variant;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// What may happen.
#[derive(Clone, Debug)]
enum Act {
    World(Box<Step>),
    Turn(usize, Answer),
    Reconnect(usize),
    Wait(u64),
}

/// So many clients, by turns of either variant.
const CLIENTS: usize = 4;

fn act() -> impl Strategy<Value = Act> {
    let answer = select(&[Answer::Accept, Answer::Accept, Answer::Accept, Answer::Refuse, Answer::Later][..]);
    prop_oneof![
        8 => step(worker().boxed()).prop_map(Box::new).prop_map(Act::World),
        8 => (0..CLIENTS, answer).prop_map(|(client, answer)| Act::Turn(client, answer)),
        1 => (0..CLIENTS).prop_map(Act::Reconnect),
        1 => (0..6_000_u64).prop_map(Act::Wait),
    ]
}

#[track_caller]
fn check(acts: &[Act]) {
    let mut world = World::default();
    let mut now = Duration::ZERO;
    let variants = [Variant::Sotw, Variant::Delta].into_iter().cycle().take(CLIENTS);
    let mut clients: Vec<Client> =
        variants.map(|variant| Client::new(variant, world.snapshot.resources(), now)).collect();
    for act in acts {
        let resources = Arc::clone(world.snapshot.resources());
        match act {
            Act::World(step) => drop(world.step(step)),
            Act::Turn(client, answer) => {
                clients[*client].turn(*answer, &resources, now);
            }
            Act::Reconnect(client) => clients[*client].reconnect(&resources, now),
            Act::Wait(ms) => now += Duration::from_millis(*ms),
        }
    }
    let resources = world.snapshot.resources();
    for client in &mut clients {
        // What was refused is not sent again on its stream, until it changes (xds-rules 18).
        if client.has_refused() {
            client.reconnect(resources, now);
        }
        let rest = client.settle(resources, now);
        assert_eq!(client.view(), published(resources), "what a client holds, and what is published");
        // xds-rules 15
        let later = rest + Duration::from_secs(3600);
        assert_eq!(client.turn(Answer::Accept, resources, later), Turn::Silent, "an idle stream spoke");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_client_ends_at_what_is_published(acts in vec(act(), 1..80)) {
        check(&acts);
    }
}
