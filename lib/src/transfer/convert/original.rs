//! The original of a converted session, kept beside the new file so that converting back restores it.
//!
//! ```text
//! <file>                        the converted session
//! <file>.scrollback.json        which session it was made of, and how the records of both correspond
//! <file>.scrollback.original    a copy of that session's file, followed by the file that it was made of, and so on
//! ```
//!
//! Both are used only while the converted file still begins with the bytes that the conversion wrote.
//! Where no original can be kept, the first file only says which session it was: nothing is counted twice.

mod restore;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::replay::Replayed;
use super::skipped::{self, Lines};
use crate::dialect::Dialect;
pub(super) use crate::dialect::layout::beside_converted as paths;
use crate::disk::Real;
use crate::disk::replace::delete;
use crate::model::error::{Error, Result};
use crate::model::loss::Lost;
use crate::model::regular_file::{self, Links};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::session::read::packed::is_called_packed;
use crate::write::copy::copy_bytes;
use crate::write::fork::Staged;

/// How much is kept.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// A larger original is not kept: it is in memory several times during a conversion.
    original_bytes: u64,
    /// Larger files are neither written nor read: converting back is then a conversion like any other.
    all_bytes: u64,
}

pub(super) const LIMITS: Limits = Limits { original_bytes: 256 * 1024 * 1024, all_bytes: 1024 * 1024 * 1024 };

const VERSION: u64 = 2;

/// The original of a converted session.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Original {
    version: u64,
    pub(super) from: Identity,
    /// The dialect of the converted file.
    to: String,
    /// How much of the converted file the conversion wrote, and its hash.
    pub(super) converted_bytes: u64,
    converted_hash: String,
    /// The last record of the converted branch, if the format has no branches or a head was chosen.
    pub(super) head: Option<String>,
    /// The original's ids of records, by their ids in the converted file, where these differ.
    pub(super) ids: BTreeMap<String, String>,
    /// The length and the hash of the copy.
    original_bytes: u64,
    original_hash: String,
    /// The original of the original, if that was converted, too.
    pub(super) before: Option<Box<Original>>,
    /// The copy of the original file.
    #[serde(skip)]
    pub(super) bytes: Arc<[u8]>,
}

/// Which session the original is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity {
    dialect: String,
    pub(super) session: String,
    /// Where its file is in its store.
    pub(super) place: Option<String>,
    pub(super) cwd: Option<String>,
    /// What it has besides its own lines, and how many of each.
    skipped: Vec<(String, u64)>,
}

/// Which session a file was made of, where the original is not kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MadeOf {
    version: u64,
    from: MadeOfSession,
    converted_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MadeOfSession {
    dialect: String,
    session: String,
}

/// The files beside a converted session.
pub(super) struct Files {
    json: Vec<u8>,
    /// `None` if the original is not kept.
    originals: Option<Vec<u8>>,
}

/// What the files beside a session mean for its conversion.
#[derive(Default)]
pub(super) struct Beside {
    /// The original that the session becomes again.
    pub(super) original: Option<Original>,
    /// The next original, and its dialect, if restoring takes several steps.
    pub(super) step: Option<(Original, &'static dyn Dialect)>,
    /// An original of another dialect: it is kept as the original of the new session.
    pub(super) other: Option<Original>,
    /// Why the files were ignored.
    pub(super) warning: Option<String>,
}

impl Original {
    /// The original of a conversion of `source` to the file `converted`; none if the source is not one file, or too large a one.
    pub(super) fn of(
        source: &Session,
        to: &dyn Dialect,
        converted: &Path,
        replayed: &Replayed,
        before: Option<&Original>,
        limits: Limits,
    ) -> Result<Option<Original>> {
        let Some(file) = source.files.0.first().filter(|_| source.is_one_file()) else { return Ok(None) };
        let length = file.len()?;
        if length > limits.original_bytes {
            return Ok(None);
        }
        let bytes: Arc<[u8]> = file.read_at(0, length)?.into();
        let converted = regular_file::read(converted, u64::MAX, Links::Refuse)?;
        Ok(Some(Original {
            version: VERSION,
            from: Identity::of(source),
            to: to.name().to_owned(),
            converted_bytes: converted.len() as u64,
            converted_hash: hash(&converted),
            head: replayed.head.clone(),
            ids: replayed.ids.clone(),
            original_bytes: length,
            original_hash: hash(&bytes),
            before: before.cloned().map(Box::new),
            bytes,
        }))
    }

    /// Reads the files beside a session that is about to become one of `to`.
    pub(super) fn beside(session: &Session, to: &'static dyn Dialect) -> Beside {
        let [path, _] = paths(session.path());
        if fs::symlink_metadata(&path).is_err() {
            return Beside::default();
        }
        match Original::read(session) {
            Ok(Some(original)) => original.towards(session, to),
            Ok(None) => Beside::default(),
            Err(why) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Beside { warning: Some(format!("{name} is ignored: {why}")), ..Beside::default() }
            }
        }
    }

    /// `None` if no original was kept.
    fn read(session: &Session) -> std::result::Result<Option<Original>, &'static str> {
        let [json, originals] = paths(session.path()).map(|path| read(&path));
        let json = json?;
        if serde_json::from_slice::<MadeOf>(&json).is_ok() {
            return Ok(None);
        }
        let mut original: Original = serde_json::from_slice(&json).map_err(|_| "it is not a conversion's sidecar")?;
        if original.version != VERSION {
            return Err("it was written by another version of scrollback");
        }
        original.attach(&originals?).ok_or("the copy of the original was changed")?;
        let changed = "it belongs to another session, or the session has changed since";
        if original.fits(session) { Ok(Some(original)) } else { Err(changed) }
    }

    /// Takes the copies of this original and of those before it out of one file's bytes.
    fn attach(&mut self, bytes: &[u8]) -> Option<()> {
        let (own, rest) = bytes.split_at_checked(usize::try_from(self.original_bytes).ok()?)?;
        self.bytes = own.into();
        let is_whole = hash(own) == self.original_hash;
        let rest_is_whole = match &mut self.before {
            Some(before) => before.attach(rest).is_some(),
            None => rest.is_empty(),
        };
        (is_whole && rest_is_whole).then_some(())
    }

    /// Whether the session still begins with what the conversion wrote.
    fn fits(&self, session: &Session) -> bool {
        let Some(file) = session.files.0.first() else { return false };
        self.to == session.dialect().name()
            && file.len().is_ok_and(|length| length >= self.converted_bytes)
            && file.read_at(0, self.converted_bytes).is_ok_and(|start| hash(&start) == self.converted_hash)
    }

    /// What the original has besides its own lines.
    pub(super) fn skipped(&self) -> impl Iterator<Item = (Lost, u64)> {
        let named = |(name, count): &(String, u64)| Some((Lost::all().find(|lost| lost.name() == name)?, *count));
        self.from.skipped.iter().filter_map(named)
    }

    /// The original of the original.
    pub(super) fn before(&self) -> Option<&Original> {
        self.before.as_deref()
    }

    /// This original and those before it, as long as each was made of the next.
    fn chain(&self) -> impl Iterator<Item = &Original> {
        std::iter::successors(Some(self), |original| {
            original.before().filter(|before| {
                let start = original.bytes.get(..usize::try_from(before.converted_bytes).unwrap_or(usize::MAX));
                before.version == VERSION
                    && before.to == original.from.dialect
                    && start.is_some_and(|start| hash(start) == before.converted_hash)
            })
        })
    }

    /// The person or room that the session was with when it was one of this dialect.
    pub(super) fn with(&self, dialect: &'static dyn Dialect) -> Option<String> {
        let original = self.chain().find(|original| original.from.dialect == dialect.name())?;
        let session = original.session(dialect);
        session
            .with()
            .map(str::to_owned)
            .or_else(|| dialect.peer_from_path(Path::new(original.from.place.as_ref()?)))
    }

    /// The original as a session.
    fn session(&self, dialect: &'static dyn Dialect) -> Session {
        Session::from_bytes(dialect, self.bytes.to_vec(), &ReadOptions::plain(Timestamp::UNIX_EPOCH))
    }

    /// The original's id of a record of the converted session.
    pub(super) fn id_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.ids.get(id).map_or(id, String::as_str)
    }

    /// The files to write beside the converted one; none if they would not be read back.
    pub(super) fn files(&self, limits: Limits) -> Option<Files> {
        let all = std::iter::successors(Some(self), |original| original.before());
        let originals = all.flat_map(|original| original.bytes.iter().copied()).collect();
        let originals: Vec<u8> = originals;
        let json = json_of(self)?;
        let is_read_back = (json.len() + originals.len()) as u64 <= limits.all_bytes;
        is_read_back.then_some(Files { json, originals: Some(originals) })
    }
}

impl Files {
    /// The file beside a conversion of `source` whose original is not kept.
    pub(super) fn without_original(source: &Session, converted: &Path) -> Option<Files> {
        let converted_bytes = fs::metadata(converted).ok()?.len();
        let from = MadeOfSession { dialect: source.dialect().name().to_owned(), session: source.id().to_string() };
        Some(Files { json: json_of(&MadeOf { version: VERSION, from, converted_bytes })?, originals: None })
    }

    /// Writes the files beside a converted one, which must not exist. Returns the path of the first if the original is kept.
    pub(super) fn publish(&self, converted: &Path, new_id: impl Fn() -> String) -> Result<Option<PathBuf>> {
        let [json, originals] = paths(converted);
        if let Some(bytes) = &self.originals {
            publish(&originals, bytes, &new_id())?;
        }
        let is_kept = self.originals.is_some();
        publish(&json, &self.json, &new_id()).inspect_err(|_| drop(is_kept.then(|| delete(&Real, &originals))))?;
        Ok(is_kept.then_some(json))
    }
}

fn json_of(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(value).ok()?;
    json.push(b'\n');
    Some(json)
}

/// Removes the files beside a converted one that was not written.
pub(super) fn remove(converted: &Path) {
    paths(converted).iter().for_each(|path| drop(delete(&Real, path)));
}

fn publish(path: &Path, mut bytes: &[u8], new_id: &str) -> Result<()> {
    let staged = Staged::make(&Real, path, new_id)?;
    let written = copy_bytes(&mut bytes, &Real, (path, staged.file())).and_then(|()| staged.publish());
    written.inspect_err(|_| staged.clean_up())
}

fn read(path: &Path) -> std::result::Result<Vec<u8>, &'static str> {
    regular_file::read(path, LIMITS.all_bytes, Links::Refuse).map_err(|error| {
        let Error::Io { source, .. } = error else { return "it is not a regular file" };
        match source.kind() {
            io::ErrorKind::NotFound => "the copy of the original is missing",
            io::ErrorKind::InvalidData => "it is too large",
            _ => "it cannot be read",
        }
    })
}

impl Identity {
    fn of(source: &Session) -> Identity {
        let skipped = skipped::found(source, Lines::Copied);
        Identity {
            dialect: source.dialect().name().to_owned(),
            session: source.id().to_string(),
            place: place_in_store(source).and_then(|place| place.to_str().map(str::to_owned)),
            cwd: source.cwd().map(str::to_owned),
            skipped: skipped.into_iter().map(|(what, count)| (what.to_string(), count)).collect(),
        }
    }
}

/// Where a session's file is in its store, without the ending of a packed one: it is kept unpacked.
pub(super) fn place_in_store(session: &Session) -> Option<PathBuf> {
    let place = session.path().strip_prefix(session.source.store()?).ok()?.to_path_buf();
    Some(if is_called_packed(&place) { place.with_extension("") } else { place })
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::host::Host;
    use crate::session::read::source::Source;
    use crate::transfer::convert::{Conversion, Target};

    const LINE: &str = r#"{"role":"user","uuid":"11111111-1111-4111-8111-111111111111","content":"Name it."}"#;

    #[test]
    fn what_would_not_be_read_back_is_not_written_and_a_rehearsal_reports_it_too() {
        let whole = Limits { original_bytes: LINE.len() as u64 + 1, all_bytes: 4096 };
        for (limits, is_kept) in [
            (LIMITS, true),
            (whole, true),
            (Limits { original_bytes: LINE.len() as u64, ..whole }, false),
            (Limits { all_bytes: 64, ..whole }, false),
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
            assert_eq!(paths(&file).map(|path| path.is_file()), [true, is_kept]);
        }
    }
}
