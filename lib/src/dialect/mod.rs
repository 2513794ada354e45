//! How one agent writes: where its sessions lie and what its records mean.
//!
//! A dialect states facts. It opens no file, walks no folder, keeps no state and prints nothing: the driver
//! ([`crate::session`] and its helpers) does that once for all dialects.

pub mod layout;
pub mod profile;
pub mod writer;
pub(crate) mod file_backups;
pub(crate) mod line_builder;
pub(crate) mod record_class;
pub(crate) mod resolved_turn;

mod ai_sdk;
pub(crate) mod claude_code;
mod codex;
mod fluux;
mod native;
mod qwen_code;
mod sage_el;
mod unknown;

use std::borrow::Cow;

pub use ai_sdk::AiSdk;
pub use claude_code::{ClaudeCode, blocks as anthropic_blocks, documented_folder_name, folder_name};
pub use codex::{Codex, RolloutFileName};
pub use fluux::{Fluux, bare_jid, room as fluux_room};
pub use native::Native;
pub use qwen_code::QwenCode;
pub use sage_el::{SageEl, aligned_sage_folder_name, faults as sage_el_faults, sage_folder_name};
pub use unknown::Unknown;

use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
pub use crate::model::lenient::Moment;
use crate::model::record::{Body, Kind, TitleSource, Usage};

/// One agent's way of keeping sessions.
///
/// CONTRIBUTING.md tells in five steps how to add one.
pub trait Dialect: Sync {
    /// The name that people type, such as `native`.
    fn name(&self) -> &'static str;

    /// Where its sessions lie in a home.
    fn layouts(&self, home: &Home) -> Vec<Layout>;

    /// Where its sessions lie in a store that was named (`--store DIR`).
    fn layouts_in(&self, store: &std::path::Path) -> Vec<Layout>;

    /// What its files have in common.
    fn traits(&self) -> Traits;

    /// What the tree must know of one JSON value; the body stays unparsed.
    ///
    /// `text` is the value itself; it is parsed before the first event is emitted. An error means that its fields are not what this dialect knows: the driver keeps
    /// the value and reports it.
    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error>;

    /// Whether a value bears marks that no other dialect's records have: asked when a file must be told by its content.
    fn is_marked(&self, _text: &str) -> bool {
        false
    }

    /// Whether a file of nothing but such values is this dialect's, though others may write one now and then.
    fn is_usual(&self, _text: &str) -> bool {
        false
    }

    /// What the file beside a log says about the session, as [`Event::About`] and [`Event::Title`].
    fn sidecar<'a>(&self, _text: &'a str, _emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        Ok(())
    }

    /// What the value of a record says; asked only for records that somebody looks at.
    fn body(&self, text: &str) -> Body;

    /// How its files are written, where we can write them.
    ///
    /// What is written must be read back by `link` and `body` as the same record, and by the agent itself as one of its own:
    /// every field that it asks for is there, optional ones only where they say something, unknown ones of a line that is
    /// taken over stay. What the format cannot hold is a [`crate::dialect::writer::Loss`], never silence.
    fn write(&self) -> Option<&'static Writer> {
        None
    }

    /// What the agent itself sends of a record to the model, as the Gemini API's `Content` objects, where it records those.
    ///
    /// One without a `role` goes on with the content before it. `None`: the agent speaks to another API.
    fn contents(&self, _text: &str) -> Option<Vec<serde_json::Value>> {
        None
    }

    /// What the name of a session's file calls the session, where it does.
    fn session_of(&self, _path: &std::path::Path) -> Option<String> {
        None
    }

    /// Whom the place of a session's file says that it is with, where it does. See [`Event::With`].
    fn with_of(&self, _path: &std::path::Path) -> Option<String> {
        None
    }

    /// Whether the agent itself takes a file that a layout finds for a session, as far as its name tells.
    fn is_session(&self, _path: &std::path::Path) -> bool {
        true
    }

    /// Whether a record stands at or behind the one called `mark`, as far as their ids tell. See [`Event::Base`].
    fn reaches(&self, id: &str, mark: &str) -> bool {
        id == mark
    }
}

/// Facts about all files of a dialect.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// What a repeated id means.
    pub repeated: Repeated,
    /// The agent itself closes a gap when the orphan follows an island's tip within this many milliseconds.
    pub bridges_within_ms: Option<i64>,
    /// A title is written again so that it stands this near to the end of the file; 0 when it is not.
    pub title_within_bytes: u64,
    /// In which order the agent sends what the calls of one answer gave back.
    pub results: ResultOrder,
    /// The name of a file is the id of its session: files with other names need not be opened in search of an id.
    pub ids_in_names: bool,
    /// A file may hold summaries of other sessions in its folder, which are their titles.
    pub sums_up_others: bool,
}

impl Traits {
    /// What most dialects have in common.
    pub const fn of(repeated: Repeated) -> Traits {
        Traits {
            repeated,
            bridges_within_ms: None,
            title_within_bytes: 0,
            results: ResultOrder::Called,
            ids_in_names: true,
            sums_up_others: false,
        }
    }
}

/// In which order results are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultOrder {
    /// As they were called.
    Called,
    /// As they came; behind them those that are missing.
    Came,
    /// Those of the first record, then those that are missing, then the rest as called.
    FirstRecordThenMissing,
}

/// What a second record with the same id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// A further fragment of the first.
    Join,
    /// The new state of the first.
    LastWins,
    /// Another record; it gets an id of its own.
    Distinct,
}

/// One thing that a JSON value tells the driver.
#[derive(Debug)]
pub enum Event<'a> {
    /// It is a record, or holds one.
    Record(Link<'a>),
    /// The record just emitted belongs to something else too.
    Key(Key<'a>),
    /// The record just emitted says what its request cost.
    Usage {
        /// Names the request, when several records repeat its usage.
        request: Option<Cow<'a, str>>,
        /// The tokens.
        usage: Usage,
    },
    /// What all requests of the session cost so far. It counts where no record tells the cost of one request.
    Total {
        /// The sum.
        total: Usage,
        /// The latest request's part of it.
        last: Option<Usage>,
    },
    /// The record just emitted is one item of an answer: items that follow one another are one answer.
    Item,
    /// The record just emitted only reacts to another one: it asks for no answer.
    Reaction,
    /// The record just emitted says only how things stand, such as the task list: that is told of the message before it.
    State,
    /// Whom the session is with, a person or a room, where that does not name it. A second one is another session's.
    With(Cow<'a, str>),
    /// The record just emitted is a whole message: it is shown as it is, and never a part of another one.
    Message,
    /// What the agent's own rules have against the record just emitted, or against the value.
    Rejected(String),
    /// The agent's own rules for the record just emitted: what they have against its text. They are asked only when the
    /// record is taken in, not when a file is only looked at.
    Judge(fn(&str) -> Option<String>),
    /// A fact about the session.
    About(About<'a>),
    /// The session's title.
    Title {
        /// The title itself.
        text: Cow<'a, str>,
        /// Who made it.
        source: TitleSource,
    },
    /// A summary of the session that this record ends; it may be another one.
    Summary {
        /// The summary itself.
        text: Cow<'a, str>,
        /// The last record that it sums up.
        of: Cow<'a, str>,
    },
    /// The agent says that this record is the head.
    Leaf(Cow<'a, str>),
    /// The agent says that the conversation goes on from this record, whatever hangs on it so far.
    Rewound(Cow<'a, str>),
    /// This record and all after it leave the conversation; they stay reachable as a branch.
    Cut(Cow<'a, str>),
    /// The last so many prompts and all that answered them leave the conversation; they stay reachable as a branch.
    CutTurns(u64),
    /// The records that follow are the whole conversation.
    ReplaceAll,
    /// The conversation begins in another session.
    Base {
        /// That session.
        session: Cow<'a, str>,
        /// The first record there that is not part of this one; `None` takes all.
        until: Option<Cow<'a, str>>,
        /// The last record there that is; when the other session ends before it, something is lost.
        last: Option<Cow<'a, str>>,
    },
    /// The value's kind is one that this dialect does not know.
    Unknown(Cow<'a, str>),
    /// The value is of a newer version of the format than this dialect knows.
    Newer(u64),
    /// The value lacks something its kind needs.
    Missing(&'static str),
}

impl Event<'_> {
    /// The same, borrowing nothing. A record's text is left out: its place is known by then.
    pub(crate) fn into_owned(self) -> Event<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Event::Record(link) => Event::Record(Link {
                text: "",
                id: link.id.map(own),
                parent: match link.parent {
                    Parent::Root => Parent::Root,
                    Parent::Id(id) => Parent::Id(own(id)),
                    Parent::Previous => Parent::Previous,
                },
                at: link.at.into_owned(),
                ..link
            }),
            Event::Key(key) => Event::Key(match key {
                Key::Group(id) => Key::Group(own(id)),
                Key::Call(id) => Key::Call(own(id)),
                Key::Result(id) => Key::Result(own(id)),
                Key::Interim(id) => Key::Interim(own(id)),
            }),
            Event::Usage { request, usage } => Event::Usage { request: request.map(own), usage },
            Event::Total { total, last } => Event::Total { total, last },
            Event::Item => Event::Item,
            Event::Reaction => Event::Reaction,
            Event::State => Event::State,
            Event::With(other) => Event::With(own(other)),
            Event::Message => Event::Message,
            Event::Rejected(why) => Event::Rejected(why),
            Event::Judge(rules) => Event::Judge(rules),
            Event::About(about) => Event::About(About {
                session: about.session.map(own),
                cwd: about.cwd.map(own),
                git_branch: about.git_branch.map(own),
                version: about.version.map(own),
                model: about.model.map(own),
                parent_session: about.parent_session.map(own),
                parent_call: about.parent_call.map(own),
                forked_from: about.forked_from.map(own),
            }),
            Event::Title { text, source } => Event::Title { text: own(text), source },
            Event::Summary { text, of } => Event::Summary { text: own(text), of: own(of) },
            Event::Leaf(id) => Event::Leaf(own(id)),
            Event::Rewound(id) => Event::Rewound(own(id)),
            Event::Cut(id) => Event::Cut(own(id)),
            Event::CutTurns(turns) => Event::CutTurns(turns),
            Event::ReplaceAll => Event::ReplaceAll,
            Event::Base { session, until, last } => {
                Event::Base { session: own(session), until: until.map(own), last: last.map(own) }
            }
            Event::Unknown(kind) => Event::Unknown(own(kind)),
            Event::Newer(version) => Event::Newer(version),
            Event::Missing(field) => Event::Missing(field),
        }
    }
}

/// What the tree must know of a record.
#[derive(Debug)]
pub struct Link<'a> {
    /// The JSON value that is the record: what `link` was given, or a piece of it.
    pub text: &'a str,
    /// Its id; without one it is called after its place.
    pub id: Option<Cow<'a, str>>,
    /// What it hangs on.
    pub parent: Parent<'a>,
    /// What it is.
    pub kind: Kind,
    /// When it was written.
    pub at: Moment<'a>,
    /// Part of a side conversation.
    pub sidechain: bool,
    /// It has no place in the parent chain.
    pub side: bool,
    /// It tells of a failure of the agent, not of a tool.
    pub failure: bool,
    /// It carries a fragment number: an identical line is not a repeat.
    pub numbered: bool,
}

/// What a record hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent<'a> {
    /// Nothing: a conversation begins.
    Root,
    /// The record with this id.
    Id(Cow<'a, str>),
    /// The record before it: the dialect is linear here.
    Previous,
}

/// What else a record belongs to.
#[derive(Debug)]
pub enum Key<'a> {
    /// One answer of a model, written as several records.
    Group(Cow<'a, str>),
    /// It makes this tool call.
    Call(Cow<'a, str>),
    /// It answers this tool call.
    Result(Cow<'a, str>),
    /// It answers this tool call for now: another result will follow.
    Interim(Cow<'a, str>),
}

/// Facts about the session that a record tells in passing.
#[derive(Debug, Default)]
pub struct About<'a> {
    /// The session's id.
    pub session: Option<Cow<'a, str>>,
    /// The working directory.
    pub cwd: Option<Cow<'a, str>>,
    /// The git branch.
    pub git_branch: Option<Cow<'a, str>>,
    /// The agent's version.
    pub version: Option<Cow<'a, str>>,
    /// A model that answered.
    pub model: Option<Cow<'a, str>>,
    /// The session that this one is a sub-agent's work for.
    pub parent_session: Option<Cow<'a, str>>,
    /// The tool call in that session that started this one.
    pub parent_call: Option<Cow<'a, str>>,
    /// The session that this one was forked from.
    pub forked_from: Option<Cow<'a, str>>,
}

/// Every dialect, in the order in which they are asked.
pub fn all() -> &'static [&'static dyn Dialect] {
    &[&Native, &ClaudeCode, &Codex, &QwenCode, &Fluux, &SageEl, &AiSdk]
}

/// The dialect with this name.
pub fn named(name: &str) -> Option<&'static dyn Dialect> {
    all().iter().copied().chain([&Unknown as &dyn Dialect]).find(|dialect| dialect.name() == name)
}
