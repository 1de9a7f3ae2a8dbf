//! sled reports some damage by panicking. Here a panic becomes an error, and its message stays off the terminal.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// The name of sled's own threads, whose panics leave an error behind for the caller.
const STORE_THREADS: &str = "sled-io-";

thread_local! {
    static GUARD: Cell<Guard> = const { Cell::new(Guard::Off) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    Off,
    On,
}

/// What the store said when it gave up.
#[derive(Debug)]
pub(super) struct Panicked(pub(super) String);

/// Runs `work`, and turns a panic in it into an error.
///
/// What `work` touched must not be used afterwards but to be dropped: callers treat it like a failed store.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    install_hook();
    let before = GUARD.replace(Guard::On);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARD.set(before);
    result.map_err(|_| Panicked(MESSAGE.take()))
}

/// Puts our hook before whatever hook the program has, once. Panics elsewhere reach the program's hook unchanged.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let in_store_thread =
                std::thread::current().name().is_some_and(|name| name.starts_with(STORE_THREADS));
            if GUARD.get() == Guard::On || in_store_thread {
                MESSAGE.set(message(info));
                tracing::debug!(message = message(info), "the store gave up");
            } else {
                others(info);
            }
        }));
    });
}

fn message(info: &PanicHookInfo<'_>) -> String {
    const SHOWN_CHARS_MAX: usize = 200;
    let text = info.payload_as_str().unwrap_or("no reason given");
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(catch(|| 1).unwrap(), 1);
        let Panicked(message) = catch(|| panic!("the page {} is bad", 7)).unwrap_err();
        assert_eq!(message, "the page 7 is bad");
    }
}
