//! How far a client is with an offset, while newer ones come.

use std::time::Duration;

use foldplane::events::Offset;
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::Standing::{self, Reached, Rejected, Waiting};
use foldplane::xds::protocol::{Edit, Machine, Names, Request, Served, StreamId, Variant};

use foldplane::testing::scenario::Stock;

/// A delta client of clusters.
struct Client {
    world: Stock,
    machine: Machine,
}

impl Client {
    fn new() -> Self {
        let world = Stock::default();
        let machine = Machine::new(StreamId(1), Variant::Delta, Served::All, &world.resources);
        let mut client = Self { world, machine };
        client.say("", None);
        client
    }

    fn say(&mut self, nonce: &str, error: Option<&str>) {
        let request = Request {
            type_url: TypeUrl::Cluster.as_str().into(),
            nonce: nonce.into(),
            error: error.map(Into::into),
            names: Names::Edit(Edit::default()),
        };
        self.machine.on_request(&request, &self.world.resources, Duration::ZERO).unwrap();
    }

    /// The nonce of the next response.
    fn next(&mut self) -> String {
        self.machine.next(&self.world.resources, Duration::ZERO).unwrap().nonce.clone()
    }

    fn accept(&mut self) {
        let nonce = self.next();
        self.say(&nonce, None);
    }

    #[track_caller]
    fn stands(&self, expected: &[Standing]) {
        let status = self.machine.status(TypeUrl::Cluster).unwrap();
        let found: Vec<_> = (1..).take(expected.len()).map(|at| status.standing(Offset::new(at))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn an_answer_counts_for_the_offset_that_it_is_about_and_not_for_later_ones() {
    let mut client = Client::new();
    client.world.change("cds web=1").unwrap();
    client.accept();
    client.world.change("cds web=2").unwrap();
    let second = client.next();
    client.world.change("cds web=3").unwrap();
    assert_eq!(client.machine.next(&client.world.resources, Duration::ZERO), None, "one is unanswered");
    client.stands(&[Reached, Waiting, Waiting]);
    client.say(&second, None);
    client.stands(&[Reached, Reached, Waiting]);
    client.accept();
    client.stands(&[Reached, Reached, Reached]);
    // What does not concern it, it has; what is not there yet, nobody has.
    client.world.change("eds web=1").unwrap();
    assert_eq!(client.machine.next(&client.world.resources, Duration::ZERO), None);
    client.stands(&[Reached, Reached, Reached, Reached, Waiting]);
}

#[test]
fn what_is_refused_stays_so_until_something_newer_is_accepted() {
    let mut client = Client::new();
    client.world.change("cds web=1").unwrap();
    client.accept();
    client.world.change("cds web=bad").unwrap();
    let bad = client.next();
    client.say(&bad, Some("bad"));
    client.stands(&[Reached, Rejected, Waiting]);
    client.world.change("cds other=1").unwrap();
    client.accept();
    client.stands(&[Reached, Rejected, Rejected]);
    client.world.change("cds web=3").unwrap();
    client.stands(&[Reached, Rejected, Rejected, Waiting]);
    client.accept();
    client.stands(&[Reached, Reached, Reached, Reached]);
}
