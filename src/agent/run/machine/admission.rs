//! The agent and the control plane: admission, ports, and a session that comes and goes.

use std::path::Path;

use crate::agent::client::{Notice, Ticket, Wish};
use crate::agent::run::assignment::Assignment;
use crate::proto;

use super::stop::{FAULT, exit_of_refusal};
use super::{Effect, Link, Machine, Phase, Standing, Timer};

/// How often another port is asked for when a stranger sits on the one that was given.
const PORT_ATTEMPTS_MAX: u32 = 16;

impl Machine {
    pub(super) fn noticed(&mut self, notice: Notice) {
        match notice {
            Notice::Connected => self.connected(),
            Notice::Disconnected { problem, .. } => self.disconnected(&problem),
            Notice::Registered { ticket, worker, ports } if ticket == self.ticket => {
                self.registered(&worker, &ports);
            }
            Notice::Refused { ticket, refusal, .. } if ticket == self.ticket => self.refused(&refusal),
            Notice::Draining { ticket, drain_ms } if ticket == self.ticket => self.told_to_drain(drain_ms),
            Notice::Gone { ticket, cause } if ticket == self.ticket => self.gone(&cause),
            Notice::HostRefused { refusal } => self.refused(&refusal),
            Notice::Reported { wish: Wish::Ready, offset, .. } => {
                self.say(format!("the worker can serve: proxies know since @{offset}"));
            }
            // What an earlier registration of ours still brings, and what nobody waits for.
            Notice::Registered { .. }
            | Notice::Refused { .. }
            | Notice::Draining { .. }
            | Notice::Gone { .. }
            | Notice::Reported { .. } => {}
        }
    }

    fn connected(&mut self) {
        if self.link == Link::Away {
            self.say("reached the control plane");
        }
        self.link = Link::Open;
    }

    fn disconnected(&mut self, problem: &str) {
        let server = &self.plan.server;
        let text = match self.link {
            Link::Untried => Some(format!(
                "cannot reach the control plane at {server} ({problem}); trying again: start it with `foldplane serve`, or give --server"
            )),
            Link::Open => Some(format!(
                "lost the control plane at {server} ({problem}); the worker runs on, and rejoins"
            )),
            // Said already.
            Link::Away => None,
        };
        self.link = Link::Away;
        if let Some(text) = text.filter(|_| self.phase != Phase::Leaving) {
            self.say(text);
        }
    }

    fn registered(&mut self, worker: &proto::WorkerRef, ports: &[proto::Port]) {
        let assignment = match Assignment::new(worker, ports) {
            Ok(assignment) => assignment,
            Err(unusable) => {
                self.say(unusable.to_string());
                return self.leave(FAULT, None);
            }
        };
        self.give(Effect::Disarm(Timer::Welcome));
        if self.phase == Phase::Registering {
            self.say(format!("registered {assignment}"));
            self.assignment = Some(assignment.clone());
            self.give(Effect::TestPorts(assignment));
        } else {
            self.say(format!("registered anew: {assignment}"));
        }
    }

    fn refused(&mut self, refusal: &proto::Rejected) {
        let proto::Rejected { code, message, hint } = refusal;
        self.say(format!("the control plane refused: {message} ({code}); {hint}"));
        // Before there is a child, only a fault of the control plane's own is worth waiting for.
        if self.phase == Phase::Registering && code != "storage_unavailable" {
            self.standing = Standing::Gone;
            self.leave(exit_of_refusal(code), None);
        }
    }

    pub(super) fn socket_taken(&mut self, path: &Path) {
        let path = path.display();
        self.say(format!("another program listens on {path}; stop it, or give another path"));
        self.leave(FAULT, None);
    }

    pub(super) fn port_taken(&mut self, port: u16) {
        self.port_attempts += 1;
        if self.plan.insists_on(port) {
            self.say(format!(
                "port {port} is in use by another program; stop it, or give another number, or none"
            ));
            return self.leave(FAULT, None);
        }
        if self.port_attempts >= PORT_ATTEMPTS_MAX {
            self.say(format!("{PORT_ATTEMPTS_MAX} ports in a row are in use by other programs; report another port range for this host"));
            return self.leave(FAULT, None);
        }
        self.say(format!("port {port} is in use by another program; asking for another"));
        self.give(Effect::ReportBusy(port));
        self.give(Effect::Wish(self.ticket, Wish::Gone { exit: None }));
        self.assignment = None;
        self.ticket = Ticket(self.ticket.0 + 1);
        self.add();
    }
}
