//! Builds the lines of records: the parent of each, its lines in the format, and the parent of the next one.

use std::borrow::Cow;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use serde_json::Value;

use super::cursor::{Chain, ParentRecord};
use super::log::{Log, MASKED_START_BYTES, Mode, Place};
use crate::dialect::line_builder;
use crate::dialect::writer::{Fragment, Line, Names, NewRecord, Response};
use crate::model::error::{Error, Result};
use crate::model::hash::sha256;
use crate::model::json;
use crate::model::loss::{Loss, LossKind, Losses, Lost};
use crate::model::message::Part;
use crate::model::record::{After, Before, Body, Context, Kind, RecordId, Restore, RestoredFile, Snapshot};
use crate::write::blobs::Blobs;

/// One body to write, and its parent.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) body: Body,
    pub(crate) on: On,
    pub(crate) fragment: Option<Fragment>,
    /// The responses of the model in a turn.
    pub(crate) responses: Vec<Response>,
}

/// The parent of a piece.
#[derive(Clone)]
pub(crate) enum On {
    /// The last record.
    Last,
    /// The last record, and the piece starts another answer of the model.
    LastAsNewAnswer,
    /// Any record.
    Record(RecordId),
    /// None: the piece begins a conversation.
    Start,
    /// None: the piece is a further line of this record.
    Append(ParentRecord),
}

impl Piece {
    /// A whole record after the last one.
    pub(crate) fn next(body: Body) -> Piece {
        Piece { body, on: On::Last, fragment: None, responses: Vec::new() }
    }

    /// A further line of a record.
    pub(crate) fn append(record: ParentRecord, body: Body) -> Piece {
        let fragment = Some(Fragment { seq: record.lines, part: record.lines });
        Piece { on: On::Append(record), fragment, ..Piece::next(body) }
    }

    /// The blocks of one answer or of its results, after the last record.
    pub(crate) fn step(mut blocks: Vec<Body>) -> impl Iterator<Item = Piece> {
        let rest = blocks.split_off(blocks.len().min(1));
        let first = blocks.into_iter().map(|body| Piece { on: On::LastAsNewAnswer, ..Piece::next(body) });
        first.chain(rest.into_iter().map(Piece::next))
    }
}

/// Lines that are about to be appended.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Where each line begins, and what it names.
    pub(super) names: Vec<(usize, Names)>,
    pub(super) losses: Losses,
    /// What they contain, to update the cursor once they are written.
    pub(super) bodies: Vec<(RecordId, Body)>,
    /// How many new messages a reader will find.
    pub(super) messages: u64,
    /// The last record is an answer.
    pub(super) answers: bool,
}

impl Log {
    /// Adds the lines of one piece to the batch, and moves the parent of the next one.
    pub(super) fn draft(&self, piece: Piece, at: Timestamp, chain: &mut Chain, batch: &mut Batch) -> Result<()> {
        let Piece { mut body, on, fragment, responses } = piece;
        let has_context = body.content().is_some_and(|content| content.context != Context::default());
        self.fill_in(&mut body, &self.cursor.calls);
        if let Body::Snapshot(snapshot) = &mut body {
            self.move_secrets_to_blobs(snapshot)?;
        }
        let kind = body.kind();
        let tip_before = chain.parent.as_ref().map(|tip| tip.id.clone());
        let (id, parent) = match &on {
            On::Last | On::LastAsNewAnswer => (RecordId((self.place.host.new_id)()), tip_before.clone()),
            On::Record(parent) => (RecordId((self.place.host.new_id)()), Some(parent.clone())),
            On::Start => (RecordId((self.place.host.new_id)()), None),
            On::Append(record) => (record.id.clone(), record.parent.clone()),
        };
        if kind == Kind::Assistant && matches!(on, On::LastAsNewAnswer) {
            chain.current_answer = None;
        }
        if kind == Kind::Assistant && !matches!(on, On::Append(_)) && fragment.is_none_or(|piece| piece.seq == 0) {
            chain.current_answer.get_or_insert_with(|| id.clone());
        }
        let branches = chain.starts_branch
            || match &on {
                On::Record(to) => tip_before.as_ref() != Some(to),
                On::Start => tip_before.is_some(),
                On::Last | On::LastAsNewAnswer | On::Append(_) => false,
            };
        // Formats repeat the prompt of a new branch only.
        let prompt = match &body {
            Body::User(content) if branches => {
                let text = line_builder::joined_text(&content.parts, &mut Losses::default());
                Some(self.place.masked_start(&text, &chain.sensitive_calls))
            }
            _ => None,
        };
        let Place { session, writing, host, forked_from, .. } = &self.place;
        let mut written = (writing.lines)(&NewRecord {
            session,
            id: &id,
            parent: parent.as_ref(),
            answer: chain.current_answer.as_ref().unwrap_or(&id),
            at,
            version: &host.version,
            body: &body,
            responses: &responses,
            context: &self.context,
            branches,
            sidechain: chain.is_sidechain,
            fragment,
            forked_from: forked_from.as_ref().map(|(session, record)| (session, record)),
            last: chain.last_line.as_ref(),
            model_before: self.cursor.tally.model.as_deref().filter(|_| self.place.mode == Mode::Live),
            prompt: prompt.as_deref(),
            new_id: &*host.new_id,
        });
        forget_texts(&mut body);
        if let Some(line) = written.lines.last() {
            chain.last_line = match &line.names {
                Names::Link(id) | Names::Aside(id) => Some(id.clone()),
                Names::Place | Names::Side => None,
            };
        }
        let is_link = |line: &&Line| matches!(line.names, Names::Link(_) | Names::Place);
        let mut links: Vec<&Names> = written.lines.iter().filter(is_link).map(|line| &line.names).collect();
        links.dedup_by(|a, b| a == b && **a != Names::Place);
        let (lines, is_link) = (written.lines.len() as u64, !links.is_empty());
        let is_message = matches!(kind, Kind::User | Kind::Assistant | Kind::ToolResult | Kind::System);
        if is_message && !matches!(on, On::Append(_)) {
            batch.messages += links.len() as u64;
        }
        let Chain { current_answer, sensitive_calls, .. } = &mut *chain;
        let file_words = exact_words(&body);
        // Others refer to them: they stay, whatever they look like.
        let mut kept = HashSet::from([session.as_str(), id.as_str()]);
        kept.extend([parent.as_ref(), current_answer.as_ref()].into_iter().flatten().map(RecordId::as_str));
        kept.extend(call_ids(&body));
        kept.extend(file_words.iter().map(AsRef::<str>::as_ref));
        for line in &mut written.lines {
            let start = batch.bytes.len();
            batch.names.push((start, line.names.clone()));
            // Gone before it is redacted: a value may be as large as a record may be.
            let value = std::mem::take(&mut line.value);
            json::write(&mut batch.bytes, &value).map_err(|_| self.cannot_encode())?;
            drop(value);
            if let Some(redactor) = &self.place.redactor
                && let Cow::Owned(redacted) = redactor.line_keeping(&kept, sensitive_calls, &batch.bytes[start..]).bytes
            {
                batch.bytes.truncate(start);
                batch.bytes.extend_from_slice(&redacted);
            }
            batch.bytes.push(b'\n');
        }
        drop(kept);
        let is_missed = |loss: &Loss| has_context || !matches!(loss.what, Lost::Environment | Lost::Platform);
        batch.losses.extend(written.losses.into_iter().filter(is_missed));
        chain.starts_branch = branches && !is_link;
        if !is_link {
            // A rewind that the format cannot store takes effect with the next record.
            if let (Body::Rewind(_), On::Record(to)) = (&body, on) {
                chain.parent = Some(ParentRecord { id: to, parent: None, kind: Kind::Other, lines: 1 });
            }
        } else if let On::Append(_) = on {
            for known in chain.parent.iter_mut().chain(&mut chain.last_answer).filter(|known| known.id == id) {
                known.lines += lines;
            }
        } else {
            let link = written.lines.iter().rev().find_map(|line| match &line.names {
                Names::Link(id) => Some(id.clone()),
                Names::Place | Names::Aside(_) | Names::Side => None,
            });
            let link = link
                .or_else(|| chain.parent.as_ref().map(|tip| tip.id.clone()))
                .unwrap_or_else(|| RecordId(String::new()));
            chain.parent = Some(ParentRecord { id: link, parent, kind, lines });
            batch.answers = kind == Kind::Assistant;
            if batch.answers {
                chain.last_answer.clone_from(&chain.parent);
            }
        }
        chain.end_answer_before(kind);
        batch.bodies.push((id, body));
        Ok(())
    }

    /// Fills in the context, and the tool names of results.
    fn fill_in(&self, body: &mut Body, calls: &HashMap<String, String>) {
        let Some(content) = body.content_mut() else { return };
        for result in &mut content.results {
            result.name = result.name.take().or_else(|| calls.get(&result.call_id).cloned());
        }
        if self.place.mode == Mode::Live {
            content.context.fill_from(self.context.clone());
        }
    }

    /// A file with a secret in it is kept as a blob: its content must be true, so that an undo can restore it, and the log is no
    /// place for it.
    fn move_secrets_to_blobs(&self, snapshot: &mut Snapshot) -> Result<()> {
        let Place { disk, host, redactor, blobs, .. } = &self.place;
        let Some(redactor) = redactor else { return Ok(()) };
        let mut snapshots = vec![snapshot];
        while let Some(Snapshot { files, more, .. }) = snapshots.pop() {
            for file in files {
                if let Before::Inline(text) = &file.before
                    && (redactor.is_sensitive_file(&file.path) || !redactor.text(text).findings.is_empty())
                {
                    let id = Blobs { disk: &**disk, folder: blobs, host }.put(text.as_bytes())?;
                    file.before = Before::Blob { id, hash: Some(sha256(text.as_bytes())) };
                }
            }
            snapshots.extend(more);
        }
        Ok(())
    }

    fn cannot_encode(&self) -> Error {
        let what = Lost::Key("a value that is not JSON".to_owned());
        Error::record_lost(self.place.dialect.name(), LossKind::Dropped.of(what).into())
    }
}

/// Leaves of a body what the cursor learns from it: its texts are in the lines, and one may be most of the memory that recording needs.
fn forget_texts(body: &mut Body) {
    let Some(content) = body.content_mut() else { return };
    content.parts.retain_mut(|part| match part {
        Part::Text(part) => {
            part.text.truncate(part.text.floor_char_boundary(MASKED_START_BYTES));
            part.text.shrink_to_fit();
            true
        }
        Part::Tool(_) => true,
        _ => false,
    });
    content.results.iter_mut().for_each(|result| result.output = Value::Null);
}

/// The ids of a body's calls and results, which redaction must not change.
pub(super) fn call_ids(body: &Body) -> impl Iterator<Item = &str> {
    let content = || body.content().into_iter();
    let calls = content().flat_map(|content| &content.parts).filter_map(|part| match part {
        Part::Tool(call) => Some(call.call_id.as_str()),
        _ => None,
    });
    calls.chain(content().flat_map(|content| &content.results).map(|result| result.call_id.as_str()))
}

/// What an undo needs to the last letter: the message, the paths of files, the targets of links, the hashes of contents, the names of blobs.
pub(super) fn exact_words(body: &Body) -> Vec<Cow<'_, str>> {
    match body {
        Body::Snapshot(snapshot) => words_of_snapshot(snapshot),
        Body::Restore(restore) => words_of_restore(restore).into_iter().map(Cow::Owned).collect(),
        _ => Vec::new(),
    }
}

fn words_of_restore(restore: &Restore) -> Vec<String> {
    let Restore { target, from, files, folders, removed_folders, operation, takes_back, .. } = restore;
    let ids = [target, from].into_iter().flatten().map(ToString::to_string);
    let operations = [operation, takes_back].into_iter().flatten().cloned();
    let mut words: Vec<String> = ids.chain(operations).chain(folders.iter().chain(removed_folders).cloned()).collect();
    for RestoredFile { path, versions, .. } in RestoredFile::read_all(files) {
        words.push(path);
        let sides = versions.into_iter().flat_map(|(before, after)| [before, after]);
        words.extend(sides.flat_map(|side| [side.blob, side.link]).flatten());
    }
    words
}

fn words_of_snapshot(snapshot: &Snapshot) -> Vec<Cow<'_, str>> {
    let mut words: Vec<_> = snapshot.message.iter().map(|message| Cow::Borrowed(message.as_str())).collect();
    for key in [Snapshot::FOLDERS, Snapshot::REMOVED_FOLDERS] {
        let folders = snapshot.extra.get(key).and_then(Value::as_array).into_iter().flatten();
        words.extend(folders.filter_map(Value::as_str).map(Cow::Borrowed));
    }
    for file in snapshot.all_files() {
        words.push(Cow::Borrowed(file.path.as_str()));
        words.extend(file.symlink.as_deref().map(Cow::Borrowed));
        if let Before::Blob { id, hash } = &file.before {
            words.push(Cow::Owned(format!("blob:{id}")));
            words.extend(hash.as_deref().map(Cow::Borrowed));
        }
        if let After::Hash(word) | After::Symlink(word) = &file.after {
            words.push(Cow::Borrowed(word));
        }
    }
    words
}
