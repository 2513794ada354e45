//! One file of the simulated disk: what readers see, what is on the disk, and everything between that a crash may leave.

use std::collections::BTreeMap;

use super::Random;

/// A disk writes a sector whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A file's content.
#[derive(Default)]
pub(super) struct Node {
    pub(super) cache: Vec<u8>,
    disk: Vec<u8>,
    /// Not synced yet: each sector as it was after each write, and each size.
    sectors: BTreeMap<usize, Vec<Vec<u8>>>,
    sizes: Vec<usize>,
    pub(super) locked_by: Option<usize>,
    /// How many syncs failed. Each handle reports each failure once.
    pub(super) failures: usize,
    /// The handle that wrote last, and the offset.
    pub(super) last_write: Option<(usize, usize)>,
}

impl Node {
    pub(super) fn of(content: Vec<u8>) -> Node {
        Node { disk: content.clone(), cache: content, ..Node::default() }
    }

    pub(super) fn append(&mut self, bytes: &[u8], who: usize) {
        if bytes.is_empty() {
            return;
        }
        let start = self.cache.len();
        self.cache.extend_from_slice(bytes);
        self.touch(start, self.cache.len());
        self.last_write = Some((who, start));
    }

    /// Keeps the current content of the sectors between two offsets.
    pub(super) fn touch(&mut self, start: usize, end: usize) {
        for sector in start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let bytes = &self.cache[sector * SECTOR_BYTES..self.cache.len().min((sector + 1) * SECTOR_BYTES)];
            self.sectors.entry(sector).or_default().push(bytes.to_vec());
        }
        let known = self.sizes.last().copied().unwrap_or(self.disk.len());
        let carried = self.cache.len().min(end.next_multiple_of(SECTOR_BYTES));
        self.sizes.push(known.max(carried));
    }

    pub(super) fn cut(&mut self, length: usize) {
        self.cache.truncate(length);
        if !length.is_multiple_of(SECTOR_BYTES) {
            self.touch(length, length);
        }
        self.sizes.push(length);
    }

    pub(super) fn carry(&mut self) {
        self.disk = self.left(|versions| versions);
        (self.sectors, self.sizes) = (BTreeMap::new(), Vec::new());
    }

    /// A failed `sync`: each sector reaches the disk or is lost.
    pub(super) fn lose(&mut self, random: &mut Random) {
        self.disk = self.after_crash(random);
        (self.sectors, self.sizes) = (BTreeMap::new(), Vec::new());
        self.failures += 1;
    }

    pub(super) fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        self.left(|versions| random.below(versions as u64 + 1) as usize)
    }

    /// The content on the disk if `pick` chooses the version of each sector and of the size that got there; 0 is none.
    fn left(&self, mut pick: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut disk = self.disk.clone();
        for (sector, versions) in &self.sectors {
            let Some(bytes) = pick(versions.len()).checked_sub(1).map(|version| &versions[version]) else { continue };
            let start = sector * SECTOR_BYTES;
            if disk.len() < start + bytes.len() {
                disk.resize(start + bytes.len(), 0);
            }
            disk[start..start + bytes.len()].copy_from_slice(bytes);
        }
        let size = pick(self.sizes.len()).checked_sub(1).map_or(self.disk.len(), |version| self.sizes[version]);
        disk.resize(size, 0);
        disk
    }
}
