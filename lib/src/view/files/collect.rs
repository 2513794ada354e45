//! Gathers what a session tells of files: snapshots, backups, restores, and the edits of its tool calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::edit::{self, FileEdit};
use super::path_history::{Fact, Moment, PathHistory, Phase, What};
use super::version::{FileContent, FileVersion, KnownVersion, Unknown};
use super::{FileHistory, FolderChange, JournalEntry, Refused, RestoreEvent};
use crate::model::error::{Error, Result, without_number};
use crate::model::hash::sha256;
use crate::model::message::{Part, ToolState};
use crate::model::project_path::ProjectPath;
use crate::model::record::{
    After, Before, Body, Content, FileState, Kind, Outcome, RecordId, Restore, RestoredFile, Snapshot,
};
use crate::session::backups::{Backups, FileCopy, copy_name, why_unusable};
use crate::session::tree::NodeIx;
use crate::session::tree::skeleton::KeyRole;
use crate::session::{RecordRef, Session};

/// Why a blob is not known.
const NO_BLOBS: &str = "the session is in no store with blobs";

/// Reads every record that can tell of files, with its secrets: what an undo restores is exact. Who prints paths masks them.
pub(super) fn history(
    session: &Session,
    root: PathBuf,
    backups: &Backups,
    journal: &[JournalEntry],
) -> Result<FileHistory> {
    let cwd = session.cwd().map_or_else(|| root.clone(), PathBuf::from);
    let history = FileHistory {
        root,
        paths: BTreeMap::new(),
        refused: BTreeMap::new(),
        folders: Vec::new(),
        restores: Vec::new(),
        unwatched: BTreeMap::new(),
        damaged: Vec::new(),
        stands_at: HashMap::new(),
    };
    let mut collector = Collector {
        session,
        backups,
        cwd,
        history,
        calls: Vec::new(),
        open_calls: HashMap::new(),
        only_tools: HashMap::new(),
        last_calls: HashMap::new(),
        call_keys: HashSet::new(),
        prompts: HashMap::new(),
        snapshotted: HashSet::new(),
        copies: HashMap::new(),
        shared_copies: HashSet::new(),
        old_restores: Vec::new(),
    };
    for record in session.records() {
        match record.kind() {
            Kind::Snapshot => {
                if let Body::Snapshot(snapshot) = record.exact_body()? {
                    collector.snapshot(record, &snapshot);
                }
            }
            Kind::Restore => {
                if let Body::Restore(restore) = record.exact_body()? {
                    let moment = |phase| Moment::at(record.order(), phase);
                    let event =
                        RestoreEvent { moment: moment(Phase::Before), id: id_of(record), last_record: None, restore };
                    collector.restore(event, record.at(), moment, backups.blobs());
                }
            }
            Kind::Assistant | Kind::ToolResult | Kind::User if collector.may_tell(record) => {
                if let Some(content) = record.exact_body()?.content() {
                    collector.content(record, content);
                }
            }
            _ => {}
        }
    }
    for (number, entry) in journal.iter().enumerate() {
        let head = entry.head.as_ref().and_then(|head| session.record(head));
        let order = head.or_else(|| session.records().next_back()).map_or(0, RecordRef::order);
        let moment = |phase| Moment::of_journal(order, number, phase);
        let event = RestoreEvent {
            moment: moment(Phase::Before),
            id: entry.id.clone(),
            last_record: entry.head.clone(),
            restore: entry.restore.clone(),
        };
        collector.restore(event, entry.at, moment, backups.own_blobs());
    }
    collector.finish()
}

struct Collector<'a> {
    session: &'a Session,
    backups: &'a Backups,
    cwd: PathBuf,
    history: FileHistory,
    calls: Vec<Call>,
    /// The last call of each id that has no result.
    open_calls: HashMap<String, usize>,
    /// The tool of each message that called one only, by its place; `None` if it called several.
    only_tools: HashMap<usize, Option<String>>,
    /// The last call of each id.
    last_calls: HashMap<String, usize>,
    /// The keys of these calls.
    call_keys: HashSet<u64>,
    /// The message of each prompt that has a name of its own (Qwen Code).
    prompts: HashMap<String, usize>,
    /// Files that are known from snapshots with the state after each change.
    snapshotted: HashSet<Named>,
    /// The file that names a copy first.
    copies: HashMap<String, Named>,
    /// Copies that several files name: nobody knows whose content they have.
    shared_copies: HashSet<String>,
    /// Restores that do not say what they restored: it follows from the target.
    old_restores: Vec<(Fact, ProjectPath, Moment)>,
}

/// A file as a record names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Named {
    Inside(ProjectPath),
    /// It is never touched; what is known of it tells whether it was changed.
    Refused(String),
}

/// A tool call that may change files.
struct Call {
    moment: (usize, usize),
    message: RecordId,
    tool: String,
    at: Option<Timestamp>,
    input: Value,
    note: Option<Map<String, Value>>,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Done,
    Failed,
}

fn id_of(record: RecordRef<'_>) -> RecordId {
    RecordId(record.id().into_owned())
}

impl Collector<'_> {
    /// The file at a path, absolute or relative to the working directory.
    fn named(&mut self, path: &str) -> Named {
        self.named_from(path, &self.cwd.clone())
    }

    fn named_from(&mut self, path: &str, folder: &Path) -> Named {
        match ProjectPath::in_project(path, folder, &self.history.root) {
            Ok(path) => Named::Inside(path),
            Err(why) => {
                let refused = || Refused { why, history: PathHistory::default() };
                self.history.refused.entry(path.to_owned()).or_insert_with(refused);
                Named::Refused(path.to_owned())
            }
        }
    }

    fn file(&mut self, named: &Named) -> &mut PathHistory {
        match named {
            Named::Inside(path) => self.history.paths.entry(path.clone()).or_default(),
            Named::Refused(path) => {
                let unknown = || Refused { why: "it is outside the project", history: PathHistory::default() };
                &mut self.history.refused.entry(path.clone()).or_insert_with(unknown).history
            }
        }
    }

    // Snapshots

    fn snapshot(&mut self, record: RecordRef<'_>, snapshot: &Snapshot) {
        let nearest_prompt = || {
            let mut above = std::iter::successors(Some(record), |record| record.parent());
            above.find(|record| record.kind() == Kind::User).map(RecordRef::order)
        };
        let all = std::iter::once(snapshot).chain(&snapshot.more);
        let last = snapshot.more.len();
        for (number, one) in all.enumerate() {
            let named = snapshot.message.as_ref().and_then(|id| self.session.record(id)).map(RecordRef::order);
            let prompt = one.extra.get("promptId").and_then(Value::as_str);
            let known = prompt.and_then(|prompt| self.prompts.get(prompt)).copied();
            let order = named.or(known).or_else(nearest_prompt).unwrap_or_else(|| record.order());
            if let (Some(prompt), true) = (prompt, number == last) {
                self.prompts.entry(prompt.to_owned()).or_insert(order);
            }
            let message = NodeIx::try_from(order).map_or_else(|_| id_of(record), |node| id_of(self.session.at(node)));
            if let (true, Ok(node)) = (order > record.order(), NodeIx::try_from(order)) {
                self.history.stands_at.insert(record.order(), node);
            }
            for (key, is_made) in [(Snapshot::FOLDERS, true), (Snapshot::REMOVED_FOLDERS, false)] {
                let folders =
                    one.extra.get(key).and_then(|all| serde_json::from_value::<Vec<String>>(all.clone()).ok());
                self.folders(&folders.unwrap_or_default(), is_made, Moment::at(order, Phase::Change), &message);
            }
            for (why, count) in one.extra.get(Snapshot::UNWATCHED).and_then(Value::as_object).into_iter().flatten() {
                let known = self.history.unwatched.entry(why.clone()).or_default();
                *known = count.as_u64().unwrap_or(0).max(*known);
            }
            for file in &one.files {
                self.file_state(record, &message, order, file, snapshot.update);
            }
        }
    }

    fn folders(&mut self, folders: &[String], is_made: bool, moment: Moment, record: &RecordId) {
        let root = &self.history.root;
        let paths = folders.iter().filter_map(|folder| ProjectPath::in_project(folder, root, root).ok());
        let change = |path| FolderChange { moment, record: record.clone(), path, is_made };
        let changes: Vec<_> = paths.map(change).collect();
        self.history.folders.extend(changes);
    }

    fn file_state(&mut self, record: RecordRef<'_>, message: &RecordId, order: usize, file: &FileState, update: bool) {
        let path = match self.session.dialect().traits().snapshots_from_root {
            true => self.named_from(&file.path, &self.history.root.clone()),
            false => self.named(&file.path),
        };
        let before = self.before(&path, file);
        let fact = |phase, what| Fact {
            moment: Moment::at(order, phase),
            record: id_of(record),
            message: message.clone(),
            tool: None,
            at: record.at(),
            is_restore: false,
            what,
        };
        let is_unchanged = file.extra.get("state").and_then(Value::as_str) == Some("unchanged");
        // Other agents copy a file before they change it, and the change is in their records.
        let is_change =
            self.session.dialect().name() == "native" && !file.extra.contains_key("version") && !is_unchanged;
        let after = match &file.after {
            After::Absent => FileVersion::Absent,
            After::Hash(hash) => {
                let bytes = file.extra.get("size").and_then(Value::as_u64);
                let content = FileContent::Hash { sha256: hash.clone(), bytes };
                FileVersion::File { content, mode: file.mode_after }
            }
            After::Symlink(target) => FileVersion::Link(target.clone()),
            After::Unknown => {
                let history = self.file(&path);
                match update {
                    true => history.add_first(fact(Phase::Before, What::Was(before))),
                    false => history.add_latest(fact(Phase::Before, What::Was(before))),
                }
                if is_change {
                    // It does not say what came of it.
                    history.add(fact(Phase::Change, What::Changed));
                }
                return;
            }
        };
        self.snapshotted.insert(path.clone());
        let history = self.file(&path);
        if file.before == Before::Absent && !record.is_of_scrollback() {
            history.has_text_only = true;
        }
        // Of several snapshots of one message, the oldest original and the newest hash count.
        history.add_first(fact(Phase::Before, What::Was(before)));
        if !is_unchanged {
            history.add(fact(Phase::Change, What::Changed));
        }
        history.add_latest(fact(Phase::After, What::Was(Ok(after))));
    }

    fn before(&mut self, path: &Named, file: &FileState) -> KnownVersion {
        if let Some(target) = &file.symlink {
            return Ok(FileVersion::Link(target.clone()));
        }
        let copied = |copy| Ok(FileVersion::File { content: FileContent::Copy(copy), mode: file.mode });
        match &file.before {
            Before::Absent => Ok(FileVersion::Absent),
            Before::Inline(text) => match file.beside_text() {
                // The text was masked or changed since: only what has the recorded hash is what was there.
                (kept, Some(hash)) if hash != sha256(text.as_bytes()) => match kept {
                    Some(kept) => self.before(path, &FileState { before: kept, ..file.clone() }),
                    None => Err(Unknown::Failed("the text that was kept of it is not the recorded one".to_owned())),
                },
                (_, hash) => copied(FileCopy::text(text, hash.as_deref())),
            },
            Before::Backup { name, hash } => {
                let owner = self.copies.entry(copy_name(name).to_owned()).or_insert_with(|| path.clone());
                if owner != path {
                    self.shared_copies.insert(copy_name(name).to_owned());
                    if hash.is_none() {
                        return Err(Unknown::two_files());
                    }
                }
                let copy = self.backups.named(name, hash.as_deref());
                let unknown = |error| match error {
                    Error::InvalidCopy(_) => Unknown::Outside,
                    error => Unknown::Failed(why_unusable(&error)),
                };
                copy.map_err(unknown).and_then(copied)
            }
            Before::Blob { id, hash } => match self.backups.blobs() {
                Some(folder) => copied(FileCopy::blob(folder, id, hash.as_deref())),
                None => Err(Unknown::Failed(NO_BLOBS.to_owned())),
            },
            Before::Failed(why) => {
                // Older recorders noted what the system said as it is.
                let why = why.as_deref().map(without_number);
                Err(Unknown::Failed(why.unwrap_or("the agent could not copy it").to_owned()))
            }
            Before::Unknown => Err(Unknown::NotKept("no copy of it was kept")),
        }
    }

    // Restores

    fn restore(
        &mut self,
        event: RestoreEvent,
        at: Option<Timestamp>,
        moment: impl Fn(Phase) -> Moment,
        blobs: Option<&Path>,
    ) {
        self.folders(&event.restore.folders, true, moment(Phase::Change), &event.id);
        self.folders(&event.restore.removed_folders, false, moment(Phase::Change), &event.id);
        let Restore { target, after_target, files, takes_back, .. } = &event.restore;
        let target = target.as_ref().and_then(|id| self.session.record(id));
        let target = target.map(|target| if *after_target { Moment::after(target) } else { Moment::before(target) });
        let tool = if takes_back.is_some() { "redo" } else { "undo" };
        for file in RestoredFile::read_all(files) {
            let is_done = matches!(file.action.as_str(), "restore" | "create" | "delete");
            let root = &self.history.root;
            let path = ProjectPath::in_project(&file.path, root, root).ok();
            let Some(path) = path.filter(|_| is_done) else { continue };
            let named = Named::Inside(path.clone());
            let fact = |phase, what| Fact {
                moment: moment(phase),
                record: event.id.clone(),
                message: event.id.clone(),
                tool: Some(tool.to_owned()),
                at,
                is_restore: true,
                what,
            };
            match (&file.versions, target) {
                (Some((before, after)), _) => {
                    let restored = |version| match blobs {
                        Some(blobs) => Ok(FileVersion::restored(version, blobs)),
                        None => Err(Unknown::Failed(NO_BLOBS.to_owned())),
                    };
                    let [before, after] = [before, after].map(restored);
                    let history = self.file(&named);
                    history.add(fact(Phase::Before, What::Was(before)));
                    history.add(fact(Phase::Change, What::Changed));
                    history.add(fact(Phase::After, What::Was(after)));
                }
                (None, Some(target)) => {
                    self.file(&named).add(fact(Phase::Change, What::Changed));
                    self.old_restores.push((fact(Phase::After, What::Changed), path, target));
                }
                (None, None) => self.file(&named).add(fact(Phase::Change, What::Changed)),
            }
        }
        self.history.restores.push(event);
    }

    // Tool calls

    /// Whether a record may tell of a call that changes files. Most of a file are results of other calls, and what is said.
    fn may_tell(&self, record: RecordRef<'_>) -> bool {
        let mut answered = record.keys(KeyRole::Result).chain(record.keys(KeyRole::Late));
        !self.session.dialect().traits().tells_of_keyed_calls_only
            || record.keys(KeyRole::Call).next().is_some()
            || answered.any(|key| self.call_keys.contains(&key))
    }

    fn content(&mut self, record: RecordRef<'_>, content: &Content) {
        for (at, call) in content.parts.iter().filter_map(Part::as_call).enumerate() {
            let only = self.only_tools.entry(record.order());
            only.and_modify(|only| *only = None).or_insert_with(|| Some(call.name.clone()));
            // Most calls change nothing that can be seen.
            let Some(input) = call.input().filter(|input| !edit::of_call(input, None).is_empty()) else { continue };
            let end = match &call.state {
                ToolState::OutputAvailable { .. } => End::Done,
                ToolState::OutputError { .. } | ToolState::OutputDenied { .. } => End::Failed,
                _ => End::Open,
            };
            let note = call.call_provider_metadata.as_ref().and_then(|all| all.get("scrollback")?.as_object()).cloned();
            if end == End::Open {
                self.open_calls.insert(call.call_id.clone(), self.calls.len());
            }
            self.call_keys.insert(xxh3_64(call.call_id.as_bytes()));
            self.last_calls.insert(call.call_id.clone(), self.calls.len());
            let moment = (record.order(), at);
            let (message, tool, at) = (id_of(record), call.name.clone(), record.at());
            self.calls.push(Call { moment, message, tool, at, input: input.clone(), note, end });
        }
        for result in content.results.iter().filter(|result| !result.preliminary) {
            let Some(call) = self.open_calls.remove(&result.call_id).and_then(|at| self.calls.get_mut(at)) else {
                continue;
            };
            call.end = if result.outcome == Outcome::Done { End::Done } else { End::Failed };
            let note = call.note.get_or_insert_default();
            note.extend(result.about.clone());
            if content.results.len() == 1 {
                let lines = record.exact().unwrap_or_default();
                let dialect = self.session.dialect();
                note.extend(
                    lines.iter().find_map(|line| dialect.file_note(&String::from_utf8_lossy(line))).unwrap_or_default(),
                );
            }
        }
        for note in &content.notes {
            let known = self.last_calls.get(&note.call_id).and_then(|at| self.calls.get_mut(*at));
            known.into_iter().for_each(|call| call.note.get_or_insert_default().extend(note.about.clone()));
        }
    }

    fn finish(mut self) -> Result<FileHistory> {
        for copy in std::mem::take(&mut self.shared_copies) {
            if let Some(owner) = self.copies.get(&copy).cloned() {
                self.file(&owner).doubt_shared_copy(&copy);
            }
        }
        for call in std::mem::take(&mut self.calls) {
            if call.end != End::Failed {
                edit::of_call(&call.input, call.note.as_ref()).into_iter().for_each(|edit| self.edit(&call, edit));
            }
        }
        let only_tools = std::mem::take(&mut self.only_tools);
        for path in std::mem::take(&mut self.snapshotted) {
            self.file(&path).name_only_tools(&only_tools);
        }
        for (fact, path, target) in std::mem::take(&mut self.old_restores) {
            let history = self.file(&Named::Inside(path));
            let version = history.before(target);
            history.add(Fact { what: What::Was(version), ..fact });
        }
        self.history.restores.sort_by_key(|event| event.moment);
        Ok(self.history)
    }

    fn edit(&mut self, call: &Call, edit: FileEdit) {
        let (message, number) = call.moment;
        let moment = |phase| Moment::of_call(message, number, phase);
        let path = self.named(&edit.path);
        if self.snapshotted.contains(&path) {
            // The snapshots tell more, and tell it exactly.
            self.file(&path).name_tool(message, &call.tool);
            return;
        }
        let fact = |phase, what| Fact {
            moment: moment(phase),
            record: call.message.clone(),
            message: call.message.clone(),
            tool: Some(call.tool.clone()),
            at: call.at,
            is_restore: false,
            what,
        };
        let noted = |text: Option<std::sync::Arc<str>>| match text {
            Some(text) => What::Was(Ok(FileVersion::rebuilt(text.as_bytes()))),
            None => What::Was(Ok(FileVersion::Absent)),
        };
        let is_open = call.end == End::Open;
        let history = self.file(&path);
        if let Some(before) = edit.before {
            let before = match before {
                Some(text) => {
                    history.doubt_copy(&text, moment(Phase::Before));
                    What::Was(Ok(history.with_its_line_ends(&text, moment(Phase::Before))))
                }
                None => noted(None),
            };
            history.add(fact(Phase::Before, before));
        }
        let what = if edit.edit.0.is_empty() { What::Changed } else { What::Edited { edit: edit.edit, is_open } };
        history.add(fact(Phase::Change, what));
        edit.after.into_iter().for_each(|after| history.add(fact(Phase::After, noted(Some(after)))));
    }
}
