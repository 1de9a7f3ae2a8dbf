//! `foldplane log verify`: reads everything and says what is wrong.

use std::collections::BTreeMap;

use clap::Args;

use super::folder::{Folder, progress};
use crate::cli::{Exit, Failure, out};
use crate::events::log::{Checkpoints, Verification, verify};
use crate::events::{Envelope, Head, Offset};
use crate::projection::state::State;
use crate::projection::{checkpoint, evolve};

/// Read a whole log and say everything that is wrong with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Checks every frame, the hash chain, that no event is missing, the acknowledged end, and that each saved state is
what the events give. Changes nothing. Exit code 6 when something is wrong.")]
pub(super) struct Verify {
    #[command(flatten)]
    folder: Folder,
}

impl Verify {
    pub(super) fn run(self) -> Result<(), Failure> {
        let dir = self.folder.path()?;
        let bar = progress("verified");
        let mut saved = SavedStates::of(&Checkpoints::of(&dir))?;
        let found = verify(&dir, |envelope, head| {
            bar.inc(1);
            saved.observe(&envelope, head);
        })?;
        bar.finish_and_clear();
        let findings = saved.findings(&found);
        out::data(&report(&found, &findings))?;
        match found.findings.len() + findings.len() {
            0 => Ok(()),
            count => Err(Failure::new(Exit::Damaged, format!("{count} things are wrong with the log"))
                .hint(way_out(&found))),
        }
    }
}

fn way_out(found: &Verification) -> String {
    match found.lost() {
        Some((first, _)) => {
            format!("`foldplane log repair --truncate-from {first} --to NEW-DIR` copies what is whole")
        }
        None => "`foldplane log repair --to NEW-DIR` makes a copy of the events, all of which are whole"
            .to_owned(),
    }
}

/// What a verification found, for people.
pub(super) fn report(found: &Verification, more: &[String]) -> String {
    let mut text = format!(
        "events    {} to {}, all whole\nsegments  {}\nchain     {}\n",
        found.before.offset.next(),
        found.good.offset,
        found.segments,
        found.good.chain
    );
    if let Some((first, last)) = found.lost() {
        text.push_str(&format!("missing   {first} to {last}, which were acknowledged\n"));
    }
    let messages = found.findings.iter().map(|finding| finding.message.as_str());
    for message in messages.chain(more.iter().map(String::as_str)) {
        text.push_str(&format!("wrong     {message}\n"));
    }
    text
}

/// The saved states, each compared with what the events give.
struct SavedStates {
    unseen: BTreeMap<Offset, Result<(Head, Vec<u8>), String>>,
    /// Nothing while the events before the first saved state are gone.
    state: Option<State>,
    wrong: Vec<String>,
}

impl SavedStates {
    fn of(checkpoints: &Checkpoints) -> Result<Self, Failure> {
        let offsets = checkpoints.offsets()?;
        let unseen = offsets.into_iter().map(|offset| (offset, checkpoints.read(offset))).collect();
        Ok(Self { unseen, state: None, wrong: Vec::new() })
    }

    fn observe(&mut self, envelope: &Envelope, head: Head) {
        if head.offset == Offset::ZERO.next() {
            self.state = Some(State::default());
        }
        if let Some(state) = &mut self.state {
            evolve(state, envelope);
        }
        if let Some(saved) = self.unseen.remove(&head.offset)
            && let Err(reason) = self.compare(head, saved)
        {
            self.wrong.push(format!("the state saved at {}: {reason}", head.offset));
        }
    }

    fn compare(&mut self, head: Head, saved: Result<(Head, Vec<u8>), String>) -> Result<(), String> {
        let (bound, bytes) = saved?;
        if bound != head {
            return Err("it was saved from other events".to_owned());
        }
        let decoded = checkpoint::decode(&bytes).map_err(|error| error.to_string())?;
        match &self.state {
            None => self.state = Some(decoded),
            Some(state) if *state == decoded => {}
            Some(_) => return Err("the events give another one".to_owned()),
        }
        Ok(())
    }

    fn findings(self, found: &Verification) -> Vec<String> {
        // What was saved before the first event that is kept has nothing to be compared with but its checksum.
        let unread = self.unseen.into_iter().filter_map(|(offset, saved)| match saved {
            Err(reason) => Some(format!("the state saved at {offset}: {reason}")),
            Ok(_) if offset > found.good.offset => {
                Some(format!("the state saved at {offset} is after the last whole event"))
            }
            Ok(_) => None,
        });
        self.wrong.into_iter().chain(unread).collect()
    }
}
