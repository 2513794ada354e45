//! Notices that another program has changed the file of an index.
//!
//! SQLite notices damage to its own structure, but not a bit that flipped inside a row. So whoever closes the index last notes the size
//! of the file and when it was changed, in a file beside it. If they differ at the next opening, somebody else wrote to the index, and
//! it is made anew. While the index is open the note is empty, and it stays so after a crash: then nothing can be told.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::schema;

/// The note beside an open index. Each process that has the index open holds a shared lock on it; dropped after the connection, it is
/// written by the last one.
pub(super) struct Seal {
    index: PathBuf,
    /// None where it cannot be written, as on a disk that is read-only.
    note: Option<File>,
}

/// The size of a file, and when it was changed, in nanoseconds since 1970.
type State = [u8; 24];

/// Whether the index is not as it was closed.
pub(super) fn is_changed(index: &Path) -> bool {
    let sealed = || fs::read(path_beside(index)).ok().filter(|note| note.len() == State::default().len());
    match (sealed(), state(index)) {
        // If somebody has opened it since, the note is empty now.
        (Some(closed), Ok(now)) => closed != now && sealed() == Some(closed),
        _ => false,
    }
}

impl Seal {
    /// Breaks the seal of an index that is about to be opened.
    pub(super) fn open(index: &Path) -> Seal {
        let note = schema::private_file(&path_beside(index));
        let opened = note.and_then(|note| note.lock_shared().and_then(|()| note.set_len(0)).map(|()| note));
        Seal { index: index.to_path_buf(), note: opened.ok() }
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut note) = self.note.take() else { return Ok(()) };
        note.unlock()?;
        if note.try_lock().is_ok() {
            note.write_all(&state(&self.index)?)?;
        }
        Ok(())
    }
}

impl Drop for Seal {
    fn drop(&mut self) {
        // Without a note the index is opened as it is.
        drop(self.close());
    }
}

fn path_beside(index: &Path) -> PathBuf {
    index.with_extension("db-seal")
}

fn state(index: &Path) -> io::Result<State> {
    let file = fs::metadata(index)?;
    let changed = file.modified()?.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mut state = State::default();
    state[..8].copy_from_slice(&file.len().to_le_bytes());
    state[8..].copy_from_slice(&changed.to_le_bytes());
    Ok(state)
}
