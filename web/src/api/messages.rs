//! Messages of a branch as UIMessages of the AI SDK: as `show --json` has them, except that files have addresses on this server.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use scrollback::model::{Message, Part, Sdk, json};
use scrollback::session::Session;
use scrollback::view::Conversation;

use super::{Ask, Problem, invalid_cursor, json_response, streamed, tag_of};
use crate::catalogue::Entry;
use crate::render::text;

/// How many messages one answer has at most: they are read one by one, so that this only bounds its time.
const MOST: usize = 10_000;

/// How much is read at a time, while the reader takes what was read before.
const PIECE_BYTES: usize = 256 * 1024;

/// A page of them: `{items, next?}`.
pub(super) fn list(ask: &Ask) -> Result<Response, Problem> {
    answer(ask, |ask, messages| {
        let limit = ask.limit(MOST, MOST)?;
        let from = match (ask.params.get("cursor"), ask.params.get("from")) {
            (Some(cursor), _) => messages.position(cursor).map_err(|_| invalid_cursor(cursor))?,
            (None, Some(from)) => messages.position(from)?,
            (None, None) => 0,
        };
        let all = messages.range.end;
        messages.range = from.min(all)..from.saturating_add(limit).min(all);
        let next = messages.range.end;
        (messages.begin, messages.end) = match next < all {
            true => {
                let next = serde_json::Value::from(messages.id(next));
                (r#"{"items":["#.to_owned(), format!(r#"],"next":{next}}}"#))
            }
            false => (r#"{"items":["#.to_owned(), "]}".to_owned()),
        };
        Ok(())
    })
}

/// All of them, as a chat of the AI SDK wants them: an array.
pub(super) fn chat(ask: &Ask) -> Result<Response, Problem> {
    answer(ask, |_, messages| {
        (messages.begin, messages.end) = ("[".to_owned(), "]".to_owned());
        Ok(())
    })
}

fn answer(ask: &Ask, choose: impl FnOnce(&Ask, &mut Messages) -> Result<(), Problem>) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let tag = tag_of(&entry.source);
    let mut messages = Messages::open(ask, &entry)?;
    choose(ask, &mut messages)?;
    if let Some(unchanged) = tag.as_deref().and_then(|tag| ask.unchanged(tag)) {
        return Ok(unchanged);
    }
    Ok(json_response(streamed(move || messages.piece()), tag.as_deref()))
}

/// Messages on their way to the reader.
struct Messages {
    session: Arc<Session>,
    /// `None` for a session without records.
    head: Option<String>,
    range: Range<usize>,
    addresses: FileAddresses,
    sdk: Sdk,
    /// What stands before and behind them.
    begin: String,
    end: String,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Begin,
    Between,
    End,
}

impl Messages {
    fn open(ask: &Ask, entry: &Entry) -> Result<Messages, Problem> {
        let sdk = ask.sdk()?;
        let session = ask.site.whole(&entry.source)?;
        let head = match ask.params.get("head") {
            Some(head) => Some(session.find(head)?),
            None => session.head(),
        };
        let branch = head.map(|head| session.branch(head));
        let count = branch.as_ref().map_or(0, |branch| Conversation::new(branch).len());
        let head = head.map(|head| head.id().into_owned());
        let addresses = FileAddresses::of(&ask.origin, entry);
        let (begin, end) = Default::default();
        Ok(Messages { session, head, range: 0..count, addresses, sdk, begin, end, state: State::Begin })
    }

    fn with<T>(&self, of: impl FnOnce(&Session, &Conversation<'_, '_>) -> T) -> Option<T> {
        let head = self.session.find(self.head.as_deref()?).ok()?;
        let branch = self.session.branch(head);
        Some(of(&self.session, &Conversation::new(&branch)))
    }

    /// The place of a message: that of a record, or a number.
    fn position(&self, name: &str) -> Result<usize, Problem> {
        let by_record = self.with(|session, conversation| {
            let record = session.find(name)?;
            let at = conversation.position(record);
            at.filter(|at| conversation.records(*at).any(|own| own.order() == record.order()))
                .ok_or_else(|| Problem::not_found(format!("no message of this branch has the record {name:?}")))
        });
        match (by_record, name.parse()) {
            (Some(Ok(at)), _) => Ok(at),
            (_, Ok(number)) => Ok(number),
            (Some(Err(problem)), Err(_)) => Err(problem),
            (None, Err(_)) => Err(Problem::not_found("the session has no messages")),
        }
    }

    fn id(&self, at: usize) -> String {
        self.with(|_, conversation| conversation.id(at)).unwrap_or_default()
    }

    fn piece(&mut self) -> Option<io::Result<Bytes>> {
        if self.state == State::End {
            return None;
        }
        let mut out = Vec::new();
        let is_first = self.state == State::Begin;
        if is_first {
            out.extend_from_slice(self.begin.as_bytes());
            self.state = State::Between;
        }
        let range = self.range.clone();
        let written = self.with(|_, conversation| {
            let mut at = range.start;
            while at < range.end && out.len() < PIECE_BYTES {
                let Some(message) = conversation.message(at).transpose().map_err(io::Error::other)? else { break };
                if !is_first || at > range.start {
                    out.push(b',');
                }
                let message = self.addresses.in_message(message).for_sdk(self.sdk);
                json::write(&mut out, &message).map_err(io::Error::from)?;
                at += 1;
            }
            Ok(at)
        });
        match written.unwrap_or(Ok(self.range.end)) {
            Ok(at) => self.range.start = at,
            Err(error) => return Some(Err(error)),
        }
        if self.range.is_empty() {
            out.extend_from_slice(self.end.as_bytes());
            self.state = State::End;
        }
        Some(Ok(out.into()))
    }
}

/// Where the files of a session's messages are on this server.
pub(crate) struct FileAddresses {
    /// As in `http://127.0.0.1:4747/s/3f8a`.
    session: String,
}

impl FileAddresses {
    pub(crate) fn of(origin: &str, entry: &Entry) -> FileAddresses {
        FileAddresses { session: format!("{origin}/s/{}", text::path_segment(entry.row.id.as_str())) }
    }

    /// The message with addresses instead of the contents of its files. What has an address elsewhere keeps it.
    pub(crate) fn in_message(&self, mut message: Message) -> Message {
        let id = text::path_segment(&message.id);
        for (at, part) in message.parts.iter_mut().enumerate() {
            let url = match part {
                Part::File(file) => &mut file.url,
                Part::ReasoningFile(file) => &mut file.url,
                _ => continue,
            };
            if url.starts_with("data:") {
                *url = format!("{}/file/{id}/{at}", self.session);
            }
        }
        message
    }
}
