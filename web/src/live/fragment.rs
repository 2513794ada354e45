//! One message as it is sent to those who follow: the HTML of the page, and the UIMessage.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;
use scrollback::model::{Message, Part, Role, Sdk, json};
use scrollback::session::{Branch, Session};
use scrollback::view::Conversation;
use scrollback::view::tool_view::{Ending, ending};

use crate::api::FileAddresses;
use crate::pages::session::{PAGE_BYTES, outline_of};
use crate::render::trace::Map;
use crate::render::{Look, Room};
use crate::site::Site;
use crate::transcript::{Transcript, is_room};

/// A larger message is not sent as a UIMessage: whoever wants it asks for it.
const MESSAGE_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// A message on its way to everybody. The bytes are shared, not copied.
pub(crate) struct Fragment {
    /// The message itself.
    pub(crate) message: Arc<Message>,
    /// A number for what it is made of, and what it says.
    pub(crate) made_of: u64,
    pub(crate) content: Content,
    /// Whether it was rendered as the end of a session with an agent at work.
    is_running: bool,
    /// `"html":"…"`, and what stands behind the last message, in the outline and in the trace: `"end":"…","outline":"…","ticks":"…"`.
    html: Bytes,
    /// `"message":{…}`; `None` if it has files, whose addresses depend on who asks.
    json: Option<Bytes>,
}

/// What a message says, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    /// The message itself.
    pub(crate) message: u64,
    /// The same with what a page shows of it and around it.
    pub(crate) page: u64,
}

impl Fragment {
    /// Renders messages as the page does; an agent may be at work in the session.
    pub(crate) fn of_messages(
        session: &Session,
        branch: &Branch<'_>,
        conversation: &Conversation<'_, '_>,
        places: &[usize],
        is_running: bool,
        address: &str,
        site: &Site,
    ) -> scrollback::Result<Vec<Arc<Fragment>>> {
        let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) else { return Ok(Vec::new()) };
        // The message before says how long nothing happened, and which compactions kept what.
        let range = first.saturating_sub(1)..(last + 2).min(conversation.len());
        let transcript = Transcript::new(session, branch, conversation, range, site)?;
        let is_room = is_room(conversation);
        let mut fragments = Vec::new();
        let mut outlines: HashMap<usize, String> = HashMap::new();
        for at in places {
            let room = Room::of_page(PAGE_BYTES);
            let look = Look { is_running, ..site.look(session, is_room, address, &room) };
            let Some(message) = conversation.message(*at).transpose()? else { continue };
            transcript.begin_after(at.checked_sub(1));
            let html = site.masked(&transcript.fragment(*at, &message, &look));
            let end = match at + 1 == conversation.len() {
                true => site.masked(&transcript.end(at + 1, &look).0),
                false => String::new(),
            };
            let outline = match turn_of(conversation, *at) {
                Some(turn) => outlines.entry(turn.start).or_insert_with(|| {
                    let read = |other: usize| match other == *at {
                        true => Some(message.clone()),
                        false => conversation.message(other)?.ok(),
                    };
                    let messages: Vec<_> = turn.filter_map(read).collect();
                    site.masked(&outline_of(&messages, session, site).0)
                }),
                None => &String::new(),
            };
            let mut map = Map::default();
            let is_running = is_running && at + 1 == conversation.len();
            map.add(&message, is_running);
            let around = [("end", &end), ("outline", outline), ("ticks", &site.masked(&map.links().0))];
            let fragment = Fragment::new(message, &html, around);
            fragments.push(Arc::new(Fragment { made_of: conversation.made_of(*at), is_running, ..fragment }));
        }
        Ok(fragments)
    }

    fn new(message: Message, html: &str, around: [(&str, &String); 3]) -> Fragment {
        let mut text = format!("\"html\":{}", serde_json::Value::from(html));
        for (name, html) in around.into_iter().filter(|(_, html)| !html.is_empty()) {
            text += &format!(",\"{name}\":{}", serde_json::Value::from(html.as_str()));
        }
        let has_files = message.parts.iter().any(|part| matches!(part, Part::File(_) | Part::ReasoningFile(_)));
        let json = message_json(&message);
        let content = Content { message: hash_of(&json), page: hash_of(&(&json, text.as_bytes())) };
        let json = (!has_files).then_some(json);
        Fragment { message: Arc::new(message), made_of: 0, content, is_running: false, html: text.into(), json }
    }

    /// Whether a call of it has no result, so that it depends on what follows how it is shown.
    pub(crate) fn has_open_call(&self) -> bool {
        let mut calls = self.message.parts.iter().filter_map(Part::as_call);
        calls.any(|call| ending(call) == Ending::NoResult)
    }

    /// Whether a call of it is shown as running.
    pub(crate) fn has_running_call(&self) -> bool {
        self.is_running && self.has_open_call()
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        // The message in memory is about as large as its JSON.
        self.html.len() + 2 * self.json.as_ref().map_or(MESSAGE_GUESS_BYTES, Bytes::len)
    }

    /// The page's HTML, as a field of an object.
    pub(crate) fn html(&self) -> Bytes {
        self.html.clone()
    }

    /// The UIMessage, as a field of an object.
    pub(crate) fn json(&self, addresses: &FileAddresses) -> Bytes {
        let with_addresses = || message_json(&addresses.in_message((*self.message).clone()));
        self.json.clone().unwrap_or_else(with_addresses)
    }
}

/// More messages of one turn are not read for its place in the outline.
const TURN_MESSAGES: usize = 20;

/// The turn that a message belongs to: the prompt before it, and what follows that.
fn turn_of(conversation: &Conversation<'_, '_>, at: usize) -> Option<Range<usize>> {
    let is_prompt = |at: &usize| conversation.role(*at) == Some(Role::User);
    let start = (at.saturating_sub(TURN_MESSAGES)..=at).rev().find(is_prompt)?;
    let most = conversation.len().min(start + TURN_MESSAGES + 1);
    Some(start..(start + 1..most).find(is_prompt).unwrap_or(most))
}

/// A message with files may hold pictures.
const MESSAGE_GUESS_BYTES: usize = 64 * 1024;

/// A number for a value.
pub(super) fn hash_of(value: &impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    hash.finish()
}

fn message_json(message: &Message) -> Bytes {
    let mut text = b"\"message\":".to_vec();
    let is_written = json::write(&mut text, &message.clone().for_sdk(Sdk::V7)).is_ok();
    match is_written && text.len() <= MESSAGE_LIMIT_BYTES {
        true => text.into(),
        false => Bytes::from_static(b"\"message\":null"),
    }
}
