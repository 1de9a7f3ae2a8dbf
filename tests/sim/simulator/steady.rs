//! Workers that do as they should, and that nobody else has a say over: whatever fails, they must keep their place.

use foldplane::command::{Command, Listen, PortRequest, Registering};
use foldplane::engine::{Accepted, SubmitError};
use foldplane::events::event::{DisconnectCause, Lease, RemovalCause};
use foldplane::events::{HostName, PortName, ServiceName, SessionId, WorkerId, WorkerKey, WorkerRef};

use super::site::Site;

/// So many steady workers: with a connection, and with a time to live, by turns.
pub(crate) const STEADY: usize = 4;

/// How long a renewal lasts, in milliseconds.
const TTL_MS: u32 = 6_000;

/// How long a lost connection is waited for, in milliseconds.
const GRACE_MS: u32 = 5_000;

/// Renewals come three times as often as they must, and the wait between two looks is short beside both.
const RENEW_MS: u64 = 2_000;

/// A worker that does as it should.
pub(crate) struct Steady {
    key: WorkerKey,
    lease: Lease,
    /// Its place, once it has one.
    place: Option<WorkerRef>,
    session: SessionId,
    sessions: u64,
    link: Link,
    renewed_ms: u64,
    /// Whether it was told that the disk is full when it wanted to come back.
    turned_away: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Up,
    /// It has to speak for itself anew.
    Down,
}

/// What somebody says of a steady worker that is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// An earlier registration of it says goodbye.
    StaleGoodbye,
    /// An earlier registration of it wants to drain.
    StaleDrain,
    /// An earlier registration of it wants to speak again.
    StaleRejoin,
    /// A worker with a connection renews a lease that it does not have.
    WrongRenewal,
    /// Another worker wants its port.
    PortOfAnother,
    /// A connection that it had before ends now.
    OldConnectionEnds,
}

impl Lie {
    pub(crate) const ALL: [Self; 6] = [
        Self::StaleGoodbye,
        Self::StaleDrain,
        Self::StaleRejoin,
        Self::WrongRenewal,
        Self::PortOfAnother,
        Self::OldConnectionEnds,
    ];
}

impl Steady {
    pub(crate) fn new(number: usize) -> Self {
        let key = WorkerKey {
            service: ServiceName::new("steady").unwrap(),
            host: HostName::new("h9").unwrap(),
            id: WorkerId::new(&number.to_string()).unwrap(),
        };
        let lease = if number.is_multiple_of(2) {
            Lease::Session { disconnect_grace_ms: GRACE_MS }
        } else {
            Lease::Ttl { ttl_ms: TTL_MS }
        };
        let session = session(&key, 0);
        let (place, link, sessions) = (None, Link::Down, 0);
        Self { key, lease, place, session, sessions, link, renewed_ms: 0, turned_away: false }
    }

    /// The connection is lost.
    pub(crate) async fn disconnect(&mut self, site: &Site) {
        self.link = Link::Down;
        if self.lease.disconnect_grace_ms().is_some() {
            site.notify(Command::CloseSession {
                session: self.session.clone(),
                cause: DisconnectCause::Closed,
            })
            .await;
        }
    }

    /// The server is another process now.
    pub(crate) fn lose_server(&mut self) {
        self.link = Link::Down;
    }

    /// Does what is to be done at this time.
    pub(crate) async fn tick(&mut self, site: &Site, now_ms: u64) {
        let Some(place) = self.place.clone() else { return self.register(site).await };
        match (self.lease, self.link) {
            (Lease::Session { .. }, Link::Down) => {
                self.sessions += 1;
                self.session = session(&self.key, self.sessions);
                let rejoin = Command::Rejoin { worker: place, session: self.session.clone() };
                self.hear(site.submit(rejoin).await);
            }
            (Lease::Ttl { .. }, Link::Up) if now_ms < self.renewed_ms + RENEW_MS => {}
            (Lease::Ttl { .. }, _) => {
                self.hear(site.submit(Command::Renew { worker: place }).await);
                self.renewed_ms = now_ms;
            }
            (Lease::Session { .. }, Link::Up) => {}
        }
    }

    /// Nobody else has a say over it, so that it is never told that its place is gone.
    fn hear(&mut self, answer: Result<Accepted, SubmitError>) {
        match answer {
            Ok(_) => (self.link, self.turned_away) = (Link::Up, false),
            Err(SubmitError::StorageUnavailable { reason }) => self.turned_away |= reason.contains("is full"),
            // On a full disk nobody can come back, and removals go on.
            Err(SubmitError::Rejected(_)) if self.turned_away => {
                (self.place, self.turned_away) = (None, false)
            }
            Err(refused) => panic!("the steady worker {} lost its place: {refused}", self.key),
        }
    }

    async fn register(&mut self, site: &Site) {
        let answer = site.submit(Command::Register(self.wish(None))).await;
        if let Ok(accepted) = &answer {
            let live = accepted.snapshot.state().workers().get(&self.key).expect("it was admitted");
            self.place = Some(WorkerRef { key: self.key.clone(), generation: live.generation });
        }
        self.hear(answer);
    }

    fn wish(&self, number: Option<u16>) -> Registering {
        let port = PortName::new("http").unwrap();
        let number = number.map(|number| number.try_into().expect("a port"));
        let ports = vec![PortRequest { name: port, listen: Listen::Port { number, address: None } }];
        Registering { ports, ..Registering::new(self.key.clone(), self.session.clone(), self.lease) }
    }

    /// Somebody lies about it. Whatever it is, it is refused or changes nothing.
    pub(crate) async fn slander(&self, lie: Lie, site: &Site) {
        let Some(place) = self.place.clone() else { return };
        let before = place.generation.offset().get() - 1;
        let stale = WorkerRef {
            generation: foldplane::events::Generation::at(foldplane::events::Offset::new(before)),
            ..place.clone()
        };
        let stranger = SessionId::new("stranger").unwrap();
        let command = match lie {
            Lie::StaleGoodbye => Command::Remove { worker: stale, cause: RemovalCause::Deregistered },
            Lie::StaleDrain => Command::Drain { worker: stale, reason: String::new(), drain_ms: None },
            Lie::StaleRejoin => Command::Rejoin { worker: stale, session: stranger },
            Lie::WrongRenewal if self.lease.ttl_ms().is_none() => Command::Renew { worker: place.clone() },
            Lie::WrongRenewal | Lie::OldConnectionEnds => {
                let old = session(&self.key, self.sessions.wrapping_sub(1));
                Command::CloseSession { session: old, cause: DisconnectCause::Silent }
            }
            Lie::PortOfAnother => {
                let snapshot = site.handle.snapshot();
                let mut ports = snapshot.state().ports().iter();
                let Some((taken, _)) = ports.find(|(_, owner)| **owner == self.key) else { return };
                let mut wish = self.wish(Some(taken.number));
                wish.worker.id = WorkerId::new("liar").unwrap();
                Command::Register(wish)
            }
        };
        let closes = matches!(command, Command::CloseSession { .. });
        // Of whom an outage has taken the place, everything may be said.
        let is_gone = self.turned_away || site.handle.snapshot().state().current(&place).is_err();
        let answer = site.submit(command).await;
        let harmless =
            matches!(answer, Err(SubmitError::Rejected(_) | SubmitError::StorageUnavailable { .. }));
        assert!(harmless || is_gone || (closes && answer.is_ok()), "a lie was believed: {lie:?}, {answer:?}");
    }

    /// Its place, once it has one.
    pub(crate) fn place(&self) -> Option<&WorkerRef> {
        self.place.as_ref()
    }
}

fn session(key: &WorkerKey, number: u64) -> SessionId {
    SessionId::new(&format!("{}-{number}", key.id)).unwrap()
}
