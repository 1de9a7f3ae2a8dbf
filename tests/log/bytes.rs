//! The bytes of events and blocks, pinned: what was written by any version is read by every later one.

use std::fmt::Write as _;

use foldplane::events::codec::{BlockError, BlockView, BodyError, decode_body, encode_blocks, encode_body};
use foldplane::events::log::LogReader;
use foldplane::events::{Envelope, Event, Head, Offset};

use crate::world::{envelope, envelopes, every_event};

/// What version 1 wrote, one event a line: its name, its bytes, and what they mean. Never edited; a new schema
/// version gets a file of its own. `FOLDPLANE_BLESS=1` adds kinds of events that are new in the newest one.
const SPECIMENS_V1: &str = include_str!("specimens/v1.txt");

struct Specimen<'a> {
    name: &'a str,
    bytes: Vec<u8>,
    meaning: &'a str,
}

fn specimens(text: &str) -> Vec<Specimen<'_>> {
    text.lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let name = parts.next().unwrap();
            let bytes = unhex(parts.next().unwrap());
            Specimen { name, bytes, meaning: parts.next().unwrap() }
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The envelope that a specimen of the event at `index` among all kinds is made of.
fn specimen_envelope(index: usize, event: Event) -> Envelope {
    Envelope { event, ..envelope(index as u64 + 1) }
}

/// The place of every kind of event in its enumeration, which is in the bytes. Kinds are only ever added at the
/// end; the match makes a new kind fail here until it has a number and a specimen.
fn pinned_number(event: &Event) -> u8 {
    match event {
        Event::ReplicaStarted { .. } => 0,
        Event::HostReported { .. } => 1,
        Event::WorkerRegistered { .. } => 2,
        Event::WorkerReady { .. } => 3,
        Event::WorkerUnready { .. } => 4,
        Event::WorkerDraining { .. } => 5,
        Event::WorkerDisconnected { .. } => 6,
        Event::WorkerReconnected { .. } => 7,
        Event::WorkerRemoved { .. } => 8,
        Event::UpdateRejected { .. } => 9,
        Event::WorkerHealthReported { .. } => 10,
        Event::WorkerReweighted { .. } => 11,
        Event::HostDraining { .. } => 12,
        Event::HostRemoved { .. } => 13,
        Event::PortBusy { .. } => 14,
        Event::ServiceDeclared { .. } => 15,
        Event::ServiceRetired { .. } => 16,
        Event::NodeViewSet { .. } => 17,
        Event::NodeViewRemoved { .. } => 18,
        Event::PolicyChanged { .. } => 19,
        Event::ExpiryHeld { .. } => 20,
        Event::ExpiryReleased { .. } => 21,
        Event::ResourceApplied { .. } => 22,
        Event::ResourceDeleted { .. } => 23,
    }
}

// bincode-org/bincode#179, solana-labs/solana#12494 (F49)
#[test]
fn f49_every_specimen_ever_kept_still_means_the_same() {
    let specimens = specimens(SPECIMENS_V1);
    for (index, Specimen { name, bytes, meaning }) in specimens.iter().enumerate() {
        let envelope = decode_body(Offset::new(index as u64 + 1), 1, bytes).unwrap();
        assert_eq!(envelope.event.name(), *name);
        assert_eq!(serde_json::to_string(&envelope).unwrap(), *meaning);
    }
    assert!(specimens.len() >= 10, "a kept specimen was removed");
}

#[test]
fn every_kind_of_event_has_a_specimen_and_is_written_as_it() {
    let written: String = every_event()
        .into_iter()
        .enumerate()
        .map(|(index, event)| {
            let envelope = specimen_envelope(index, event);
            let body = encode_body(&envelope).unwrap();
            assert_eq!(body.schema, 1, "a new schema version gets a file of specimens of its own");
            let meaning = serde_json::to_string(&envelope).unwrap();
            format!("{} {} {meaning}\n", envelope.event.name(), hex(&body.bytes))
        })
        .collect();
    if std::env::var_os("FOLDPLANE_BLESS").is_some() {
        assert!(written.starts_with(SPECIMENS_V1), "a kept specimen would change");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/log/specimens/v1.txt");
        std::fs::write(path, written).unwrap();
    } else {
        assert_eq!(SPECIMENS_V1, written, "FOLDPLANE_BLESS=1 adds kinds that are new");
    }
}

#[test]
fn numbers_of_events_are_pinned() {
    for event in every_event() {
        let number = pinned_number(&event);
        let envelope = Envelope { event, correlation: None, ..envelope(1) };
        let body = encode_body(&envelope).unwrap();
        // The time has nine bytes, the actor its number, a length and fifteen bytes, the missing correlation one.
        assert_eq!(body.bytes[9 + 17 + 1], number, "{}", envelope.event.name());
    }
}

#[test]
fn a_block_has_the_bytes_that_the_format_says() {
    let blocks = encode_blocks(Head::default(), &envelopes(3, 4)[..1]).unwrap();
    let block = &blocks[0];
    let body = encode_body(&envelope(3)).unwrap().bytes;
    let mut expected = vec![0xF7, 1, 0, 1, 0, 0, 0, 1];
    expected.extend_from_slice(&1_u64.to_be_bytes());
    expected.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    expected.extend_from_slice(&(body.len() as u32).to_be_bytes());
    expected.extend_from_slice(&body);
    let mut linked = vec![0; 32];
    linked.extend_from_slice(&1_u64.to_be_bytes());
    linked.extend_from_slice(&1_u16.to_be_bytes());
    linked.extend_from_slice(&body);
    expected.extend_from_slice(blake3::hash(&linked).as_bytes());
    expected.extend_from_slice(&crc32c::crc32c(&expected).to_be_bytes());
    assert_eq!(hex(&block.bytes), hex(&expected));
}

#[test]
fn every_flip_in_a_block_is_noticed_before_anything_is_decoded() {
    let block = &encode_blocks(Head::default(), &envelopes(1, 10)).unwrap()[0].bytes;
    BlockView::parse(block).unwrap().check_link(Head::default()).unwrap();
    for index in 0..block.len() {
        for bit in 0..8 {
            let mut flipped = block.clone();
            flipped[index] ^= 1 << bit;
            assert!(BlockView::parse(&flipped).is_err(), "byte {index} bit {bit}");
        }
        assert!(BlockView::parse(&block[..index]).is_err(), "cut at {index}");
    }
}

#[test]
fn a_block_that_lies_elsewhere_or_was_made_from_other_events_breaks_the_chain() {
    let blocks = encode_blocks(Head::default(), &envelopes(1, 900)).unwrap();
    let [first, second, ..] = blocks.as_slice() else { panic!("one block: {}", blocks.len()) };
    let view = BlockView::parse(&second.bytes).unwrap();
    view.check_link(first.head).unwrap();
    assert!(matches!(view.check_link(Head::default()), Err(BlockError::Place { .. })));
    let forged = Head { chain: Head::default().chain, ..first.head };
    assert!(matches!(view.check_link(forged), Err(BlockError::Chain { .. })));
}

#[test]
fn a_newer_schema_and_left_over_bytes_are_refused() {
    let body = encode_body(&envelope(1)).unwrap();
    let newer = decode_body(Offset::new(1), 250, &body.bytes).unwrap_err();
    assert_eq!(newer, BodyError::Newer { found: 250 });
    let mut longer = body.bytes.clone();
    longer.push(0);
    let error = decode_body(Offset::new(1), 1, &longer).unwrap_err().to_string();
    assert!(error.contains("1 bytes are left over"), "{error}");
    assert!(decode_body(Offset::new(1), 0, &body.bytes).is_err());
}

#[test]
fn a_claimed_length_allocates_nothing() {
    // The actor `Anonymous` with a text of 2^60 bytes.
    let mut bytes = vec![0, 1, 253];
    bytes.extend_from_slice(&(1_u64 << 60).to_le_bytes());
    assert!(matches!(decode_body(Offset::new(1), 1, &bytes), Err(BodyError::Malformed { .. })));
}

#[test]
fn a_log_in_memory_ends_with_the_head_that_blocks_give() {
    let log = foldplane::events::log::MemoryLog::with_events(&envelopes(1, 50)).unwrap();
    let blocks = encode_blocks(Head::default(), &envelopes(1, 50)).unwrap();
    assert_eq!(blocks.last().unwrap().head, log.head());
}
