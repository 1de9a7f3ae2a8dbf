//! What the log costs: durable appends beside a plain file, replay, and a start with a saved state.
//!
//! `cargo bench --bench log` takes minutes and prints a table. `FOLDPLANE_BENCH_EVENTS=1000000,10000000` sets the
//! lengths of the logs that are replayed and opened.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    dead_code,
    reason = "a benchmark: a panic is its failure, and it shares its events with the tests"
)]

mod saving;
mod work;
#[path = "../../tests/log/world.rs"]
mod world;

use std::hint::black_box;

use criterion::Criterion;
use foldplane::events::Head;
use foldplane::events::codec::{BlockView, encode_blocks};

use work::{Appends, quantile_us};

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    codec(&mut criterion);
    criterion.final_summary();
    append_table();
    saving_table();
    length_table();
}

fn codec(criterion: &mut Criterion) {
    let events = world::lives(1, 256);
    let blocks = encode_blocks(Head::default(), &events).unwrap();
    criterion.bench_function("encode 256 events", |bench| {
        bench.iter(|| encode_blocks(Head::default(), black_box(&events)).unwrap());
    });
    criterion.bench_function("check and decode 256 events", |bench| {
        bench.iter(|| {
            let mut head = Head::default();
            for block in &blocks {
                let view = BlockView::parse(black_box(&block.bytes)).unwrap();
                view.check_link(head).unwrap();
                head = view.head();
                view.events().for_each(|event| drop(black_box(event.unwrap())));
            }
        });
    });
}

/// Durable appends with so many callers waiting, and what a plain file does with the same bytes.
fn append_table() {
    println!("waiting   p50 log  p50 floor  ratio   log ev/s  floor ev/s  ratio  chain");
    for (waiting, rounds) in [(1, 2_000), (64, 1_000), (256, 500), (1_024, 200)] {
        let dir = tempfile::tempdir_in(".").unwrap();
        let measured = work::appends(dir.path(), waiting, rounds);
        let (log, floor) = (quantile_us(&measured.log, 50), quantile_us(&measured.floor, 50));
        let rate = |times| Appends::per_second(times, waiting);
        let (log_rate, floor_rate) = (rate(&measured.log), rate(&measured.floor));
        println!(
            "{waiting:>7} {log:>7.0}us {floor:>8.0}us {:>6.2} {log_rate:>10.0} {floor_rate:>11.0} {:>6.2}  {:.16}",
            log / floor,
            log_rate / floor_rate,
            measured.head.chain.to_string()
        );
    }
}

/// What wishes wait while the state of so many workers is saved, and while it is not.
fn saving_table() {
    println!("workers  saved ms   p50 saving  p50 quiet   p99 saving  p99 quiet");
    for workers in [1_000, 100_000] {
        let dir = tempfile::tempdir_in(".").unwrap();
        let saving::Waits { saving, quiet, rounds } = saving::waits(dir.path(), workers, 10);
        let took: Vec<_> = rounds.iter().map(|round| round.took).collect();
        let waits = [(&saving, 50), (&quiet, 50), (&saving, 99), (&quiet, 99)];
        let [p50_saving, p50_quiet, p99_saving, p99_quiet] =
            waits.map(|(waits, percent)| quantile_us(waits, percent));
        println!(
            "{workers:>7} {:>9.1} {p50_saving:>10.0}us {p50_quiet:>8.0}us {p99_saving:>10.0}us {p99_quiet:>8.0}us",
            quantile_us(&took, 50) / 1e3
        );
    }
}

/// Replay and start for logs of some lengths, written 256 events at a time.
fn length_table() {
    let lengths = std::env::var("FOLDPLANE_BENCH_EVENTS").unwrap_or_else(|_| "100000,1000000".to_owned());
    println!("  events  read ev/s  one thread  replay ev/s  start ms  state");
    for length in lengths.split(',').map(|text| text.parse().unwrap()) {
        let dir = tempfile::tempdir_in(".").unwrap();
        work::fill(dir.path(), length, 256);
        let replayed = work::replay(dir.path());
        let (took, started) = work::start(dir.path());
        assert_eq!(replayed.state, started);
        println!(
            "{length:>8} {:>10.0} {:>11.0} {:>12.0} {:>9.1}  {:.16}",
            replayed.read,
            replayed.on_one_thread,
            replayed.replay,
            took.as_secs_f64() * 1e3,
            started.to_string()
        );
    }
}
