//! The newest page of a session: only as much of its file is read as the page needs.

use crate::model::error::Result;
use crate::session::Session;
use crate::session::read::open::{FileEnds, ReadOptions};
use crate::session::read::source::Source;
use crate::view::conversation::Conversation;

/// The first window of a session read from its end, and what it grows by: a page of messages is usually in the first.
const TAIL_WINDOW_BYTES: u64 = 256 * 1024;
const TAIL_WINDOW_GROWTH: u64 = 4;

/// A page of a session, counted from its end.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// How many messages; what a person did beside the conversation does not count.
    pub messages: usize,
    /// The record that the page ends before.
    pub before: Option<&'a str>,
}

impl Session {
    /// Reads the last messages of a session, and of its file only what they need.
    ///
    /// The session is `whole` when that turned out to be everything.
    pub fn open_page(source: &Source, reading: &ReadOptions<'_>, page: Page<'_>) -> Result<Session> {
        let Some(ends) = FileEnds::open(source, reading)? else { return Session::open(source, reading) };
        let mut window = TAIL_WINDOW_BYTES;
        loop {
            if window >= ends.size_bytes {
                return Session::open(source, reading);
            }
            let session = ends.end(window)?;
            if session.holds(page) {
                return Ok(session);
            }
            window = window.saturating_mul(TAIL_WINDOW_GROWTH);
        }
    }

    /// Whether the page is here, and sure to be what the whole session has at its end.
    fn holds(&self, page: Page<'_>) -> bool {
        let Some(head) = self.head() else { return false };
        let branch = self.branch(head);
        let conversation = Conversation::new(&branch);
        let end = match page.before {
            None => Some(conversation.len()),
            // A beginning of an id may fit a record before the window too.
            Some(id) => {
                branch.records.iter().find(|record| record.id() == id).and_then(|at| conversation.position(*at))
            }
        };
        let Some(first) = end.and_then(|end| conversation.page_start(end, page.messages)) else { return false };
        let begins_here = branch.records.first().is_some_and(|root| root.is_root());
        // The first message here may begin before the window, and with it the count of a long turn's messages.
        let sure = begins_here || (1..=first).any(|at| !conversation.continues(at));
        sure && (first..conversation.len()).all(|at| conversation.has_its_calls(at))
    }
}
