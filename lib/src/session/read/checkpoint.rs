//! A session that was read, as bytes that can be kept: later, only what was appended to its file since has to be read.
//!
//! A checkpoint has the skeleton (`tree/skeleton.rs`) and how far it reaches, not the text. It fits if the file is the same one and has
//! grown, was not changed at all, or has the same bytes up to there (a copy, or a file that got another name or other permissions), and
//! still begins and, up to there, ends as it did; every record is compared with its hash when its body is read. What does not fit is
//! read whole.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::layout::Format;
use crate::model::error::{At, Result};
use crate::model::issue::{Issue, IssueKind, Issues};
use crate::model::record::{Cost, Usage};
use crate::redact::{Redactor, SensitiveCalls};
use crate::session::mask::Mask;
use crate::session::read::base::Base;
use crate::session::read::files::{Contents, OpenFile};
use crate::session::read::hashed::Hashed;
use crate::session::read::open::ReadOptions;
use crate::session::read::parser::Position;
use crate::session::tree::facts::Facts;
use crate::session::tree::ids::{IdIndex, Ids};
use crate::session::tree::skeleton::{Control, ControlKind, Entry, KeyEntry, PREVIOUS, ROOT, Skeleton, UsageEntry};
use crate::session::{RecordRef, Session, Source};

/// Changes with every change of how sessions are read: what was derived from them before is then out of date.
pub const READING_VERSION: u32 = 6;

/// How much of a file's beginning, and of what was read last, is compared.
const COMPARED_BYTES: u64 = 4096;

/// Skeletons shrink to a third at any level.
const COMPRESSION: i32 = 3;

/// A checkpoint that takes more than this is not made, and one that claims to is not read.
const LIMIT_BYTES: usize = 256 * 1024 * 1024;

/// What a checkpoint holds.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    version: u32,
    dialect: String,
    /// Where the first line begins that is not in the skeleton.
    offset: u64,
    line: u32,
    /// The hashes of the first bytes, and of the last before `offset`.
    beginning: u64,
    end: u64,
    /// The hash of all bytes before `offset`, and how to continue it.
    content: u64,
    hashed: Hashed,
    file: FileMark,
    skeleton: Kept,
    calls: Option<KeptCalls>,
}

/// What the system says of a file: a program that edits a file in the middle changes it, or puts another one in its place.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileMark {
    /// The number of the file on its disk; 0 where there is none.
    inode: u64,
    length: u64,
    /// When it was changed, in nanoseconds.
    changed: i128,
}

impl FileMark {
    fn of(file: &OpenFile) -> Result<Option<FileMark>> {
        let Contents::Disk(disk) = &file.contents else { return Ok(None) };
        let metadata = disk.metadata().at(&file.path)?;
        #[cfg(unix)]
        let (inode, changed) = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (inode, changed) = {
            let age = metadata.modified().map(|at| at.duration_since(std::time::SystemTime::UNIX_EPOCH));
            (0, age.map_or(0, |age| age.unwrap_or_default().as_nanos() as i128))
        };
        Ok(Some(FileMark { inode, length: metadata.len(), changed }))
    }

    /// Whether a file with this mark must be the one that had the mark before, unchanged or with more at its end. Otherwise its bytes
    /// decide.
    fn continues(self, before: FileMark) -> bool {
        self == before || (self.inode == before.inode && self.length > before.length)
    }
}

/// A skeleton without what its source says.
#[derive(Serialize, Deserialize)]
struct Kept {
    named_models: Vec<(IdIndex, IdIndex)>,
    ids: Ids,
    entries: Vec<Entry>,
    keys: Vec<KeyEntry>,
    usages: Vec<KeptUsage>,
    models: Ids,
    model: Option<IdIndex>,
    total: Option<Counts>,
    growth: Vec<KeptUsage>,
    controls: Vec<Control>,
    issues: Vec<KeptIssue>,
    errors_beyond: u64,
    notes_beyond: u64,
    facts: Facts,
}

/// The counts of a usage: its own form for JSON leaves fields out.
type Counts = [Option<u64>; 5];

#[derive(Serialize, Deserialize)]
struct KeptUsage {
    entry: u32,
    request: Option<u64>,
    counts: Counts,
    model: Option<IdIndex>,
    cost: Option<Cost>,
}

#[derive(Serialize, Deserialize)]
struct KeptIssue {
    file: Option<String>,
    line: Option<u64>,
    offset: u64,
    length: u64,
    kind: IssueKind,
    detail: String,
}

/// The calls on sensitive files that are known, by the rules with this fingerprint.
#[derive(Serialize, Deserialize)]
struct KeptCalls {
    fingerprint: u64,
    calls: SensitiveCalls,
}

/// A session that was read from a checkpoint and what was appended since.
pub struct Resumed {
    /// The session, as if it had been read whole.
    pub session: Session,
    /// How many entries the checkpoint has.
    known_entries: u32,
}

impl Resumed {
    /// Whether a record, or a part of it, is not in the checkpoint.
    pub fn is_new(&self, record: RecordRef<'_>) -> bool {
        self.session.derived.tree.nodes[record.order()].last >= self.known_entries
    }
}

impl Session {
    /// The session as bytes, without its text. `None` if it cannot be continued: it has several files, is no file of lines, or has a
    /// secret where a mask does not reach, such as in an id.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>> {
        let is_file_of_lines = matches!(self.source.layout.format, Format::Lines)
            && matches!(self.files.0.as_slice(), [OpenFile { contents: Contents::Disk(_), torn: None, .. }]);
        let is_alone = matches!(self.tail.base, Base::Unknown) && self.source.earlier.is_empty();
        let Some(mark) = self.tail.before_pending.clone() else { return Ok(None) };
        if !is_file_of_lines || !is_alone || !self.whole || self.tail.skipped > 0 {
            return Ok(None);
        }
        let mut skeleton = self.skeleton.clone();
        skeleton.truncate_to(mark);
        // Issues of files beside the log are found again.
        skeleton.issues.kept.retain(|issue| issue.file.is_none());
        let calls = self.mask.as_ref().map(|mask| mask.known_calls(self)).transpose()?;
        let Position { offset, line, .. } = self.tail.at;
        let (beginning, end) = ends(&self.files.0[0], offset)?;
        let Some(file) = FileMark::of(&self.files.0[0])? else { return Ok(None) };
        let mut hashed = self.tail.hashed;
        let content = hashed.up_to(offset, &self.files.0[0])?;
        if let Some(mask) = &self.mask
            && has_secret(&skeleton, calls.as_ref(), mask.redactor())
        {
            return Ok(None);
        }
        let calls = self.mask.as_ref().zip(calls);
        let checkpoint = Checkpoint {
            version: READING_VERSION,
            dialect: self.dialect().name().to_owned(),
            offset,
            line,
            beginning,
            end,
            content,
            hashed,
            file,
            skeleton: Kept::from(skeleton),
            calls: calls.map(|(mask, calls)| KeptCalls { fingerprint: mask.redactor().fingerprint(), calls }),
        };
        let bytes = postcard::to_stdvec(&checkpoint).ok().filter(|bytes| bytes.len() <= LIMIT_BYTES);
        Ok(bytes.and_then(|bytes| sealed(&bytes)))
    }

    /// Continues a session from a checkpoint: reads what was appended since. `None` if the checkpoint does not fit what is there now.
    pub fn resume(source: &Source, checkpoint: &[u8], reading: &ReadOptions<'_>) -> Result<Option<Resumed>> {
        let Some(checkpoint) = Checkpoint::read(checkpoint) else { return Ok(None) };
        let is_same = checkpoint.version == READING_VERSION
            && checkpoint.dialect == source.dialect.name()
            && matches!(source.layout.format, Format::Lines)
            && source.earlier.is_empty();
        let fingerprint = reading.mask.map(|mask| mask.fingerprint());
        if !is_same || checkpoint.calls.as_ref().map(|calls| calls.fingerprint) != fingerprint {
            return Ok(None);
        }
        let (files, unreadable) = source.open()?;
        let [file @ OpenFile { contents: Contents::Disk(_), torn: None, .. }] = files.0.as_slice() else {
            return Ok(None);
        };
        let Checkpoint { offset, line, .. } = checkpoint;
        let length = file.len()?;
        if length < offset || ends(file, offset)? != (checkpoint.beginning, checkpoint.end) {
            return Ok(None);
        }
        let is_continued = FileMark::of(file)?.is_some_and(|now| now.continues(checkpoint.file));
        if !is_continued && Hashed::default().up_to(offset, file)? != checkpoint.content {
            return Ok(None);
        }
        let appended = file.read_at(offset, length - offset)?;
        let mut session = Session::empty(source.clone(), files, reading, true);
        checkpoint.skeleton.restore(&mut session.skeleton);
        let known_entries = session.skeleton.entries.len() as u32;
        if let (Some(redactor), Some(calls)) = (reading.mask, checkpoint.calls) {
            session.mask = Some(Mask::knowing(redactor.clone(), calls.calls, known_entries as usize));
        }
        unreadable.iter().for_each(|file| session.report_unreadable(file));
        session.report_copies();
        session.read_sidecar(reading.now);
        session.tail.at = Position { offset, line, file: 0 };
        session.tail.hashed = checkpoint.hashed;
        session.append(&appended, reading);
        // It begins in another session: that is read from its beginning.
        if !matches!(session.tail.base, Base::Unknown) {
            return Ok(None);
        }
        session.settle(reading);
        Ok(Some(Resumed { session, known_entries }))
    }
}

impl Checkpoint {
    /// `None` if the bytes are damaged.
    fn read(bytes: &[u8]) -> Option<Checkpoint> {
        let checkpoint: Checkpoint = postcard::from_bytes(&opened(bytes)?).ok()?;
        checkpoint.skeleton.is_sound().then_some(checkpoint)
    }
}

impl Kept {
    /// Whether every number names something that is there.
    fn is_sound(&self) -> bool {
        let (ids, models, entries) = (self.ids.len(), self.models.len(), self.entries.len());
        let is_id = |id: IdIndex| (id as usize) < ids;
        let is_model = |model: Option<IdIndex>| model.is_none_or(|model| (model as usize) < models);
        let is_entry = |entry: u32| (entry as usize) < entries.max(1);
        let is_usage = |usage: &KeptUsage| is_entry(usage.entry) && is_model(usage.model);
        let is_control = |control: &Control| {
            control.at as usize <= entries
                && match control.what {
                    ControlKind::Leaf(id)
                    | ControlKind::Rewound(id)
                    | ControlKind::Cut(id)
                    | ControlKind::MissingBase(id, _) => is_id(id),
                    ControlKind::CutEntry(entry) => is_entry(entry),
                    ControlKind::CutTurns(_) | ControlKind::ReplaceAll => true,
                }
        };
        self.entries.iter().all(|entry| {
            is_id(entry.id)
                && (entry.parent == ROOT || entry.parent == PREVIOUS || is_id(entry.parent))
                && entry.place.file == 0
        }) && self.keys.iter().all(|key| is_entry(key.entry))
            && self.usages.iter().chain(&self.growth).all(is_usage)
            && is_model(self.model)
            && self.named_models.iter().all(|(id, model)| is_id(*id) && is_model(Some(*model)))
            && self.controls.iter().all(is_control)
    }

    fn restore(self, skeleton: &mut Skeleton) {
        let usages = |kept: Vec<KeptUsage>| kept.into_iter().map(KeptUsage::restore).collect();
        skeleton.named_models = self.named_models;
        skeleton.ids = self.ids;
        skeleton.entries = self.entries;
        skeleton.keys = self.keys;
        skeleton.usages = usages(self.usages);
        skeleton.models = self.models;
        skeleton.model = self.model;
        skeleton.total = self.total.map(usage);
        skeleton.growth = usages(self.growth);
        skeleton.controls = self.controls;
        skeleton.issues = Issues {
            kept: self.issues.into_iter().map(KeptIssue::restore).collect(),
            errors_beyond: self.errors_beyond,
            notes_beyond: self.notes_beyond,
        };
        skeleton.facts = self.facts;
    }
}

impl From<Skeleton> for Kept {
    fn from(skeleton: Skeleton) -> Kept {
        let Skeleton { named_models, ids, entries, keys, models, model, controls, facts, .. } = skeleton;
        let usages = |usages: Vec<UsageEntry>| usages.into_iter().map(KeptUsage::from).collect();
        Kept {
            usages: usages(skeleton.usages),
            total: skeleton.total.map(counts),
            growth: usages(skeleton.growth),
            issues: skeleton.issues.kept.into_iter().map(KeptIssue::from).collect(),
            errors_beyond: skeleton.issues.errors_beyond,
            notes_beyond: skeleton.issues.notes_beyond,
            named_models,
            ids,
            entries,
            keys,
            models,
            model,
            controls,
            facts,
        }
    }
}

impl KeptUsage {
    fn restore(self) -> UsageEntry {
        let KeptUsage { entry, request, counts, model, cost } = self;
        UsageEntry { entry, request, usage: usage(counts), model, cost }
    }
}

impl From<UsageEntry> for KeptUsage {
    fn from(entry: UsageEntry) -> KeptUsage {
        let UsageEntry { entry, request, usage, model, cost } = entry;
        KeptUsage { entry, request, counts: counts(usage), model, cost }
    }
}

impl KeptIssue {
    fn restore(self) -> Issue {
        let KeptIssue { file, line, offset, length, kind, detail } = self;
        Issue { file, line, offset, length, kind, severity: kind.severity(), detail }
    }
}

impl From<Issue> for KeptIssue {
    fn from(issue: Issue) -> KeptIssue {
        let Issue { file, line, offset, length, kind, detail, .. } = issue;
        KeptIssue { file, line, offset, length, kind, detail }
    }
}

fn counts(usage: Usage) -> Counts {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    [input, output, cache_read, cache_write, reasoning]
}

fn usage([input, output, cache_read, cache_write, reasoning]: Counts) -> Usage {
    Usage { input, output, cache_read, cache_write, reasoning }
}

/// The hashes of the first bytes of a file, and of those before `offset`.
fn ends(file: &OpenFile, offset: u64) -> Result<(u64, u64)> {
    let length = offset.min(COMPARED_BYTES);
    Ok((xxh3_64(&file.read_at(0, length)?), xxh3_64(&file.read_at(offset - length, length)?)))
}

/// Whether a secret is in what a checkpoint holds.
fn has_secret(skeleton: &Skeleton, calls: Option<&SensitiveCalls>, redactor: &Redactor) -> bool {
    let in_id = |id: &str| !redactor.value(Some("id"), id).findings.is_empty();
    let ids = |ids: &Ids| (0..ids.len() as IdIndex).any(|id| in_id(ids.get(id)));
    let in_text = |text: &str| !redactor.text(text).findings.is_empty();
    ids(&skeleton.ids)
        || ids(&skeleton.models)
        || calls.is_some_and(|calls| calls.keys().any(in_id))
        || skeleton.facts.texts().any(in_text)
        || skeleton.issues.kept.iter().any(|issue| in_text(&issue.detail))
}

/// Compressed, behind the hash of what it is: a cache can be damaged.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut sealed = xxh3_64(bytes).to_le_bytes().to_vec();
    sealed.extend(zstd::bulk::compress(bytes, COMPRESSION).ok()?);
    Some(sealed)
}

fn opened(sealed: &[u8]) -> Option<Vec<u8>> {
    let (hash, packed) = sealed.split_first_chunk()?;
    let limit = zstd::bulk::Decompressor::upper_bound(packed).filter(|length| *length <= LIMIT_BYTES)?;
    let bytes = zstd::bulk::decompress(packed, limit).ok()?;
    (xxh3_64(&bytes) == u64::from_le_bytes(*hash)).then_some(bytes)
}
