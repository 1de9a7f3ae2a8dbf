//! Weights that clients accept.

/// Weights in the given proportion, each at least 1, whose sum fits in 32 bits: a client refuses a priority or
/// a locality whose sum does not (the protocol text of `load_balancing_weight`).
pub(super) fn fit(weights: &[u64]) -> Vec<u32> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    // Rounding each up to 1 adds at most one a member.
    let room = u128::from(u32::MAX).saturating_sub(weights.len() as u128).max(1);
    let divisor = if sum <= u128::from(u32::MAX) { 1 } else { sum.div_ceil(room) };
    weights
        .iter()
        .map(|weight| u32::try_from(u128::from(*weight) / divisor).unwrap_or(u32::MAX).max(1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_fit_are_kept() {
        assert_eq!(fit(&[1, 3, 0]), [1, 3, 1]);
        assert_eq!(fit(&[u64::from(u32::MAX)]), [u32::MAX]);
    }

    #[test]
    fn weights_that_do_not_fit_keep_their_proportion() {
        let fitted = fit(&[u64::from(u32::MAX), u64::from(u32::MAX), 1]);
        assert!(fitted.iter().map(|weight| u64::from(*weight)).sum::<u64>() <= u64::from(u32::MAX));
        assert_eq!(fitted[0], fitted[1]);
        assert_eq!(fitted[2], 1);
    }
}
