//! Whether the end of a log holds what was acknowledged.

use super::{BlockError, BlockView};
use crate::events::Head;

/// A walk from a place at or before the acknowledged head to the end of a log, which checks every link on its way.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    head: Head,
    acknowledged: Head,
    witnessed: Option<Head>,
}

/// Why the end of a log is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TailError {
    /// It ends before what was acknowledged.
    #[error("events up to {} were acknowledged, but the log ends at {}", acknowledged.offset, found.offset)]
    Vanished {
        /// Where it ends.
        found: Head,
        /// Where it should end, or go on.
        acknowledged: Head,
    },
    /// It goes as far, with other events.
    #[error("other events were acknowledged: the witness has {acknowledged}, here is {found}")]
    Altered {
        /// What is there.
        found: Head,
        /// What was acknowledged.
        acknowledged: Head,
    },
}

impl Tail {
    /// A walk that starts after `before`.
    #[must_use]
    pub fn after(before: Head, acknowledged: Head) -> Self {
        let witnessed = (before.offset == acknowledged.offset).then_some(before);
        Self { head: before, acknowledged, witnessed }
    }

    /// Takes the next block.
    ///
    /// # Errors
    ///
    /// [`BlockError`] when it does not go on where the walk is.
    pub fn take(&mut self, block: &BlockView<'_>) -> Result<(), BlockError> {
        block.check_link(self.head)?;
        for body in block.bodies().flatten() {
            self.head = self.head.link(block.schema(), body);
            if self.head.offset == self.acknowledged.offset {
                self.witnessed = Some(self.head);
            }
        }
        Ok(())
    }

    /// Where the walk is.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The end of the log, when everything that was acknowledged was met on the way.
    ///
    /// # Errors
    ///
    /// [`TailError`].
    pub fn end(self) -> Result<Head, TailError> {
        let Self { head, acknowledged, witnessed } = self;
        match witnessed {
            None => Err(TailError::Vanished { found: head, acknowledged }),
            Some(found) if found != acknowledged => Err(TailError::Altered { found, acknowledged }),
            Some(_) => Ok(head),
        }
    }
}
