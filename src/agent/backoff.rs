//! Waiting longer after each failure, and never at the same moment as everybody else.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Delays that double from `first` up to `longest`, each stretched by chance.
///
/// Chance comes from a seed, so that a machine that holds one stays reproducible.
#[derive(Debug)]
pub(super) struct Backoff {
    builder: ExponentialBuilder,
    longest: Duration,
    delays: ExponentialBackoff,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        let builder = ExponentialBuilder::new()
            .with_min_delay(first)
            .with_max_delay(longest)
            .with_factor(2.0)
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(seed);
        Self { builder, longest, delays: builder.build() }
    }

    /// How long to wait after one more failure.
    pub(super) fn next_delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(self.longest)
    }

    /// Something went well: start from the shortest delay again.
    pub(super) fn reset(&mut self) {
        self.delays = self.builder.build();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_stay_bounded_and_start_again() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut backoff = Backoff::new(first, longest, 7);
        let delays: Vec<Duration> = (0..20).map(|_| backoff.next_delay()).collect();
        assert!(delays.iter().all(|delay| *delay >= first && *delay <= longest * 2), "{delays:?}");
        assert!(delays[19] > delays[0] * 4, "{delays:?}");
        backoff.reset();
        assert_eq!(backoff.next_delay(), delays[0]);
    }

    #[test]
    fn two_agents_do_not_come_back_at_the_same_moment() {
        let delay = |seed| Backoff::new(Duration::from_secs(1), Duration::from_secs(9), seed).next_delay();
        assert_ne!(delay(1), delay(2));
    }
}
