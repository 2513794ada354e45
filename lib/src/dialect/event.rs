//! What a dialect reports about one JSON value: records, how they are linked, and facts about the session.

use std::borrow::Cow;

pub use crate::model::lenient::Moment;
use crate::model::record::{Cost, Kind, TitleSource, Usage};

/// One fact in a JSON value.
#[derive(Debug)]
pub enum Event<'a> {
    /// The value is a record, or contains one.
    Record(Link<'a>),
    /// The last record belongs to an answer, or makes or answers a tool call.
    Key(Key<'a>),
    /// The last record states the usage of its request.
    Usage {
        /// Identifies the request when several records repeat its usage.
        request: Option<Cow<'a, str>>,
        /// The tokens.
        usage: Usage,
        /// The model that answered, if the record names it.
        model: Option<Cow<'a, str>>,
        /// What the request cost, if the record states it.
        cost: Option<Cost>,
    },
    /// What all requests of the session to one model cost so far: the last one counts.
    CostSoFar {
        /// The model, unless it is the cost of all models.
        model: Option<Cow<'a, str>>,
        /// The cost.
        cost: Cost,
    },
    /// The usage of all requests of the session so far: what it grew by is a request.
    TotalUsage {
        /// The sum.
        total: Usage,
        /// The latest request's part of it.
        last: Option<Usage>,
    },
    /// The usage of all requests so far, that of the last record included: a total that follows repeats it. Where it is not known, the
    /// record's usage is added to the total before.
    TotalWith(Option<Usage>),
    /// The last record is one item of an answer: consecutive items are one answer.
    AnswerItem,
    /// A turn begins with the last record, which is beside the conversation: what the model says between it and a
    /// compaction, with no prompt before, is only the compaction's summary.
    TurnStart,
    /// The last record only reacts to another one: it asks for no answer.
    Reaction,
    /// The last record only states the task list or the thinking mode of the message before it.
    StateOnly,
    /// A conversation begins anew with the last record: its parent is only what came before it, and none if that descends
    /// from it.
    BeginsAnew,
    /// Whom the session is with, a person or a room, where that is not the session's id. A second, different one belongs
    /// to another session.
    Peer(Cow<'a, str>),
    /// The last record is a whole message: it is shown as it is and never merged with another one.
    WholeMessage,
    /// Why the agent's own rules reject the last record, or the value.
    Rejected(String),
    /// Checks the last record's text against the agent's own rules and returns why they reject it. Called only when the
    /// session is read in full.
    Validate(fn(&str) -> Option<String>),
    /// Facts about the session.
    Facts(SessionFacts<'a>),
    /// The session's title.
    Title {
        /// The title itself.
        text: Cow<'a, str>,
        /// Who made it.
        source: TitleSource,
    },
    /// A summary of the session that contains record `of`; it may be another session.
    Summary {
        /// The summary itself.
        text: Cow<'a, str>,
        /// The last record that it summarizes.
        of: Cow<'a, str>,
    },
    /// The agent names this record as the head.
    Head(Cow<'a, str>),
    /// The conversation continues from this record, whatever its children are.
    RewindTo(Cow<'a, str>),
    /// This record and all after it leave the conversation; they stay reachable as a branch.
    CutFrom(Cow<'a, str>),
    /// The last so many prompts and their answers leave the conversation; they stay reachable as a branch.
    CutTurns(u64),
    /// The records that follow are the whole conversation.
    ReplaceAll,
    /// The conversation starts in another session.
    ForkBase {
        /// That session.
        session: Cow<'a, str>,
        /// The first record there that is not part of this one; `None` takes all.
        until: Option<Cow<'a, str>>,
        /// The last record there that is; if the other session ends before it, something is lost.
        last: Option<Cow<'a, str>>,
    },
    /// The dialect does not know this kind of value.
    UnknownKind(Cow<'a, str>),
    /// The value has a newer version of the format than the dialect knows.
    NewerFormat(u64),
    /// The value lacks a field that its kind needs.
    MissingField(&'static str),
}

/// What the tree needs to know of a record.
#[derive(Debug)]
pub struct Link<'a> {
    /// The JSON value that is the record: what `link` was given, or a part of it.
    pub text: &'a str,
    /// Its id; a record without one is named by its place in the file.
    pub id: Option<Cow<'a, str>>,
    /// Its parent.
    pub parent: Parent<'a>,
    /// What it is.
    pub kind: Kind,
    /// When it was written.
    pub at: Moment<'a>,
    /// It is part of a side conversation.
    pub is_sidechain: bool,
    /// It has no place in the parent chain.
    pub is_side: bool,
    /// It reports a failure of the agent, not of a tool.
    pub is_failure: bool,
    /// It has a fragment number: an identical line is not a repeat.
    pub is_numbered: bool,
}

/// The parent of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent<'a> {
    /// None: a conversation starts.
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
    /// It answers this tool call for now: another result follows.
    PreliminaryResult(Cow<'a, str>),
    /// It tells people how this tool call ended; the model may have got its result before that. See [`Dialect::late_result`].
    ///
    /// [`Dialect::late_result`]: crate::dialect::Dialect::late_result
    LateResult(Cow<'a, str>),
}

/// Facts about the session that a record states in passing.
#[derive(Debug, Default)]
pub struct SessionFacts<'a> {
    /// The session's id.
    pub session: Option<Cow<'a, str>>,
    /// The working directory.
    pub cwd: Option<Cow<'a, str>>,
    /// The git branch.
    pub git_branch: Option<Cow<'a, str>>,
    /// The operating system.
    pub platform: Option<Cow<'a, str>>,
    /// The kind of user.
    pub user_type: Option<Cow<'a, str>>,
    /// The agent's version.
    pub version: Option<Cow<'a, str>>,
    /// A model that answered.
    pub model: Option<Cow<'a, str>>,
    /// The session that this one is a sub-agent of.
    pub parent_session: Option<Cow<'a, str>>,
    /// The tool call in that session that started this one.
    pub parent_call: Option<Cow<'a, str>>,
    /// The session that this one was forked from.
    pub forked_from: Option<Cow<'a, str>>,
}

impl<'a> Link<'a> {
    /// A record of a linear dialect, without id and time.
    pub fn new(text: &'a str, kind: Kind) -> Link<'a> {
        Link {
            text,
            id: None,
            parent: Parent::Previous,
            kind,
            at: Moment::Absent,
            is_sidechain: false,
            is_side: false,
            is_failure: false,
            is_numbered: false,
        }
    }
}

impl Event<'_> {
    /// The same event without borrows. A record's text is left out: its place is known by then.
    pub(crate) fn into_owned(self) -> Event<'static> {
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
                Key::PreliminaryResult(id) => Key::PreliminaryResult(own(id)),
                Key::LateResult(id) => Key::LateResult(own(id)),
            }),
            Event::Usage { request, usage, model, cost } => {
                Event::Usage { request: request.map(own), usage, model: model.map(own), cost }
            }
            Event::CostSoFar { model, cost } => Event::CostSoFar { model: model.map(own), cost },
            Event::TotalUsage { total, last } => Event::TotalUsage { total, last },
            Event::TotalWith(total) => Event::TotalWith(total),
            Event::AnswerItem => Event::AnswerItem,
            Event::TurnStart => Event::TurnStart,
            Event::Reaction => Event::Reaction,
            Event::StateOnly => Event::StateOnly,
            Event::BeginsAnew => Event::BeginsAnew,
            Event::Peer(peer) => Event::Peer(own(peer)),
            Event::WholeMessage => Event::WholeMessage,
            Event::Rejected(why) => Event::Rejected(why),
            Event::Validate(rules) => Event::Validate(rules),
            Event::Facts(facts) => Event::Facts(SessionFacts {
                session: facts.session.map(own),
                cwd: facts.cwd.map(own),
                git_branch: facts.git_branch.map(own),
                platform: facts.platform.map(own),
                user_type: facts.user_type.map(own),
                version: facts.version.map(own),
                model: facts.model.map(own),
                parent_session: facts.parent_session.map(own),
                parent_call: facts.parent_call.map(own),
                forked_from: facts.forked_from.map(own),
            }),
            Event::Title { text, source } => Event::Title { text: own(text), source },
            Event::Summary { text, of } => Event::Summary { text: own(text), of: own(of) },
            Event::Head(id) => Event::Head(own(id)),
            Event::RewindTo(id) => Event::RewindTo(own(id)),
            Event::CutFrom(id) => Event::CutFrom(own(id)),
            Event::CutTurns(turns) => Event::CutTurns(turns),
            Event::ReplaceAll => Event::ReplaceAll,
            Event::ForkBase { session, until, last } => {
                Event::ForkBase { session: own(session), until: until.map(own), last: last.map(own) }
            }
            Event::UnknownKind(kind) => Event::UnknownKind(own(kind)),
            Event::NewerFormat(version) => Event::NewerFormat(version),
            Event::MissingField(field) => Event::MissingField(field),
        }
    }
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
