//! Sub-agents of a session: which call started which, and their last words, read from the ends of their own sessions.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use jiff::Timestamp;
use scrollback::model::{Part, Role};
use scrollback::session::{ReadOptions, Session, Source};
use scrollback::view::find::Places;
use scrollback::view::listing::{self, Depth};
use scrollback::view::{Conversation, Page};

/// A session may start thousands of sub-agents; only so many of their files are opened.
const MAX_OPENED: usize = 50;

/// More words than this are never shown.
const MAX_WORDS_BYTES: usize = 100_000;

/// The sub-agents of one session.
pub(crate) struct SubAgents {
    places: Places,
    source: Source,
    /// The session that started them.
    parent: String,
    now: Timestamp,
    opened: Cell<usize>,
    /// Every session of the dialect, walked when the first sub-agent is met.
    sources: OnceCell<Vec<Source>>,
    /// The session that each call started, where only the sub-agent's own file says so.
    by_call: OnceCell<HashMap<String, String>>,
}

impl SubAgents {
    pub(crate) fn new(places: Places, source: Source, parent: String, now: Timestamp) -> SubAgents {
        let (opened, sources, by_call) = Default::default();
        SubAgents { places, source, parent, now, opened, sources, by_call }
    }

    /// The session that a call started, if a sub-agent's file names the call.
    pub(crate) fn started_by(&self, call: &str) -> Option<String> {
        let by_call = self.by_call.get_or_init(|| {
            // The agents that do so keep these files in a folder that is named after the session.
            let is_child =
                |source: &&Source| source.path.iter().rev().skip(1).any(|folder| folder == self.parent.as_str());
            let children = self.sources().iter().filter(is_child).take(MAX_OPENED);
            let row = |child| listing::row(child, &ReadOptions::plain(self.now), Depth::Ends).ok();
            let calls = children.filter_map(row).filter_map(|row| Some((row.parent_call?, row.id.0)));
            calls.collect()
        });
        by_call.get(call).cloned()
    }

    /// The last text of a sub-agent; `None` if its session cannot be found or read, or too many were opened.
    pub(crate) fn last_words(&self, session: &str) -> Option<String> {
        let opened = self.opened.replace(self.opened.get() + 1);
        let source = self.named(session).filter(|_| opened < MAX_OPENED)?;
        let page = Page { messages: 1, before: None };
        let session = Session::open_page(&source, &ReadOptions::plain(self.now), page).ok()?;
        let branch = session.branch(session.head()?);
        let conversation = Conversation::new(&branch);
        let last = conversation.message(conversation.len().checked_sub(1)?)?.ok()?;
        let text = last.parts.into_iter().rev().find_map(|part| match part {
            Part::Text(text) if last.role == Role::Assistant => Some(text.text),
            _ => None,
        })?;
        Some(text[..text.floor_char_boundary(MAX_WORDS_BYTES)].to_owned())
    }

    /// Whether a session is gone from the store that the one that started it is in. Of a file elsewhere, nothing is known.
    pub(crate) fn is_gone(&self, session: &str) -> bool {
        self.named(session).is_none() && self.named(&self.parent).is_some()
    }

    /// A session by its id.
    fn named(&self, session: &str) -> Option<Source> {
        self.sources().iter().find_map(|source| source.named(session))
    }

    /// The sessions of the store that the session is in, else of all places.
    fn sources(&self) -> &[Source] {
        self.sources.get_or_init(|| {
            let store = self.source.store().or_else(|| self.places.store.clone());
            let places = Places { dialect: Some(self.source.dialect), store, ..self.places.clone() };
            places.sources().into_iter().filter_map(Result::ok).collect()
        })
    }
}

/// For exports: the whole sessions, masked as the session that started them.
impl scrollback_web::SubAgents for SubAgents {
    fn find(&self, _parent: &str, call: &str, noted: Option<&str>) -> Option<Source> {
        let session = noted.map(str::to_owned).or_else(|| self.started_by(call))?;
        self.named(&session)
    }

    fn open(&self, source: &Source) -> scrollback::Result<Session> {
        let find = self.places.finder(source);
        let mask = self.places.mask.as_ref();
        Session::open(source, &ReadOptions { find: &find, mask, ..ReadOptions::plain(self.now) })
    }
}
