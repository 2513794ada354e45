//! What a conversion could not carry over: the original lines, in a file beside the converted one, for the way back.
//!
//! `<file>.scrollback.json` holds the whole original, so that the way back gives its bytes, where they lay. It is believed only while the
//! converted file still begins with the bytes that the conversion wrote; what was recorded behind them is recorded there, too.

mod back;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::left_behind::{self, Lines};
use super::replay::Replayed;
use crate::dialect::Dialect;
pub(super) use crate::dialect::layout::kept_beside as path;
use crate::disk::replace::write_all;
use crate::disk::{Disk, Real};
use crate::model::error::{At, Result};
use crate::model::loss::Lost;
use crate::model::record::SessionId;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::packed::is_called_packed;
use crate::write::fork::Staged;

/// How much is kept.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// A larger original is not kept: it is in memory three times on the way.
    original_bytes: u64,
    /// A larger file is neither written nor read: the way back is converted then, as from any other file.
    sidecar_bytes: u64,
}

pub(super) const LIMITS: Limits = Limits { original_bytes: 256 * 1024 * 1024, sidecar_bytes: 1024 * 1024 * 1024 };

const VERSION: u64 = 1;

/// What a sidecar says.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    version: u64,
    from: Whose,
    to: String,
    /// How much of the converted file the conversion wrote, and its hash.
    converted_bytes: u64,
    converted_hash: String,
    /// The last record of the branch that a line of records was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// What records of the converted file are called in the original, where that differs.
    #[serde(default)]
    ids: BTreeMap<String, String>,
    /// The hash of the original.
    original_hash: String,
    /// The original, line by line.
    lines: Vec<KeptLine>,
    /// The last of them is closed with LF.
    closed: bool,
    /// What the original itself was made of, where it was converted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<Kept>>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whose {
    dialect: String,
    session: String,
    /// Where its file lay in its store, where it lay in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// Where its agent worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// What it had besides its own lines, and how many of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_behind: Vec<(String, u64)>,
}

/// A line of the original; one that is no text as its bytes.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum KeptLine {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

/// What lies beside a session.
#[derive(Default)]
pub(super) struct Beside {
    /// The way back to the dialect that was asked for.
    pub(super) back: Option<Kept>,
    /// The next step of a way back that takes several, and the dialect that it leads to.
    pub(super) step: Option<(Kept, &'static dyn Dialect)>,
    /// A sidecar of another way: it goes along.
    pub(super) other: Option<Kept>,
    /// Why a sidecar was not believed.
    pub(super) remark: Option<String>,
}

impl Kept {
    /// What a conversion of `source` to the file `converted` keeps; nothing where the source has no bytes of its own.
    pub(super) fn of(
        source: &Session,
        to: &dyn Dialect,
        converted: &Path,
        told: &Replayed,
        before: Option<&Kept>,
        limits: Limits,
    ) -> Result<Option<Kept>> {
        let Some(file) = source.files.0.first().filter(|_| !source.is_rows()) else { return Ok(None) };
        let length = file.len()?;
        if length > limits.original_bytes {
            return Ok(None);
        }
        let original = file.read_at(0, length)?;
        let bytes = fs::read(converted).at(converted)?;
        let closed = original.ends_with(b"\n");
        let lines = original.strip_suffix(b"\n").unwrap_or(&original).split(|byte| *byte == b'\n');
        Ok(Some(Kept {
            version: VERSION,
            from: Whose::of(source),
            to: to.name().to_owned(),
            converted_bytes: bytes.len() as u64,
            converted_hash: hash(&bytes),
            head: told.head.clone(),
            ids: told.ids.clone(),
            original_hash: hash(&original),
            lines: lines.map(KeptLine::of).collect(),
            closed,
            before: before.cloned().map(Box::new),
        }))
    }

    /// What lies beside a session that is about to become one of `to`.
    pub(super) fn beside(session: &Session, to: &'static dyn Dialect) -> Beside {
        let path = path(session.path());
        let Ok(found) = fs::symlink_metadata(&path) else { return Beside::default() };
        let not_believed = |why: &str| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Beside { remark: Some(format!("{name} is passed over: {why}")), ..Beside::default() }
        };
        if !found.is_file() {
            return not_believed("it is no regular file");
        }
        if found.len() > LIMITS.sidecar_bytes {
            return not_believed("it is too large");
        }
        let mut bytes = Vec::new();
        let read = fs::File::open(&path).and_then(|file| file.take(LIMITS.sidecar_bytes).read_to_end(&mut bytes));
        if read.is_err() {
            return not_believed("it cannot be read");
        }
        let Ok(kept) = serde_json::from_slice::<Kept>(&bytes) else {
            return not_believed("it is not what a conversion writes");
        };
        if kept.version != VERSION {
            return not_believed("another version wrote it");
        }
        if !kept.is_whole() {
            return not_believed("what it keeps of the original was changed");
        }
        if !kept.fits(session) {
            return not_believed("the session is not the one that it was written for, or was changed since");
        }
        kept.towards(session, to)
    }

    /// Whether the original is there as it was kept, and what that was made of.
    fn is_whole(&self) -> bool {
        let kept = std::iter::successors(Some(self), |kept| kept.before.as_deref());
        kept.into_iter().all(|kept| hash(&kept.original()) == kept.original_hash)
    }

    /// Whether the session still begins with what the conversion wrote.
    fn fits(&self, session: &Session) -> bool {
        let Some(file) = session.files.0.first() else { return false };
        let is_there = file.len().is_ok_and(|length| length >= self.converted_bytes);
        self.to == session.dialect().name()
            && is_there
            && file.read_at(0, self.converted_bytes).is_ok_and(|begun| hash(&begun) == self.converted_hash)
    }

    /// What the original was called.
    pub(super) fn session(&self) -> SessionId {
        SessionId(self.from.session.clone())
    }

    /// Where the original lay in its store.
    pub(super) fn place(&self) -> Option<&Path> {
        self.from.place.as_deref().map(Path::new)
    }

    /// Where the original's agent worked.
    pub(super) fn cwd(&self) -> Option<&str> {
        self.from.cwd.as_deref()
    }

    /// What the original had besides its own lines.
    pub(super) fn left_behind(&self) -> impl Iterator<Item = (Lost, u64)> {
        let named = |(name, count): &(String, u64)| Some((Lost::all().find(|lost| lost.name() == name)?, *count));
        self.from.left_behind.iter().filter_map(named)
    }

    /// The record that a line of records ended in.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// What the original itself was made of.
    pub(super) fn before(&self) -> Option<&Kept> {
        self.before.as_deref()
    }

    /// The same, and nothing of it stays here.
    pub(super) fn take_before(&mut self) -> Option<Kept> {
        self.before.take().map(|before| *before)
    }

    /// What this was made of, and what that was made of, and so on, the nearest first; as long as each fits the next.
    fn chain(&self) -> impl Iterator<Item = &Kept> {
        std::iter::successors(Some(self), |kept| {
            let original = kept.original();
            kept.before().filter(|before| {
                let begun = original.get(..usize::try_from(before.converted_bytes).unwrap_or(usize::MAX));
                before.version == VERSION
                    && before.to == kept.from.dialect
                    && begun.is_some_and(|begun| hash(begun) == before.converted_hash)
            })
        })
    }

    /// Whom the session was with, where it once was one of this dialect.
    pub(super) fn with(&self, dialect: &'static dyn Dialect) -> Option<String> {
        let kept = self.chain().find(|kept| kept.from.dialect == dialect.name())?;
        let before = Session::from_bytes(dialect, kept.original(), &ReadOptions::plain(Timestamp::UNIX_EPOCH));
        before.with().map(str::to_owned).or_else(|| dialect.peer_from_path(kept.place()?))
    }

    /// Names that records have in the original, each with that in the converted file.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (String, String)> {
        self.ids.iter().map(|(converted, original)| (original.clone(), converted.clone()))
    }

    /// The original's bytes.
    pub(super) fn original(&self) -> Vec<u8> {
        let mut bytes = self.lines.iter().map(KeptLine::bytes).collect::<Vec<_>>().join(&b'\n');
        if self.closed {
            bytes.push(b'\n');
        }
        bytes
    }

    /// How much of the converted file the conversion wrote.
    pub(super) fn converted_bytes(&self) -> u64 {
        self.converted_bytes
    }

    /// What a record of the converted session is called in the original.
    pub(super) fn original_of(&self, id: &str) -> String {
        self.ids.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    /// The bytes of the file beside a converted one; none where they would not be read back.
    pub(super) fn bytes(&self, limits: Limits) -> Option<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self).ok()?;
        bytes.push(b'\n');
        (bytes.len() as u64 <= limits.sidecar_bytes).then_some(bytes)
    }
}

/// Writes the file beside a converted one. One that is there is refused.
pub(super) fn publish(bytes: &[u8], converted: &Path, new_id: &str) -> Result<PathBuf> {
    let sidecar = path(converted);
    let staged = Staged::make(&Real, &sidecar, new_id)?;
    let written = (|| {
        let file = Real.create(staged.file()).at(staged.file())?;
        write_all(&*file, bytes, staged.file())?;
        file.sync().at(staged.file())?;
        staged.publish()
    })();
    written.inspect_err(|_| staged.clean_up())?;
    Ok(sidecar)
}

impl Whose {
    fn of(source: &Session) -> Whose {
        let left_behind = left_behind::found(source, Lines::Copied);
        Whose {
            dialect: source.dialect().name().to_owned(),
            session: source.id().to_string(),
            place: place_in_store(source).and_then(|place| place.to_str().map(str::to_owned)),
            cwd: source.cwd().map(str::to_owned),
            left_behind: left_behind.into_iter().map(|(what, count)| (what.name().to_owned(), count)).collect(),
        }
    }
}

/// Where a session's file lies in its store, by the name that its content has: it is kept unpacked.
pub(super) fn place_in_store(session: &Session) -> Option<PathBuf> {
    let place = session.path().strip_prefix(session.source.store()?).ok()?.to_path_buf();
    Some(if is_called_packed(&place) { place.with_extension("") } else { place })
}

impl KeptLine {
    fn of(line: &[u8]) -> KeptLine {
        match std::str::from_utf8(line) {
            Ok(text) => KeptLine::Text(text.to_owned()),
            Err(_) => KeptLine::Bytes { bytes: line.to_vec() },
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            KeptLine::Text(text) => text.as_bytes(),
            KeptLine::Bytes { bytes } => bytes,
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::host::Host;
    use crate::session::read::open::ReadOptions;
    use crate::session::read::source::Source;
    use crate::transfer::convert::{Conversion, Target};

    const LINE: &str = r#"{"role":"user","uuid":"11111111-1111-4111-8111-111111111111","content":"Name it."}"#;

    #[test]
    fn what_would_not_be_read_back_is_not_written_and_a_rehearsal_tells_it_too() {
        let whole = Limits { original_bytes: LINE.len() as u64 + 1, sidecar_bytes: 4096 };
        for (limits, is_kept) in [
            (LIMITS, true),
            (whole, true),
            (Limits { original_bytes: LINE.len() as u64, ..whole }, false),
            (Limits { sidecar_bytes: 64, ..whole }, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let source = folder.path().join("source.jsonl");
            fs::write(&source, format!("{LINE}\n")).unwrap();
            let native = crate::dialect::named("native").unwrap();
            let reading = ReadOptions::plain(Timestamp::UNIX_EPOCH);
            let session = Session::open(&Source::file(native, &source), &reading).unwrap();
            let to = crate::dialect::named("codex").unwrap();
            let file = folder.path().join("there.jsonl");
            let how = Conversion { to, target: Target::File(&file), head: None, with: None };
            let host = Host::system("test 1").unwrap();
            let (tried, _) = session.rehearse_within(&how, &host, folder.path(), limits).unwrap();
            let converted = session.convert_within(&how, &host, limits).unwrap();
            assert_eq!(tried.losses, converted.losses);
            assert_eq!(converted.losses.iter().any(|row| row.what == Lost::Original), !is_kept);
            assert_eq!(path(&file).is_file(), is_kept);
        }
    }
}
