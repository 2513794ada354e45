//! Notices that another program has changed the file of an index.
//!
//! SQLite notices damage to its own structure, but not a bit that flipped inside a row. So whoever closes the index last notes the size
//! of the file and when it was changed, in a file beside it. If they differ at the next opening, somebody else wrote to the index, and
//! it is made anew. While the index is open the note is empty, and it stays so after a crash: then nothing can be told.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use scrollback::model::regular_file::{self, Links};

use super::schema;

/// The note beside an open index. Each process that has the index open holds a shared lock on it; dropped after the connection, it is
/// written by the last one.
pub(super) struct Seal {
    index: PathBuf,
    /// None where it cannot be written, as on a disk that is read-only.
    note: Option<File>,
    /// Whether the index is what we made of it: one that could not be made anew is not sealed again.
    is_ours: bool,
}

/// The size of a file, and when it was changed, in nanoseconds since 1970.
type State = [u8; 24];

/// Whether the index is not as it was closed.
pub(super) fn is_changed(index: &Path) -> bool {
    let length = State::default().len();
    let read = || regular_file::read(&path_beside(index), length as u64, Links::Refuse).ok();
    let sealed = || read().filter(|note| note.len() == length);
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
        // Whoever has it alone is about to write it, and then to let it go: nobody waits for a cache.
        let opened = note.and_then(|note| {
            note.try_lock_shared()?;
            note.set_len(0).map(|()| note)
        });
        Seal { index: index.to_path_buf(), note: opened.ok(), is_ours: false }
    }

    /// The index was opened, and made anew if it had to be.
    pub(super) fn accept(&mut self) {
        self.is_ours = true;
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut note) = self.note.take().filter(|_| self.is_ours) else { return Ok(()) };
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
