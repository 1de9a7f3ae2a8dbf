//! What must hold, one function a property.

use std::collections::BTreeSet;
use std::time::Duration;

use foldplane::engine::open;
use foldplane::events::{Envelope, Offset};
use foldplane::projection::resources::{Dials, Resources, TypeUrl};
use foldplane::projection::state::{Link, Phase, State};
use foldplane::projection::{Snapshot, StateDigest};
use foldplane::testing::model::{told, told_by};
use foldplane::testing::{Answer, published};
use foldplane::xds::protocol::{Response, Variant};

use super::disk::Disk;
use super::log;
use super::network::Line;
use super::site::Site;
use super::steady::Steady;

/// What was acknowledged is durable, and nothing is published before it is.
pub(crate) fn acknowledged_is_durable(acknowledged: Offset, site: &Site) {
    assert_eq!(site.observer.violations(), [] as [String; 0]);
    let durable = site.handle.log().head().offset;
    assert!(acknowledged <= durable, "{acknowledged} was acknowledged, and {durable} is durable");
    assert_eq!(site.handle.snapshot().offset(), durable, "what is published, and what is durable");
}

/// Whatever happens, a log only grows: what a process finds begins with what the one before it had made durable.
pub(crate) fn log_is_a_prefix(before: &[Envelope], after: &[Envelope]) {
    assert!(
        after.starts_with(before),
        "a restart lost or altered what was durable:\n{before:#?}\n{after:#?}"
    );
}

/// What the disk holds is what readers are told, and damage is an error or harmless, never a silent loss.
pub(crate) fn disk_is_the_log(disk: &Disk, durable: &[Envelope]) {
    log_is_a_prefix(durable, &log::events_on(disk).expect("the log on the disk is whole"));
    if let Ok(found) = log::events_after_damage(disk) {
        assert!(
            durable.starts_with(&found) || found.starts_with(durable),
            "damage altered events in silence"
        );
    }
}

/// Live, replayed, and continued from a saved state: the same state, bytes and versions.
pub(crate) fn live_is_replay_is_saved_state_and_tail(site: &Site, saved: State) {
    let live = site.handle.snapshot();
    for start in [State::default(), saved] {
        let opened =
            open(site.handle.log().as_ref(), start, Some(live.offset())).expect("the log can be read");
        assert_eq!(opened.anomalies, [], "an event that was decided made no sense");
        same(&live, &opened.snapshot);
    }
}

fn same(live: &Snapshot, replayed: &Snapshot) {
    assert_eq!(StateDigest::of(replayed.state()), StateDigest::of(live.state()), "the state and its replay");
    for variant in [Variant::Sotw, Variant::Delta] {
        assert_eq!(published(variant, replayed.resources()), published(variant, live.resources()));
    }
    for type_url in TypeUrl::ALL {
        let (live, replayed) = (live.resources().of(type_url), replayed.resources().of(type_url));
        assert_eq!(live.version(), replayed.version(), "{type_url}");
    }
}

/// Clients are told what the dull model makes of the log: no more than policy allows, and no less.
pub(crate) fn published_is_what_the_model_says(site: &Site) {
    let snapshot = site.handle.snapshot();
    for dials in [Dials::Everything, Dials::IpOnly] {
        assert_eq!(told_by(snapshot.resources(), dials), told(&site.durable(), dials));
    }
}

/// On one stream no assignment comes before its cluster; one whose cluster is gone is emptied after it (xds-rules 21, 24).
pub(crate) fn order_of_types(
    told: &BTreeSet<String>,
    type_url: TypeUrl,
    response: &Response,
    resources: &Resources,
) {
    if type_url == TypeUrl::ClusterLoadAssignment {
        let exists = |name: &str| resources.of(TypeUrl::Cluster).get(name).is_some();
        let early = |name: &&str| exists(name) && !told.contains(*name);
        let early = response.resources.iter().map(|sent| sent.name.as_str()).find(early);
        assert_eq!(early, None, "an assignment came before its cluster");
    }
}

/// Nobody waits for ever: every grace, lease and drain has come to its end.
pub(crate) fn nobody_waits_for_ever(state: &State) {
    for (key, worker) in state.workers() {
        assert!(matches!(worker.link, Link::Connected { .. }), "{key} still waits: {:?}", worker.link);
        assert!(!matches!(worker.phase, Phase::Draining { .. }), "{key} still drains");
    }
}

/// Workers that did as they should have kept their place, under the generation that they were given first.
pub(crate) fn the_steady_keep_their_place(steady: &[Steady], state: &State) {
    for place in steady.iter().map(|worker| worker.place().expect("there was time to register")) {
        assert!(state.current(place).is_ok(), "{place} has lost its place");
    }
}

/// A proxy that is left in peace holds what is published, can use all of it, and hears nothing more.
pub(crate) fn a_proxy_ends_at_its_view(line: &mut Line, site: &Site, now: Duration) {
    let resources = site.handle.resources().borrow().clone();
    let proxy = line.proxy();
    assert_eq!(
        proxy.view(),
        published(proxy.variant(), &resources),
        "what a proxy holds, and what is published"
    );
    assert_eq!(line.left_warming(), None, "a proxy waits for assignments");
    let later = now + Duration::from_secs(3600);
    assert!(!line.turn(Answer::Accept, &resources, later), "an idle stream spoke");
}
