//! Times and sizes with a unit, as people write them.

const TIME: &[(&str, u64)] = &[("ms", 1), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];

const SIZE: &[(&str, u64)] = &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A time such as `90m`, in milliseconds.
pub(super) fn time_ms(text: &str) -> Result<u64, String> {
    quantity(text, TIME).ok_or_else(|| "write a time such as 30d, 12h, 90m, 10s or 500ms".to_owned())
}

/// A size such as `10GiB`, in bytes.
pub(super) fn size_bytes(text: &str) -> Result<u64, String> {
    quantity(text, SIZE).ok_or_else(|| "write a size such as 500MiB or 10GiB".to_owned())
}

/// A whole number and its unit.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    number.parse::<u64>().ok()?.checked_mul(*unit)
}
