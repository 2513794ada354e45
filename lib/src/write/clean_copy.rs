//! Files without their secrets: a clean copy elsewhere, or in the place of the file.
//!
//! A file is replaced only by a copy that was compared with it: the same lines, in which nothing differs but masked strings where a
//! secret was found; a second pass finds nothing; its records are the same. No copy of the secret is left: there is no backup, and
//! an original that a conversion kept, or a copy in the agent's file history, is deleted. What was done is noted in our data folder.

mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::dialect::Dialect;
use crate::dialect::layout::Layout;
use crate::disk::append::{lock_log, make_folders};
use crate::disk::live::LiveLock;
use crate::disk::replace::{beside, delete, sync_parent, write_all};
use crate::disk::{Disk, OpenLog, PathTarget, Real};
use crate::model::error::{At, Error, NotCleaned, Result};
use crate::model::host::Host;
use crate::model::record::{Before, Body, FileState, Kind};
use crate::model::regular_file::{self, Links};
use crate::redact::{RULES_VERSION, Redactor};
use crate::session::Session;
use crate::session::blob;
use crate::session::read::format::DATABASE_MAGIC;
use crate::session::read::open::ReadOptions;
use crate::session::read::packed::{self, Packing};
use crate::session::read::source::Source;
use crate::view::secrets::{self, ContentKind, FileRole, SecretFile};
use crate::write::copy::PIECE_BYTES;

/// The notes of what was done, in our data folder.
const NOTES: &str = "redactions.jsonl";

/// A file that was written to this recently may still have a writer.
const IN_USE_SECONDS: i64 = 60;

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedFile {
    /// The file.
    pub path: PathBuf,
    /// What it was for its session.
    pub role: FileRole,
}

/// A line of the notes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    /// What is no UTF-8 in it is replaced.
    path: String,
    at: Timestamp,
    /// The BLAKE3 hash of the file before.
    before: String,
    /// The same of the file now; absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    rules_version: u32,
    /// How many secrets were masked.
    masked: usize,
}

/// The content of a file without secrets, compared with the file. A compressed file is unpacked.
pub fn clean_content(file: &SecretFile, redactor: &Redactor) -> Result<Vec<u8>> {
    let (bytes, _) = file.read()?;
    Ok(Cleaned::new(&file.path, bytes, file.content, redactor)?.after)
}

/// The content of a file that is a secret as a whole, with its names and without its values; nothing if it has other lines than
/// `NAME=value`, comments and empty ones.
pub fn clean_assignments(path: &Path, redactor: &Redactor) -> Result<Option<Vec<u8>>> {
    let (bytes, _) = SecretFile::text(path).read()?;
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
    let lines: Option<Vec<String>> = text.split('\n').map(|line| without_value(line, redactor)).collect();
    Ok(lines.map(|lines| redactor.document(lines.join("\n").as_bytes()).bytes.into_owned()))
}

/// A line of such a file without its value.
fn without_value(line: &str, redactor: &Redactor) -> Option<String> {
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    let is_comment = line.trim_start().starts_with('#');
    if line.trim().is_empty() {
        return Some(format!("{line}{end}"));
    }
    let Some((name, value)) = line.split_once('=') else { return is_comment.then(|| format!("{line}{end}")) };
    let bare = name.trim().strip_prefix("export ").unwrap_or(name).trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if !is_comment && (bare.is_empty() || !bare.bytes().all(is_name)) {
        return None;
    }
    let secret = value.trim();
    // A value that goes on in the next line could look like a name there.
    let is_open = |quote: char| secret.starts_with(quote) && secret.matches(quote).count() % 2 == 1;
    if !is_comment && (['"', '\'', '`'].into_iter().any(is_open) || secret.ends_with('\\')) {
        return None;
    }
    let masked = if secret.is_empty() { String::new() } else { redactor.placeholder("file", secret) };
    Some(format!("{name}={masked}{end}"))
}

/// How many snapshots of a session keep the true bytes of a file with secrets in a blob, and the folder of the blobs.
pub fn snapshots_with_secrets(source: &Source, redactor: &Redactor, now: Timestamp) -> Option<(PathBuf, usize)> {
    let folder = blob::folder(&source.store()?);
    if !folder.is_dir() {
        return None;
    }
    let session = Session::open(source, &ReadOptions::plain(now)).ok()?;
    let has_secret = |file: &FileState| {
        let Before::Blob { id: name, .. } = &file.before else { return false };
        let Ok(bytes) = blob::get(&folder, name) else { return false };
        redactor.is_sensitive_file(&file.path)
            || !secrets::clean(&bytes, ContentKind::Document, redactor).findings.is_empty()
    };
    let snapshots = session.records().filter(|record| record.kind() == Kind::Snapshot && !record.is_inherited());
    let is_counted = |body: &Body| matches!(body, Body::Snapshot(snapshot) if snapshot.all_files().any(has_secret));
    let count = snapshots.filter_map(|record| record.body().ok()).filter(is_counted).count();
    (count > 0).then_some((folder, count))
}

/// Piped bytes without secrets.
pub fn clean_bytes(bytes: Vec<u8>, redactor: &Redactor) -> Result<Vec<u8>> {
    let (bytes, _) = packed::unpacked(bytes);
    Ok(Cleaned::new(Path::new("-"), bytes, ContentKind::Document, redactor)?.after)
}

/// Writes a new file, readable by its owner only. An existing one is never overwritten.
pub fn write_new_file(path: &Path, bytes: &[u8], host: &Host) -> Result<()> {
    let disk: &dyn Disk = &Real;
    if disk.exists(path) {
        return Err(Error::Exists(path.to_path_buf()));
    }
    let temporary = Temporary::write(disk, path, bytes, host)?;
    disk.publish(&temporary.path, path).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.to_path_buf()),
        _ => Error::Io { path: path.to_path_buf(), source },
    })?;
    sync_parent(disk, path)
}

/// Fails if a file cannot be cleaned in its place. Changes nothing.
pub fn check_cleanable(file: &SecretFile, host: &Host) -> Result<()> {
    let refused = |why| Err(Error::NotCleaned { path: file.path.clone(), why });
    let there = fs::symlink_metadata(&file.path).at(&file.path)?;
    if there.is_symlink() {
        return refused(NotCleaned::Link);
    }
    let modified = there.modified().ok().and_then(|modified| Timestamp::try_from(modified).ok());
    let age = modified.map(|modified| (host.now)().duration_since(modified).as_secs().abs());
    if age.is_some_and(|age| age < IN_USE_SECONDS) {
        return refused(NotCleaned::JustWritten);
    }
    if file.role.is_deleted() {
        return Ok(());
    }
    if has_other_name(&there) {
        return refused(NotCleaned::OtherName);
    }
    let mut head = vec![0; DATABASE_MAGIC.len()];
    let (open, _) = regular_file::open(&file.path, Links::Refuse)?;
    let read = std::io::Read::read(&mut &open, &mut head).at(&file.path)?;
    match &head[..read] {
        head if head == DATABASE_MAGIC => refused(NotCleaned::Database),
        head if Packing::of(head).is_some() => refused(NotCleaned::Packed),
        _ => Ok(()),
    }
}

/// Makes sure that no recorder has a log open, for as long as the value lives.
pub struct Quiet {
    _lock: Option<LiveLock>,
}

/// Fails with [`Error::Busy`] while a recorder has this log open.
pub fn quiet(log: &Path, host: &Host) -> Result<Quiet> {
    let disk: Arc<dyn Disk> = Arc::new(Real);
    let lock = host.data.as_deref().map_or(Ok(None), |data| LiveLock::alone(&disk, data, log))?;
    Ok(Quiet { _lock: lock })
}

/// What was done to the files of a session, and what stopped it.
#[derive(Debug)]
pub struct Cleaning {
    /// In order.
    pub done: Vec<CleanedFile>,
    /// Why the others were not; the files before it stay done.
    pub failed: Option<Error>,
}

/// Replaces the files of one session, which have secrets, by clean ones; deletes those that are there to restore exact bytes. All are
/// compared before the first is replaced, and an error before that changes nothing.
pub fn clean_in_place(files: &[&SecretFile], redactor: &Redactor, host: &Host) -> Result<Cleaning> {
    let disk: &dyn Disk = &Real;
    files.iter().try_for_each(|file| check_cleanable(file, host))?;
    let (deleted, kept): (Vec<&SecretFile>, Vec<&SecretFile>) = files.iter().partition(|file| file.role.is_deleted());
    let staged = kept.iter().map(|file| Staged::new(disk, file, redactor, host));
    let staged: Vec<Staged<'_>> = staged.collect::<Result<_>>()?;
    staged.iter().try_for_each(Staged::check_unchanged)?;
    // What cannot be noted is not begun.
    let notes = Notes::open(disk, host)?;
    let append = |note: &Note| notes.as_ref().map_or(Ok(()), |notes| notes.append(note));
    let mut done = Vec::new();
    let failed = (|| {
        for (file, one) in kept.iter().zip(staged) {
            let note = one.commit(host)?;
            done.push(CleanedFile { path: file.path.clone(), role: file.role });
            append(&note)?;
        }
        for file in deleted {
            let note = delete_noted(disk, file, redactor, host)?;
            done.push(CleanedFile { path: file.path.clone(), role: file.role });
            append(&note)?;
        }
        Ok(())
    })();
    Ok(Cleaning { done, failed: failed.err() })
}

fn delete_noted(disk: &dyn Disk, file: &SecretFile, redactor: &Redactor, host: &Host) -> Result<Note> {
    let path = &file.path;
    let (before, masked) = (hash_of(path)?.to_hex().to_string(), file.count_secrets(redactor)?);
    delete(disk, path)?;
    sync_parent(disk, path)?;
    let (path, at) = (path.to_string_lossy().into_owned(), (host.now)());
    Ok(Note { path, at, before, after: None, rules_version: RULES_VERSION, masked })
}

/// A content and what it becomes.
struct Cleaned {
    before: blake3::Hash,
    before_bytes: u64,
    after: Vec<u8>,
    masked: usize,
}

impl Cleaned {
    fn new(path: &Path, bytes: Vec<u8>, kind: ContentKind, redactor: &Redactor) -> Result<Cleaned> {
        let (before, before_bytes) = (blake3::hash(&bytes), bytes.len() as u64);
        let cleaned = secrets::clean(&bytes, kind, redactor);
        let masked = cleaned.findings.len();
        let refused = |what: String| Error::NotCleaned { path: path.to_path_buf(), why: NotCleaned::Differs(what) };
        if kind == ContentKind::Document && secrets::utf16(&bytes).is_some() {
            return Err(Error::NotCleaned { path: path.to_path_buf(), why: NotCleaned::Utf16 });
        }
        if let Some(what) = verify::difference(&bytes, &cleaned.bytes, &cleaned.findings, kind) {
            return Err(refused(what));
        }
        let after = cleaned.bytes.into_owned();
        drop(bytes);
        let again = secrets::clean(&after, kind, redactor).findings;
        if let Some(left) = again.first() {
            return Err(refused(format!("a second pass finds {} in line {}", left.rule, left.line)));
        }
        Ok(Cleaned { before, before_bytes, after, masked })
    }
}

/// A clean copy beside its file, ready to take its place.
struct Staged<'d> {
    path: PathBuf,
    before: blake3::Hash,
    before_bytes: u64,
    after: blake3::Hash,
    masked: usize,
    temporary: Temporary<'d>,
    /// Locked: whoever appends under a lock waits until the file is replaced.
    log: Box<dyn OpenLog>,
}

impl<'d> Staged<'d> {
    fn new(disk: &'d dyn Disk, file: &SecretFile, redactor: &Redactor, host: &Host) -> Result<Staged<'d>> {
        let path = file.path.clone();
        let log = disk.open(&path).at(&path)?;
        lock_log(disk, &*log, &path)?;
        let bytes = regular_file::read(&path, u64::MAX, Links::Refuse)?;
        let Cleaned { before, before_bytes, after: clean, masked } =
            Cleaned::new(&path, bytes, file.content, redactor)?;
        let temporary = Temporary::write(disk, &path, &clean, host)?;
        let after = blake3::hash(&clean);
        drop(clean);
        disk.copy_mode(&path, &temporary.path).at(&temporary.path)?;
        let is_log = match file.role {
            FileRole::Log => true,
            FileRole::Further => file.content == ContentKind::Lines,
            FileRole::Sidecar | FileRole::Original | FileRole::Backup | FileRole::Text => false,
        };
        if let Some(dialect) = file.dialect().filter(|_| is_log) {
            let now = (host.now)();
            if records(dialect, &path, now)? != records(dialect, &temporary.path, now)? {
                let why = NotCleaned::Differs("its records differ".to_owned());
                return Err(Error::NotCleaned { path, why });
            }
        }
        Ok(Staged { path, before, before_bytes, after, masked, temporary, log })
    }

    /// Fails if another program changed the file meanwhile.
    fn check_unchanged(&self) -> Result<()> {
        let is_same = match self.log.is_at(&self.path).at(&self.path)? {
            PathTarget::ThisFile { length } if length == self.before_bytes => hash_of(&self.path)? == self.before,
            PathTarget::ThisFile { .. } | PathTarget::AnotherFile | PathTarget::Nothing => false,
        };
        if is_same { Ok(()) } else { Err(Error::Changed(self.path.clone())) }
    }

    /// Takes the place of the file.
    fn commit(self, host: &Host) -> Result<Note> {
        self.check_unchanged()?;
        let disk = self.temporary.disk;
        disk.rename(&self.temporary.path, &self.path).at(&self.path)?;
        sync_parent(disk, &self.path)?;
        Ok(Note {
            path: self.path.to_string_lossy().into_owned(),
            at: (host.now)(),
            before: self.before.to_hex().to_string(),
            after: Some(self.after.to_hex().to_string()),
            rules_version: RULES_VERSION,
            masked: self.masked,
        })
    }
}

/// A file beside another one, deleted with this value unless it was renamed.
struct Temporary<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
}

impl<'d> Temporary<'d> {
    /// Writes it; the content survives a crash.
    fn write(disk: &'d dyn Disk, path: &Path, bytes: &[u8], host: &Host) -> Result<Temporary<'d>> {
        let path = beside(path, &(host.new_id)());
        let file = disk.create(&path).at(&path)?;
        let temporary = Temporary { disk, path };
        write_all(&*file, bytes, &temporary.path)?;
        file.sync().at(&temporary.path)?;
        Ok(temporary)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.disk.exists(&self.path) {
            // What is left has no secrets, and a name that nobody reads.
            drop(delete(self.disk, &self.path));
        }
    }
}

/// How many records a file has, and a hash of their ids and kinds.
fn records(dialect: &'static dyn Dialect, path: &Path, now: Timestamp) -> Result<(usize, u128)> {
    let source = Source::file(dialect, path);
    // By itself: a temporary file has no other files.
    let layout = Layout { companions: &[], sidecar: None, ..source.layout };
    let alone = Source { layout, earlier: Vec::new(), ..source };
    let session = Session::open(&alone, &ReadOptions::plain(now))?;
    let (mut count, mut hash) = (0, Xxh3::new());
    for record in session.records().filter(|record| !record.is_inherited()) {
        count += 1;
        // A record without an id is called after its offset, which masking moves.
        let place = record.place();
        let id = record.id();
        let id = if record.written_id() == place.name() { "" } else { id.as_ref() };
        hash.update(id.as_bytes());
        hash.update(record.kind().name().as_bytes());
        hash.update(&place.line.to_le_bytes());
    }
    Ok((count, hash.digest128()))
}

fn hash_of(path: &Path) -> Result<blake3::Hash> {
    let (mut file, _) = regular_file::open(path, Links::Refuse)?;
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE_BYTES]);
    loop {
        match std::io::Read::read(&mut file, &mut piece) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(read) => drop(hasher.update(&piece[..read])),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).at(path),
        }
    }
}

/// Where is noted what was done; `None` without a data folder.
struct Notes<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: Box<dyn OpenLog>,
}

impl<'d> Notes<'d> {
    fn open(disk: &'d dyn Disk, host: &Host) -> Result<Option<Notes<'d>>> {
        let Some(data) = &host.data else { return Ok(None) };
        let path = data.join(NOTES);
        make_folders(disk, &path)?;
        let file = match disk.create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => disk.open(&path),
            created => created,
        };
        let file = file.at(&path)?;
        Ok(Some(Notes { disk, path, file }))
    }

    fn append(&self, note: &Note) -> Result<()> {
        let Notes { disk, path, file } = self;
        lock_log(*disk, &**file, path)?;
        let mut line = serde_json::to_vec(note).map_err(std::io::Error::from).at(path)?;
        line.push(b'\n');
        write_all(&**file, &line, path)?;
        file.sync().at(path)?;
        drop(file.unlock());
        sync_parent(*disk, path)
    }
}

#[cfg(unix)]
fn has_other_name(there: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(there) > 1
}

#[cfg(not(unix))]
fn has_other_name(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests;
