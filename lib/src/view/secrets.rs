//! Which secrets are in files: where each is, never what it is.
//!
//! A session's files are its log (several for Codex), the files beside it, the original that a conversion kept, and what its agent
//! keeps elsewhere under the session's id: sub-agents' logs, saved results, task lists, file backups. Compressed files are read as their content; of
//! a database, each record is.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::dialect::layout::{Format, beside_converted};
use crate::model::error::Result;
use crate::model::record::{Before, Body, FileState, Kind};
use crate::model::regular_file;
use crate::redact::{DocumentFinding, Finding, RedactedDocument, Redactor, SensitiveCalls};
use crate::session::Session;
use crate::session::read::files::{Contents, OpenFile, open_file};
use crate::session::read::open::ReadOptions;
use crate::session::read::packed::{self, Packing};
use crate::session::read::source::{COMPANION_LIMIT_BYTES, Source};

/// A byte order mark, which is no part of the content.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The first of 256 characters for private use that nobody writes: the last plane's.
const STAND_INS: u32 = 0x10_f000;

/// Folders of a store in which an agent keeps files that are named after their session.
const NAMED_AFTER_SESSIONS: [&str; 4] = ["todos", "tasks", "debug", "shell_snapshots"];

/// A shorter name is no id: some logs are called the same in every session.
const MIN_ID_BYTES: usize = 16;

/// More files than any session has in its folders.
const FURTHER_FILES_LIMIT: usize = 10_000;

/// The secrets of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSecrets {
    /// The file; `-` for standard input, and with `#` and its key for a session of a database.
    pub path: String,
    /// The dialect of its session; absent for a file that belongs to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Where they are, in the order of lines.
    pub findings: Vec<SecretRow>,
    /// How many strings have a secret.
    pub masked: usize,
    /// The file without secrets, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// True if the file was deleted, because it was an original that a conversion had kept, or a file backup.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The same file, also if its path is no UTF-8; empty for piped bytes and databases.
    #[serde(skip)]
    pub file: PathBuf,
    /// The session that it belongs to; its path for a file that belongs to none.
    #[serde(skip)]
    pub session: String,
    /// The rule and the hash of each secret that has one.
    #[serde(skip)]
    pub hashes: BTreeSet<(String, String)>,
    /// Whether a secret is in the content of a file that a snapshot holds.
    #[serde(skip)]
    pub is_in_snapshot: bool,
    /// Why a file was not read, or not to its end.
    #[serde(skip)]
    pub torn: Option<String>,
}

/// Secrets of one kind in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRow {
    /// The name of the rule.
    pub rule: String,
    /// The line, counted from 1; the row in a database.
    pub line: usize,
    /// The JSON pointer to the string; empty in text.
    pub pointer: String,
    /// The record that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// How many.
    pub count: usize,
}

/// A file that may have secrets.
#[derive(Debug, Clone)]
pub struct SecretFile {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub role: FileRole,
    pub(crate) content: ContentKind,
    /// The dialect of its session.
    pub(crate) dialect: Option<&'static str>,
    /// The file that a backup is of, as its session names it.
    backup_of: Option<String>,
}

/// What a file is for its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// It has records.
    Log,
    /// It describes the session.
    Sidecar,
    /// What a conversion kept, to restore the original.
    Original,
    /// A sub-agent's log, a saved result or a task list, in a place that is named after the session.
    Further,
    /// What a file of the project was before a change, in the session's file history.
    Backup,
    /// It belongs to no session.
    Text,
}

impl FileRole {
    /// Whether it is deleted, if it has secrets, and not rewritten: it is there to restore exact bytes.
    pub fn is_deleted(self) -> bool {
        matches!(self, FileRole::Original | FileRole::Backup)
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// JSON in each line, or what is left of it.
    Lines,
    /// One JSON document, lines or text: its beginning decides.
    Document,
}

impl SecretFile {
    /// A file that belongs to no session.
    pub fn text(path: &Path) -> SecretFile {
        let (path, role, content) = (path.to_path_buf(), FileRole::Text, ContentKind::Document);
        SecretFile { path, role, content, dialect: None, backup_of: None }
    }

    /// The files of a session that are there, its first log first. A database has none that could be rewritten.
    pub fn of_session(source: &Source) -> Vec<SecretFile> {
        let content = match source.layout.format {
            Format::Lines => ContentKind::Lines,
            Format::Document | Format::ByContent { .. } => ContentKind::Document,
            Format::Rows(_) => return Vec::new(),
        };
        let known = Some(source.dialect.name()).filter(|name| *name != "unknown");
        let file = |path: PathBuf, role, content| SecretFile { path, role, content, dialect: known, backup_of: None };
        let companions = source.layout.companions.iter().map(|name| source.path.with_file_name(name));
        let logs = std::iter::once(&source.path).chain(&source.earlier).chain(&source.copies).cloned();
        let logs = logs.map(|path| file(path, FileRole::Log, content));
        let lines = companions.map(|path| file(path, FileRole::Log, ContentKind::Lines));
        let sidecar = source.sidecar().map(|path| file(path, FileRole::Sidecar, ContentKind::Document));
        let originals =
            beside_converted(&source.path).map(|path| file(path, FileRole::Original, ContentKind::Document));
        let further = further_files(source).into_iter().map(|path| {
            let content = if is_sub_agents_log(&path) { ContentKind::Lines } else { ContentKind::Document };
            file(path, FileRole::Further, content)
        });
        let backups = backups(source)
            .into_iter()
            .map(|(path, backup_of)| SecretFile { backup_of, ..file(path, FileRole::Backup, ContentKind::Document) });
        logs.chain(lines)
            .chain(sidecar)
            .chain(originals)
            .chain(further)
            .chain(backups)
            .filter(|file| file.path == source.path || regular_file::is_there(&file.path))
            .collect()
    }

    /// Its content, and why that ends early, if it does.
    pub(crate) fn read(&self) -> Result<(Vec<u8>, Option<String>)> {
        let OpenFile { contents, torn, path, is_database, loaded } = open_file(&self.path)?;
        match contents {
            Contents::Memory(bytes) => Ok((bytes, torn)),
            contents => {
                let file = OpenFile { path, contents, torn: None, is_database, loaded };
                Ok((file.read_at(0, file.len()?)?, torn))
            }
        }
    }

    /// Whether everything in it is a secret, whatever it says.
    fn is_secret_as_whole(&self, redactor: &Redactor) -> bool {
        match self.role {
            FileRole::Text => redactor.is_sensitive_file(&self.path.to_string_lossy()),
            FileRole::Backup => self.backup_of.as_deref().is_some_and(|path| redactor.is_sensitive_file(path)),
            FileRole::Log | FileRole::Sidecar | FileRole::Original | FileRole::Further => false,
        }
    }

    /// How many secrets are in it.
    pub(crate) fn count_secrets(&self, redactor: &Redactor) -> Result<usize> {
        Ok(scan(self, redactor)?.findings.len())
    }

    /// The dialect that its records are read in.
    pub(crate) fn dialect(&self) -> Option<&'static dyn Dialect> {
        self.dialect.and_then(crate::dialect::named)
    }
}

/// The regular files in the folders, and with the names, that belong to a session by its id. Links are not followed.
fn further_files(source: &Source) -> Vec<PathBuf> {
    let is_folder = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|there| there.is_dir());
    let mut folders: Vec<PathBuf> = source.own_folders().into_iter().filter(is_folder).collect();
    let (mut files, mut seen) = (Vec::new(), 0);
    let id = source.name();
    let is_named_after =
        |name: &str| name.strip_prefix(id.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']));
    let store = source.store().filter(|_| id.len() >= MIN_ID_BYTES);
    for folder in NAMED_AFTER_SESSIONS.iter().filter_map(|name| Some(store.as_ref()?.join(name))).filter(is_folder) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                _ if !is_named_after(&entry.file_name().to_string_lossy()) => {}
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            match entry.file_type() {
                _ if seen > FURTHER_FILES_LIMIT => break,
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    files
}

/// The copies in a session's file history, and the files that they are of, as far as its snapshots name them.
fn backups(source: &Source) -> Vec<(PathBuf, Option<String>)> {
    let entries = source
        .file_history()
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten();
    let copies = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut copies: Vec<PathBuf> = copies.take(FURTHER_FILES_LIMIT).map(|entry| entry.path()).collect();
    copies.sort_unstable();
    let mut originals: HashMap<OsString, String> = HashMap::new();
    // Nothing in a snapshot depends on the time at which it is read.
    let session = (!copies.is_empty()).then(|| Session::open(source, &ReadOptions::plain(Timestamp::UNIX_EPOCH)).ok());
    for record in session.iter().flatten().flat_map(Session::records).filter(|record| record.kind() == Kind::Snapshot) {
        let Ok(Body::Snapshot(snapshot)) = record.body() else { continue };
        for FileState { path, before, .. } in snapshot.all_files() {
            if let Before::Backup { name, .. } = before
                && let Some(name) = Path::new(name).file_name()
            {
                originals.insert(name.to_owned(), path.clone());
            }
        }
    }
    let with_original = |copy: PathBuf| {
        let original = copy.file_name().and_then(|name| originals.remove(name));
        (copy, original)
    };
    copies.into_iter().map(with_original).collect()
}

fn is_sub_agents_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("agent-") && name.ends_with(".jsonl")
}

/// The secrets of a file that belongs to no session. One that is a secret as a whole is a finding by itself, unless it is empty.
pub fn in_file(path: &Path, redactor: &Redactor) -> Result<FileSecrets> {
    Ok(scan(&SecretFile::text(path), redactor)?.without_records())
}

/// The secrets of piped bytes, which may be a session.
pub fn in_bytes(
    dialect: &'static dyn Dialect,
    bytes: &[u8],
    redactor: &Redactor,
    reading: &ReadOptions<'_>,
) -> FileSecrets {
    let (bytes, torn) = match Packing::of(bytes) {
        Some(_) => {
            let (bytes, torn) = packed::unpacked(bytes.to_vec());
            (Cow::Owned(bytes), torn)
        }
        None => (Cow::Borrowed(bytes), None),
    };
    let file = SecretFile {
        dialect: Some(dialect.name()).filter(|name| *name != "unknown"),
        ..SecretFile::text(Path::new("-"))
    };
    let findings = find(&bytes, file.content, redactor);
    let scanned = Scanned { file: &file, findings, torn };
    if scanned.findings.is_empty() || file.dialect.is_none() {
        return scanned.without_records();
    }
    scanned.with_records(&Session::from_bytes(dialect, bytes.into_owned(), reading), redactor)
}

/// The secrets of a session, one element for each of its files.
pub fn in_session(source: &Source, redactor: &Redactor, reading: &ReadOptions<'_>) -> Result<Vec<FileSecrets>> {
    if let Format::Rows(_) = source.layout.format {
        return Ok(vec![in_rows(source, redactor, reading)?]);
    }
    let files = SecretFile::of_session(source);
    let scanned: Vec<Scanned<'_>> = files.iter().map(|file| scan(file, redactor)).collect::<Result<_>>()?;
    if scanned.iter().all(|scanned| scanned.findings.is_empty()) {
        return Ok(scanned.into_iter().map(Scanned::without_records).collect());
    }
    let session = Session::open(source, reading)?;
    Ok(scanned.into_iter().map(|scanned| scanned.with_records(&session, redactor)).collect())
}

/// A content without its secrets.
pub(crate) fn clean<'c>(bytes: &'c [u8], kind: ContentKind, redactor: &Redactor) -> RedactedDocument<'c> {
    if let Some(rest) = bytes.strip_prefix(BOM) {
        let RedactedDocument { bytes: cleaned, findings } = clean(rest, kind, redactor);
        let with_mark = match cleaned {
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
            Cow::Owned(cleaned) => Cow::Owned([BOM, &cleaned].concat()),
        };
        let shifted = |finding: DocumentFinding| DocumentFinding { offset: finding.offset + BOM.len(), ..finding };
        return RedactedDocument { bytes: with_mark, findings: findings.into_iter().map(shifted).collect() };
    }
    let mut cleaned = match kind {
        ContentKind::Document if is_text_in_another_encoding(bytes) => return clean_unknown_encoding(bytes, redactor),
        ContentKind::Document => redactor.document(bytes),
        ContentKind::Lines => redactor.lines(bytes),
    };
    let split = in_fragments(bytes, redactor);
    if !split.is_empty() {
        cleaned.findings.extend(split);
        cleaned.findings.sort_by_key(|finding| finding.line);
    }
    cleaned
}

/// Secrets in answers that were written in fragments: no line has the whole of one, so none can be masked in its line.
fn in_fragments(bytes: &[u8], redactor: &Redactor) -> Vec<DocumentFinding> {
    if memmem::find(bytes, br#""fragment":"#).is_none() {
        return Vec::new();
    }
    let mut answers: BTreeMap<(String, u64), Vec<FragmentText>> = BTreeMap::new();
    let mut offset = 0;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if let Some((answer, text)) = fragment(line) {
            answers.entry(answer).or_default().push(FragmentText { line: at + 1, offset, text });
        }
        offset += line.len() + 1;
    }
    answers.values().flat_map(|pieces| split_over(pieces, redactor)).collect()
}

/// The text of one fragment, and where it is.
struct FragmentText {
    line: usize,
    offset: usize,
    text: String,
}

/// The answer and the part that a line continues, and its text.
fn fragment(line: &[u8]) -> Option<((String, u64), String)> {
    memmem::find(line, br#""fragment":"#)?;
    let line: Value = serde_json::from_slice(line).ok()?;
    let (record, part) = (line["uuid"].as_str()?, line["fragment"]["part"].as_u64()?);
    let content = &line["message"]["content"];
    let text = |block: &Value| ["text", "thinking"].iter().find_map(|key| Some(block.get(key)?.as_str()?.to_owned()));
    let text = content.as_str().map(str::to_owned).or_else(|| content.as_array()?.iter().find_map(text))?;
    Some(((record.to_owned(), part), text))
}

/// The secrets that are in several of these.
fn split_over(pieces: &[FragmentText], redactor: &Redactor) -> Vec<DocumentFinding> {
    let joined: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let ends: Vec<usize> = pieces
        .iter()
        .scan(0, |end, piece| {
            *end += piece.text.len();
            Some(*end)
        })
        .collect();
    let of = |finding: Finding| {
        let first = ends.partition_point(|end| *end <= finding.span.start);
        let piece = pieces.get(first).filter(|_| ends[first] < finding.span.end)?;
        let (Finding { rule, hash, .. }, pointer) = (finding, "/message/content".to_owned());
        Some(DocumentFinding { rule, line: piece.line, pointer, offset: piece.offset, hash })
    };
    redactor.text(&joined).findings.into_iter().filter_map(of).collect()
}

/// The secrets of a content, also of one in UTF-16, which is not cleaned.
fn find(bytes: &[u8], kind: ContentKind, redactor: &Redactor) -> Vec<DocumentFinding> {
    match utf16(bytes).filter(|_| kind == ContentKind::Document) {
        Some(text) => clean(text.as_bytes(), kind, redactor).findings,
        None => clean(bytes, kind, redactor).findings,
    }
}

/// What a text in UTF-16 says: it has a byte order mark, or every second byte of its beginning is 0.
pub(crate) fn utf16(bytes: &[u8]) -> Option<String> {
    const LOOKED_AT_BYTES: usize = 256;
    const MIN_BYTES: usize = 8;
    let head = &bytes[..bytes.len().min(LOOKED_AT_BYTES)];
    let is_zero_at = |odd: usize| {
        let mut pairs = head.chunks_exact(2);
        head.len() >= MIN_BYTES && pairs.all(|pair| pair[odd] == 0 && pair[1 - odd] != 0)
    };
    let is_little = bytes.starts_with(b"\xff\xfe") || is_zero_at(1);
    if !is_little && !bytes.starts_with(b"\xfe\xff") && !is_zero_at(0) {
        return None;
    }
    let unit = |pair: &[u8]| if is_little { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes(unit(pair))).collect();
    Some(String::from_utf16_lossy(&units).trim_start_matches('\u{feff}').to_owned())
}

/// Whether it is text, and not UTF-8.
fn is_text_in_another_encoding(bytes: &[u8]) -> bool {
    let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    !is_json && simdutf8::basic::from_utf8(bytes).is_err()
}

/// Text with bytes that are no UTF-8, which stay as they are: each stands for a character of its own meanwhile.
fn clean_unknown_encoding<'c>(bytes: &'c [u8], redactor: &Redactor) -> RedactedDocument<'c> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(STAND_INS + u32::from(*byte))));
    }
    let RedactedDocument { bytes: cleaned, findings } = redactor.document(text.as_bytes());
    let Cow::Owned(cleaned) = cleaned else {
        return RedactedDocument { bytes: Cow::Borrowed(bytes), findings };
    };
    let mut out = Vec::with_capacity(cleaned.len());
    for c in String::from_utf8_lossy(&cleaned).chars() {
        match u32::from(c).checked_sub(STAND_INS).and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    RedactedDocument { bytes: Cow::Owned(out), findings }
}

/// A file and what was found in it.
struct Scanned<'f> {
    file: &'f SecretFile,
    findings: Vec<DocumentFinding>,
    torn: Option<String>,
}

fn scan<'f>(file: &'f SecretFile, redactor: &Redactor) -> Result<Scanned<'f>> {
    let is_further = matches!(file.role, FileRole::Further | FileRole::Backup);
    if is_further && std::fs::metadata(&file.path).is_ok_and(|there| there.len() > COMPANION_LIMIT_BYTES) {
        let torn = Some(format!("not read: larger than {COMPANION_LIMIT_BYTES} bytes"));
        return Ok(Scanned { file, findings: Vec::new(), torn });
    }
    let (bytes, torn) = match file.read() {
        // It does not hide the session.
        Err(error) if is_further => (Vec::new(), Some(format!("not read: {error}"))),
        read => read?,
    };
    let mut findings = find(&bytes, file.content, redactor);
    if file.is_secret_as_whole(redactor) && !bytes.is_empty() {
        let (rule, pointer) = ("file".to_owned(), String::new());
        findings.insert(0, DocumentFinding { rule, line: 1, pointer, offset: 0, hash: None });
    }
    Ok(Scanned { file, findings, torn })
}

impl Scanned<'_> {
    fn without_records(self) -> FileSecrets {
        let session = self.file.path.display().to_string();
        let found = self.findings.into_iter().map(|finding| Found { finding, record: None, is_in_snapshot: false });
        let secrets = FileSecrets::new(session.clone(), self.file.dialect, found.collect());
        FileSecrets { file: self.file.path.clone(), session, torn: self.torn, ..secrets }
    }

    /// Names the records that the secrets are in.
    fn with_records(self, session: &Session, redactor: &Redactor) -> FileSecrets {
        let mut order: Vec<usize> = (0..self.findings.len()).collect();
        order.sort_by_key(|at| self.findings[*at].offset);
        let offsets: Vec<u64> = order.iter().map(|at| self.findings[*at].offset as u64).collect();
        let mut records: HashMap<usize, (String, Kind)> = HashMap::new();
        for record in session.records().filter(|record| !record.is_inherited()) {
            for place in record.places() {
                let is_here =
                    session.files.0.get(usize::from(place.file)).is_some_and(|open| open.path == self.file.path);
                if !is_here {
                    continue;
                }
                let end = place.offset + u64::from(place.length);
                let first = offsets.partition_point(|offset| *offset < place.offset);
                for at in order[first..].iter().zip(&offsets[first..]).take_while(|(_, offset)| **offset < end) {
                    // Of records in one another, the inner one comes later.
                    records.insert(*at.0, (shown_id(&record.id(), redactor), record.kind()));
                }
            }
        }
        let found = self.findings.into_iter().enumerate().map(|(at, finding)| {
            let (record, kind) = records.remove(&at).unzip();
            let is_in_snapshot =
                kind == Some(Kind::Snapshot) && finding.pointer.to_ascii_lowercase().contains("content");
            Found { finding, record, is_in_snapshot }
        });
        let secrets = FileSecrets::new(self.file.path.display().to_string(), self.file.dialect, found.collect());
        let (file, session) = (self.file.path.clone(), shown_id(session.id().as_str(), redactor));
        FileSecrets { file, session, torn: self.torn, ..secrets }
    }
}

/// An id as it may be printed: it may be a secret itself.
fn shown_id(id: &str, redactor: &Redactor) -> String {
    redactor.value(Some("id"), id).text.into_owned()
}

/// A finding, and what is known of its record.
struct Found {
    finding: DocumentFinding,
    record: Option<String>,
    is_in_snapshot: bool,
}

impl FileSecrets {
    fn new(path: String, dialect: Option<&str>, found: Vec<Found>) -> FileSecrets {
        let strings: HashSet<usize> = found.iter().map(|found| found.finding.offset).collect();
        let hash = |found: &Found| Some((found.finding.rule.clone(), found.finding.hash.clone()?));
        let hashes = found.iter().filter_map(hash).collect();
        let is_in_snapshot = found.iter().any(|found| found.is_in_snapshot);
        let mut rows: Vec<SecretRow> = Vec::new();
        let mut known: HashMap<(usize, String, String), usize> = HashMap::new();
        for Found { finding: DocumentFinding { rule, line, pointer, .. }, record, .. } in found {
            let at = *known.entry((line, rule.clone(), pointer.clone())).or_insert_with(|| {
                rows.push(SecretRow { rule, line, pointer, record, count: 0 });
                rows.len() - 1
            });
            rows[at].count += 1;
        }
        FileSecrets {
            path,
            dialect: dialect.map(str::to_owned),
            findings: rows,
            masked: strings.len(),
            output: None,
            deleted: false,
            file: PathBuf::new(),
            session: String::new(),
            hashes,
            is_in_snapshot,
            torn: None,
        }
    }
}

/// The secrets of a session in a database: each record is a line.
fn in_rows(source: &Source, redactor: &Redactor, reading: &ReadOptions<'_>) -> Result<FileSecrets> {
    let session = Session::open(source, reading)?;
    let (mut calls, mut found, mut start) = (SensitiveCalls::new(), Vec::new(), 0);
    for record in session.records().filter(|record| !record.is_inherited()) {
        for piece in record.exact()? {
            let line = record.place().line as usize;
            let findings = redactor.line_after(&mut calls, &piece).findings.into_iter();
            found.extend(findings.map(|finding| Found {
                finding: finding.in_document(line, start),
                record: Some(shown_id(&record.id(), redactor)),
                is_in_snapshot: false,
            }));
            start += piece.len() + 1;
        }
    }
    let key = source.key.as_ref().map(|key| format!("#{key}")).unwrap_or_default();
    let path = format!("{}{key}", source.path.display());
    let secrets = FileSecrets::new(path, Some(source.dialect.name()), found);
    Ok(FileSecrets { session: shown_id(session.id().as_str(), redactor), ..secrets })
}
