//! Issues for people: those of tool calls name the call and its tool, which only the record's body knows.

use std::path::Path;

use hashbrown::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::issue::{Issue, IssueKind, quoted};
use crate::model::message::Part;
use crate::model::record::{Before, Body, Kind, RestoredFile};
use crate::session::blob;
use crate::session::tree::keys::SharedKey;
use crate::session::tree::skeleton::KeyRole;
use crate::session::{RecordRef, Session};

/// The place of an issue: its file, and the first byte of its record.
type IssuePlace<'s> = (Option<&'s str>, u64);

impl Session {
    /// What is wrong, in file order, with the calls and tools that it is about.
    pub fn named_issues(&self) -> Vec<Issue> {
        let mut issues = self.issues().to_vec();
        if self.mask.is_some() {
            issues.iter_mut().for_each(|issue| issue.detail = self.shown(&issue.detail));
        }
        if !issues.iter().any(|issue| is_of_call(issue.kind)) {
            return issues;
        }
        let name = |record: RecordRef<'_>| self.skeleton.file_names.get(usize::from(record.place().file));
        let file = |record| name(record).and_then(Option::as_deref);
        let records: HashMap<IssuePlace<'_>, RecordRef<'_>> =
            self.records().map(|record| ((file(record), record.place().offset), record)).collect();
        // A record is read once, however many of its calls are named.
        let mut known: Option<(u64, CallNames)> = None;
        for issue in issues.iter_mut().filter(|issue| is_of_call(issue.kind)) {
            let Some(record) = records.get(&(issue.file.as_deref(), issue.offset)) else { continue };
            let order = record.order() as u64;
            if known.as_ref().is_none_or(|(read, _)| *read != order) {
                known = Some((order, CallNames::of(*record)));
            }
            let names = known.as_mut().and_then(|(_, names)| names.next(issue.kind));
            issue.detail = names.map_or_else(|| std::mem::take(&mut issue.detail), |name| sentence(issue.kind, &name));
        }
        issues
    }
}

impl Session {
    /// Notes that the session's working directory is gone. The path of another system is not looked for.
    pub(crate) fn missing_cwd(&self) -> Option<Issue> {
        let cwd = Path::new(self.cwd()?);
        let is_gone = cwd.is_absolute() && cwd.try_exists().is_ok_and(|exists| !exists);
        let detail = || format!("its working directory {} does not exist", quoted(&cwd.to_string_lossy()));
        let first = self.skeleton.entries.first().filter(|_| is_gone)?;
        Some(Issue::at(first.place, None, IssueKind::MissingCwd, detail()))
    }

    /// The contents that records name as blobs and that are missing or empty. Whether the others are whole is known to whoever reads
    /// them.
    pub(crate) fn missing_copies(&self) -> Vec<Issue> {
        let Some(store) = self.source.store().filter(|_| self.dialect().name() == "native") else { return Vec::new() };
        let (folder, mut seen, mut issues) = (blob::folder(&store), HashSet::new(), Vec::new());
        for record in self.records().filter(|record| matches!(record.kind(), Kind::Snapshot | Kind::Restore)) {
            for (path, id) in record.body().map(|body| named_blobs(&body)).unwrap_or_default() {
                let place = blob::path_of(&folder, &id);
                let is_there = place.is_ok_and(|place| std::fs::metadata(place).is_ok_and(|file| file.len() > 0));
                if seen.insert(id) && !is_there && issues.len() < MISSING_LIMIT {
                    let detail = format!("a content of {} is not in the store; undo cannot restore it", quoted(&path));
                    issues.push(Issue::at(record.place(), None, IssueKind::MissingCopy, detail));
                }
            }
        }
        issues
    }
}

/// More are not listed: all of them are missing if the folder of blobs is.
const MISSING_LIMIT: usize = 1_000;

/// The blobs that a record names, each with its file.
fn named_blobs(body: &Body) -> Vec<(String, String)> {
    match body {
        Body::Snapshot(snapshot) => snapshot
            .all_files()
            .filter_map(|file| match &file.before {
                Before::Blob { id, .. } => Some((file.path.clone(), id.clone())),
                _ => None,
            })
            .collect(),
        Body::Restore(restore) => RestoredFile::read_all(&restore.files)
            .into_iter()
            .flat_map(|file| {
                let versions = file.versions.map(|(before, after)| [before.blob, after.blob]);
                versions.into_iter().flatten().flatten().map(move |id| (file.path.clone(), id))
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_of_call(kind: IssueKind) -> bool {
    matches!(kind, IssueKind::UnansweredCall | IssueKind::OrphanResult | IssueKind::DuplicateResult)
}

fn sentence(kind: IssueKind, call: &str) -> String {
    match kind {
        IssueKind::OrphanResult => format!("a tool result without its {call} in the session; it is shown alone"),
        IssueKind::DuplicateResult => format!("another result of the {call}; the first one counts"),
        _ => format!("the {call} has no result"),
    }
}

/// The calls of one record that have an issue: `call "c1" of "bash"`.
struct CallNames {
    unanswered: std::vec::IntoIter<String>,
    orphans: std::vec::IntoIter<String>,
    duplicates: std::vec::IntoIter<String>,
}

impl CallNames {
    fn of(record: RecordRef<'_>) -> CallNames {
        let (mut unanswered, mut orphans, mut duplicates) = (Vec::new(), Vec::new(), Vec::new());
        let keys = &record.session.derived.keys;
        let key =
            |role, call: &str| SharedKey { role, hash: xxh3_64(call.as_bytes()), sidechain: record.is_sidechain() };
        let body = record.body();
        for content in body.iter().filter_map(Body::content) {
            let (mut calls, mut results) = (HashSet::new(), HashSet::new());
            for call in content.parts.iter().filter_map(Part::as_call) {
                let is_answered = keys.count(key(KeyRole::Result, &call.call_id)) > 0;
                if !is_answered && calls.insert(call.call_id.as_str()) {
                    unanswered.push(name(&call.call_id, Some(&call.name)));
                }
            }
            for result in &content.results {
                let id = result.call_id.as_str();
                if !results.insert(id) {
                    continue;
                }
                let calls = keys.count(key(KeyRole::Call, id));
                if calls == 0 {
                    orphans.push(name(id, result.name.as_deref()));
                }
                if keys.count_before(key(KeyRole::Result, id), record.node) >= calls.max(1) {
                    duplicates.push(name(id, result.name.as_deref()));
                }
            }
        }
        let [unanswered, orphans, duplicates] = [unanswered, orphans, duplicates].map(Vec::into_iter);
        CallNames { unanswered, orphans, duplicates }
    }

    fn next(&mut self, kind: IssueKind) -> Option<String> {
        match kind {
            IssueKind::OrphanResult => self.orphans.next(),
            IssueKind::DuplicateResult => self.duplicates.next(),
            _ => self.unanswered.next(),
        }
    }
}

fn name(call: &str, tool: Option<&str>) -> String {
    match tool.filter(|tool| !tool.is_empty()) {
        Some(tool) => format!("call {} of {}", quoted(call), quoted(tool)),
        None => format!("call {}", quoted(call)),
    }
}
