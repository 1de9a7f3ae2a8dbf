//! A disk without a machine around it: files, what was synced, and what a power cut leaves of the rest.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// The smallest unit that a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// What a full disk gives when its reserve is given up: some tens of removals.
const RESERVE_BYTES: usize = 8 << 10;

/// A disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Clone, Debug)]
struct Inner {
    files: BTreeMap<&'static str, File>,
    health: Health,
    /// How much still fits while the disk is full.
    free_bytes: usize,
    /// The power goes at the operation after so many others.
    power_until: Option<u32>,
    rng: TestRng,
}

/// How a disk behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Health {
    #[default]
    Healthy,
    /// Writes fail.
    RefusesWrites,
    /// Writes seem to work, and syncs fail: some of what was written arrives, the rest never does.
    RefusesSyncs,
    /// There is no space left.
    Full,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// What outlives a power cut.
    durable: Vec<u8>,
    /// What was written since, in order.
    unsynced: Vec<Write>,
    /// What the system takes for written, although it failed to: seen by readers until it is forgotten.
    failed: Vec<Write>,
}

#[derive(Clone, Debug)]
struct Write {
    at: usize,
    bytes: Vec<u8>,
}

impl Write {
    /// Its sectors, each of which arrives or does not.
    fn sectors(&self) -> impl Iterator<Item = Write> + '_ {
        let first = (SECTOR_BYTES - self.at % SECTOR_BYTES).min(self.bytes.len());
        let (head, rest) = self.bytes.split_at(first);
        let mut at = self.at;
        [head].into_iter().chain(rest.chunks(SECTOR_BYTES)).map(move |bytes| {
            let write = Write { at, bytes: bytes.to_vec() };
            at += bytes.len();
            write
        })
    }

    fn apply(&self, contents: &mut Vec<u8>) {
        let end = self.at + self.bytes.len();
        contents.resize(contents.len().max(end), 0);
        contents[self.at..end].copy_from_slice(&self.bytes);
    }
}

impl File {
    fn view(&self) -> Vec<u8> {
        let mut contents = self.durable.clone();
        self.failed.iter().chain(&self.unsynced).for_each(|write| write.apply(&mut contents));
        contents
    }

    /// Lets some sectors of what was not synced arrive, in any order, and gives back the writes.
    fn scatter(&mut self, rng: &mut TestRng) -> Vec<Write> {
        let writes = std::mem::take(&mut self.unsynced);
        // All, none, or a part: a fair coin for each sector alone would almost never keep a large write whole.
        let odds = [0.0, 0.5, 0.9, 1.0][rng.random_range(0..4)];
        let mut arrived: Vec<Write> =
            writes.iter().flat_map(Write::sectors).filter(|_| rng.random_bool(odds)).collect();
        for place in (1..arrived.len()).rev() {
            arrived.swap(place, rng.random_range(0..=place));
        }
        // Two writes of one sector never overtake each other: that order is the disk's own.
        arrived.sort_by_key(|write| write.at / SECTOR_BYTES);
        arrived.iter().for_each(|write| write.apply(&mut self.durable));
        writes
    }
}

impl Disk {
    /// An empty disk.
    pub(crate) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let (files, health) = Default::default();
        let inner = Inner { files, health, free_bytes: 0, power_until: None, rng };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().expect("nobody panics with the disk in hand"))
    }

    pub(crate) fn health(&self) -> Health {
        self.with(|inner| inner.health)
    }

    /// From now on the disk behaves like this.
    pub(crate) fn set(&self, health: Health) {
        self.with(|inner| (inner.health, inner.free_bytes) = (health, 0));
    }

    /// Gives the reserve of a full disk up.
    pub(crate) fn release_reserve(&self) {
        self.with(|inner| inner.free_bytes = RESERVE_BYTES);
    }

    /// The power goes after so many more operations.
    pub(crate) fn cut_after(&self, operations: u32) {
        self.with(|inner| inner.power_until = Some(operations));
    }

    /// The machine starts again, with a disk that works: what is left is what was synced, and parts of the rest.
    pub(crate) fn restart(&self) {
        self.with(|inner| {
            (inner.power_until, inner.health) = (None, Health::Healthy);
            for file in inner.files.values_mut() {
                file.failed.clear();
                file.scatter(&mut inner.rng);
            }
        });
    }

    /// Whether the power is gone.
    pub(crate) fn is_without_power(&self) -> bool {
        self.with(|inner| inner.power_until == Some(0))
    }

    /// The power stays.
    pub(crate) fn keep_power(&self) {
        self.with(|inner| inner.power_until = None);
    }

    /// What a reader sees.
    pub(crate) fn read(&self, name: &'static str) -> Vec<u8> {
        self.with(|inner| inner.files.get(name).map(File::view).unwrap_or_default())
    }

    pub(crate) fn write(&self, name: &'static str, at: usize, bytes: &[u8]) -> Result<()> {
        self.with(|inner| {
            inner.power()?;
            let file = inner.files.entry(name).or_default();
            let grows = (at + bytes.len()).saturating_sub(file.view().len());
            let write = Write { at, bytes: bytes.to_vec() };
            match inner.health {
                Health::RefusesWrites => return Err(Error::other("the disk refuses to write")),
                Health::Full if grows > inner.free_bytes => return Err(ErrorKind::StorageFull.into()),
                Health::Full => inner.free_bytes -= grows,
                Health::Healthy | Health::RefusesSyncs => {}
            }
            file.unsynced.push(write);
            Ok(())
        })
    }

    pub(crate) fn sync(&self, name: &'static str) -> Result<()> {
        self.with(|inner| {
            inner.power()?;
            let file = inner.files.entry(name).or_default();
            if inner.health == Health::RefusesSyncs {
                let writes = file.scatter(&mut inner.rng);
                file.failed.extend(writes);
                return Err(Error::other("the disk refuses to sync"));
            }
            file.durable = file.view();
            file.unsynced.clear();
            file.failed.clear();
            Ok(())
        })
    }

    /// Makes the system forget what it only takes for written.
    pub(crate) fn forget_cached(&self, name: &'static str) {
        self.with(|inner| inner.files.entry(name).or_default().failed.clear());
    }

    /// Cuts a file off, durably.
    pub(crate) fn truncate(&self, name: &'static str, length: usize) -> Result<()> {
        self.with(|inner| {
            inner.power()?;
            let file = inner.files.entry(name).or_default();
            file.durable = file.view();
            file.durable.truncate(length);
            file.unsynced.clear();
            file.failed.clear();
            Ok(())
        })
    }

    /// A copy of what is durable, with one byte of this file changed or its end missing.
    pub(crate) fn damaged_copy(&self, name: &'static str) -> Self {
        let mut inner = self.with(|inner| inner.clone());
        let (rng, file) = (&mut inner.rng, inner.files.entry(name).or_default());
        if let Some(last) = file.durable.len().checked_sub(1) {
            let at = rng.random_range(0..=last);
            if rng.random_bool(0.5) {
                file.durable[at] ^= 1 << rng.random_range(0..8);
            } else {
                file.durable.truncate(at);
            }
        }
        self.with(|mine| mine.rng = inner.rng.clone());
        Self { inner: Arc::new(Mutex::new(inner)) }
    }
}

impl Inner {
    /// Whether there still is power for one more operation.
    fn power(&mut self) -> Result<()> {
        match &mut self.power_until {
            None => Ok(()),
            Some(0) => Err(Error::other("the power is gone")),
            Some(operations) => {
                *operations -= 1;
                Ok(())
            }
        }
    }
}
