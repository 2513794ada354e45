//! From messages to HTML: one module for each kind of part.

pub mod ansi;
pub mod code;
pub mod diff;
pub mod divider;
pub mod file;
pub mod icon;
mod languages;
pub mod lexer;
pub mod markdown;
pub mod message;
pub mod plot;
pub mod text;
pub mod thought;
pub mod todos;
pub mod tool;
pub mod trace;
pub mod words;
pub mod work;

use std::cell::{Cell, RefCell};
use std::io::{self, Write};

use jiff::tz::TimeZone;
use maud::{Markup, PreEscaped, html};
use scrollback::model::ToolPart;

use crate::figures::Price;

/// Where the HTML goes: how pictures, long texts and other sessions are reached from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium<'a> {
    /// A page of the server; the address of its session, such as `/s/3f8a`.
    Page(&'a str),
    /// One file that is complete by itself.
    File,
}

/// How messages are shown, and what showing them may still cost.
pub struct Look<'a> {
    /// Where the HTML goes.
    pub medium: Medium<'a>,
    /// The reader's time zone.
    pub zone: &'a TimeZone,
    /// The dialect of the session: its mark is beside each answer.
    pub dialect: &'a str,
    /// Which folds are open at first.
    pub folds: Folds,
    /// Whether the session is a conversation of several people.
    pub is_room: bool,
    /// The heading of a message: 2, and one more in each conversation inside of another.
    pub level: u8,
    /// The directory that paths are shown relative to.
    pub cwd: RefCell<Option<String>>,
    /// The only model that answered in the session: an answer that names none is called after it.
    pub model: Option<String>,
    /// What a request cost that no list of prices knows.
    pub price: &'a Price,
    /// What may still be added.
    pub room: &'a Room,
    /// Whether an agent is at work in the session: then a call at its end has no result yet.
    pub is_running: bool,
    /// What an agent is called that another agent started: then the prompts are that agent's. Empty if nobody named it.
    pub sub_agent: Option<&'a str>,
}

/// How much may still be added to a page or a file.
pub struct Room {
    /// Bytes of HTML.
    pub bytes: Cell<usize>,
    /// Conversations inside of calls: a call can name any session, also its own.
    pub nested: Cell<usize>,
    /// Texts that are too long to be rendered at once, each for its place in a file.
    later: RefCell<Vec<String>>,
}

impl Room {
    /// A page whose messages may take so many bytes.
    pub fn of_page(bytes: usize) -> Room {
        Room { bytes: Cell::new(bytes), nested: Cell::new(PAGE_NESTED), later: RefCell::default() }
    }

    /// A file.
    pub fn of_file() -> Room {
        Room { bytes: Cell::new(usize::MAX), nested: Cell::new(FILE_NESTED), later: RefCell::default() }
    }

    /// The place of a text that is written piece by piece (`write`). No text of a session has these characters in HTML.
    fn later(&self, text: &str) -> Markup {
        let mut later = self.later.borrow_mut();
        later.push(text.to_owned());
        PreEscaped(format!("\u{0}{}\u{0}", later.len() - 1))
    }

    /// Writes HTML with the texts that it has places for.
    pub fn write(&self, html: &str, out: &mut dyn Write) -> io::Result<()> {
        let later = self.later.take();
        for (at, piece) in html.split('\u{0}').enumerate() {
            if at % 2 == 0 {
                out.write_all(piece.as_bytes())?;
                continue;
            }
            let mut rest = piece.parse().ok().and_then(|at: usize| later.get(at)).map_or("", String::as_str);
            while !rest.is_empty() {
                let (some, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
                out.write_all(html! { (text::shown(some)) }.0.as_bytes())?;
                rest = more;
            }
        }
        Ok(())
    }
}

/// Which folds are open at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Folds {
    /// Tool calls.
    pub tools: bool,
    /// What is left out.
    pub show: Show,
}

/// What is shown of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// All of it.
    #[default]
    Everything,
    /// All but tool calls and thinking.
    NoTools,
    /// What people wrote.
    Prompts,
}

/// A longer text is not parsed as Markdown: the parser's tree takes up to twenty times the memory of its text.
pub const MARKDOWN_LIMIT_BYTES: usize = 2 * 1024 * 1024;

/// How many conversations inside of calls a page shows, and a file.
const PAGE_NESTED: usize = 40;
pub(crate) const FILE_NESTED: usize = 1_000;

/// How much of a long text is written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// How much of one text a page shows; the rest is one link away. A file has all of it, but renders no more: the rest is as it is.
const PAGE_TEXT_BYTES: usize = 12 * 1024;
const FILE_TEXT_BYTES: usize = 1024 * 1024;

impl<'a> Look<'a> {
    /// How much of one text is shown.
    pub fn text_limit(&self) -> usize {
        match self.medium {
            Medium::Page(_) => PAGE_TEXT_BYTES.min(self.room.bytes.get()),
            Medium::File => FILE_TEXT_BYTES,
        }
    }

    /// The start of a text that is shown, whole lines where possible, and whether that is all of it.
    pub fn cut<'t>(&self, text: &'t str) -> (&'t str, bool) {
        let limit = self.text_limit();
        if text.len() <= limit {
            return (text, true);
        }
        let start = &text[..text.floor_char_boundary(limit)];
        let line = start.rfind('\n').filter(|end| *end > limit / 2).map_or(start.len(), |end| end + 1);
        (&start[..line], false)
    }

    /// A path below the working directory without that directory.
    pub fn relative<'p>(&self, path: &'p str) -> &'p str {
        let cwd = self.cwd.borrow();
        let below = |cwd: &str| path.strip_prefix(cwd)?.strip_prefix('/');
        cwd.as_deref().and_then(below).filter(|rest| !rest.is_empty()).unwrap_or(path)
    }

    /// The address of a message. A page names its record too, as the message may be on another page by the time the link is opened.
    pub fn message_address(&self, message: &str) -> String {
        let anchor = text::anchor(message);
        match self.medium {
            Medium::Page(session) => format!("{session}?at={}#m-{anchor}", text::path_segment(message)),
            Medium::File => format!("#m-{anchor}"),
        }
    }

    /// The address of a whole part, where the page does not show all of it.
    pub fn part_address(&self, message: &str, part: usize) -> Option<String> {
        match self.medium {
            Medium::Page(session) => Some(format!("{session}/part/{}/{part}", text::path_segment(message))),
            Medium::File => None,
        }
    }

    /// The same look inside of a conversation that a call started.
    pub fn nested<'b>(&'b self, medium: Medium<'b>, dialect: &'b str, name: &'b str, is_running: bool) -> Look<'b> {
        Look {
            medium,
            dialect,
            zone: self.zone,
            folds: self.folds,
            is_room: false,
            level: (self.level + 1).min(5),
            cwd: RefCell::new(self.cwd.borrow().clone()),
            model: None,
            price: self.price,
            room: self.room,
            is_running,
            sub_agent: Some(name),
        }
    }
}

/// Something that the agent noted about the run of a tool.
pub(crate) fn noted<'c>(call: &'c ToolPart, key: &str) -> Option<&'c serde_json::Value> {
    call.call_provider_metadata.as_ref()?.get("scrollback")?.get(key)
}
