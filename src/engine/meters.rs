//! What the writer has done since its start, in numbers.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// What came of a wish that is durable and published.
pub(super) const ACCEPTED: &str = "accepted";

/// What came of a wish, where nothing could be written.
pub(super) const UNAVAILABLE: &str = "storage_unavailable";

/// How many wishes came to what, and how long commits took. Cheap to clone: clones count together.
#[derive(Clone, Debug)]
pub struct Meters {
    /// Wishes by what came of them: `accepted`, `storage_unavailable`, or the code of the rejection.
    pub wishes: Family<[(&'static str, &'static str); 1], Counter>,
    /// How long it took to append a batch and make it durable, in seconds.
    pub commit_seconds: Histogram,
    /// How many events a batch had.
    pub commit_events: Histogram,
}

impl Default for Meters {
    fn default() -> Self {
        let wishes = Family::default();
        // So that they are there from the start, and a rate over them is not of nothing.
        for outcome in [ACCEPTED, UNAVAILABLE] {
            drop(wishes.get_or_create(&[("outcome", outcome)]));
        }
        Self {
            wishes,
            // From a fast disk's quarter of a millisecond to 8 s, when it is as good as broken.
            commit_seconds: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            // From one event to more than the wishes of the largest batch.
            commit_events: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
        }
    }
}

impl Meters {
    /// Something came of a wish.
    pub(super) fn count(&self, outcome: &'static str) {
        self.wishes.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A batch was made durable.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a batch has far fewer events than a float has whole numbers"
    )]
    pub(super) fn commit(&self, events: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.commit_events.observe(events as f64);
    }
}
