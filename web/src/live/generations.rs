//! Which file a session is in: a name that changes when the file is cut or replaced, and not when it grows.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;

use scrollback::model::regular_file::{self, Links};
use scrollback::session::Source;

use super::locked;

/// How many files are remembered. One that was forgotten gets a new name, and whoever followed it begins anew.
const REMEMBERED: usize = 4_096;

/// Bytes before the end that must still be the same: a file that was cut and has grown again is another one.
const SEAM_BYTES: u64 = 512;

/// A session's file, and which of its sessions.
pub(crate) type Key = (PathBuf, Option<String>);

/// The key of a session.
pub(crate) fn key(source: &Source) -> Key {
    (source.path.clone(), source.key.clone())
}

/// The names that were given.
pub(crate) struct Generations {
    /// Random, so that a name of another process is none of ours.
    process: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    given: u64,
    files: HashMap<Key, Seen>,
}

/// A file as it was seen last.
struct Seen {
    name: String,
    file: u64,
    length: u64,
    seam: Vec<u8>,
}

impl Generations {
    pub(crate) fn new() -> Generations {
        let mut bytes = [0_u8; 4];
        // Without random numbers there is no server either: it could make no token.
        let process = getrandom::fill(&mut bytes).map(|()| u32::from_le_bytes(bytes)).unwrap_or_default();
        Generations { process: format!("{process:08x}"), known: Mutex::default() }
    }

    /// The name of this process, for what is not a file.
    pub(crate) fn process(&self) -> &str {
        &self.process
    }

    /// The name of the file that a session is in now.
    pub(crate) fn of(&self, source: &Source) -> Option<String> {
        let mut known = locked(&self.known);
        let key = key(source);
        if let Some(seen) = known.files.get_mut(&key)
            && seen.is_continued_in(source)
        {
            seen.look_again(source);
            return Some(seen.name.clone());
        }
        self.give(&mut known, key, source)
    }

    /// A new name: the file is another one, although it may not look so.
    pub(crate) fn renew(&self, source: &Source) -> Option<String> {
        self.give(&mut locked(&self.known), key(source), source)
    }

    fn give(&self, known: &mut Known, key: Key, source: &Source) -> Option<String> {
        if known.files.len() >= REMEMBERED {
            known.files.clear();
        }
        known.given += 1;
        let mut seen = Seen { name: format!("{}-{}", self.process, known.given), file: 0, length: 0, seam: Vec::new() };
        seen.look_again(source)?;
        let name = seen.name.clone();
        known.files.insert(key, seen);
        Some(name)
    }
}

impl Seen {
    /// Whether the file is the one that was seen, perhaps with more behind it.
    fn is_continued_in(&self, source: &Source) -> bool {
        let Ok((mut file, metadata)) = regular_file::open(&source.path, Links::Follow) else { return false };
        let start = self.length - self.seam.len() as u64;
        identity(&metadata) == self.file
            && metadata.len() >= self.length
            && read_at(&mut file, start, self.seam.len() as u64).is_some_and(|seam| seam == self.seam)
    }

    fn look_again(&mut self, source: &Source) -> Option<()> {
        let (mut file, metadata) = regular_file::open(&source.path, Links::Follow).ok()?;
        let start = metadata.len().saturating_sub(SEAM_BYTES);
        let seam = read_at(&mut file, start, metadata.len() - start)?;
        (self.file, self.length, self.seam) = (identity(&metadata), start + seam.len() as u64, seam);
        Some(())
    }
}

fn read_at(file: &mut File, start: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Which file it is, whatever its name.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    metadata.ino() ^ metadata.dev().rotate_left(32)
}

/// Which file it is, whatever its name: its creation time, where the system does not say more.
#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> u64 {
    let made = metadata.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    made.map_or(0, |made| made.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_keeps_its_name_while_it_grows_and_loses_it_when_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.jsonl");
        let source = Source::file(scrollback::dialect::named("native").unwrap(), &path);
        let generations = Generations::new();
        assert_eq!(generations.of(&source), None, "there is no file");
        fs::write(&path, "one\n").unwrap();
        let first = generations.of(&source);
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(generations.of(&source), first, "it grew");
        fs::write(&path, "one\n").unwrap();
        let cut = generations.of(&source);
        assert_ne!(cut, first, "it was cut");
        fs::write(&path, "uno\ntwo\n").unwrap();
        let rewritten = generations.of(&source);
        assert_ne!(rewritten, cut, "it begins otherwise");
        fs::write(folder.path().join("new"), "uno\ntwo\n").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_ne!(generations.of(&source), rewritten, "another file took its place");
    }
}
