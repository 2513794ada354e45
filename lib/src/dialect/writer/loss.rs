//! What a format could not hold as it was: one word for each thing, whoever tells of it, and how often.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use crate::model::message::Part;

/// One thing that a format could not hold as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What: one of [`WORDS`], or a key of the line that a program dictated.
    pub what: String,
    /// What became of it.
    pub kind: LossKind,
    /// How often.
    #[serde(skip_serializing_if = "is_once")]
    pub count: u64,
}

/// What became of something that a format could not hold as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossKind {
    /// It is not in the file.
    Dropped,
    /// It is there as something else.
    Renamed,
    /// The format asks for it and nobody said it: it was made up.
    Synthesised,
}

/// What was lost, each thing of a kind once, with its count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Losses(Vec<Loss>);

/// Every word for what can be lost, and what it stands for. docs/converting.md lists them.
pub const WORDS: &[(&str, &str)] = &[
    // Whole records.
    ("prompt", "what a person said"),
    ("answer", "what the model said"),
    ("tool result", "what a tool gave back"),
    ("context", "what the agent put before the model"),
    ("instruction", "what the model was told to be, in a record of its own"),
    ("notice", "what the agent told the person"),
    ("snapshot", "the state of files at a message"),
    ("title", "what the session is called"),
    ("compaction", "a summary that stands for what was said before"),
    ("rewind", "a step back to an earlier record"),
    ("restore", "files that were put back"),
    ("header", "what the agent notes about the session, beside the conversation"),
    ("unknown record", "a record of a kind that nobody knows"),
    ("sidechain", "a record of work beside the conversation"),
    ("another branch", "a record of a branch that is not the one converted"),
    ("empty message", "a message without words"),
    ("message inside another", "what a person said while the model was at work"),
    // Parts of a message.
    ("text", "words"),
    ("several texts", "words in several parts, which are one now"),
    ("order of parts", "which part came before which"),
    ("citations", "where words are quoted from"),
    ("thinking", "what the model thought"),
    ("file of thinking", "a file that the model made while it thought"),
    ("image", "a picture"),
    ("file", "another file"),
    ("file name", "what a file is called"),
    ("media type", "what kind a file says to be of"),
    ("attachment", "a file that was sent along in a chat"),
    ("reaction", "a sign that somebody gave to a message"),
    ("source", "a page or document that an answer rests on"),
    ("custom part", "a part that only one provider knows"),
    ("data part", "a part that only one application knows"),
    ("unknown part", "a part of a kind that nobody knows"),
    ("step", "where one response of the model ends and the next begins"),
    ("details of a part", "further facts that a part tells"),
    ("provider metadata", "facts for the model's provider: signatures, ids, encrypted content"),
    // Calls.
    ("tool call", "a call of a tool, or some of its facts"),
    ("tool name", "what the tool is called"),
    ("tool input", "what the tool was called with"),
    ("tool output", "the shape of what the tool gave back"),
    ("id of a call", "what a call is called"),
    ("call of a provider", "that the provider ran the tool itself"),
    ("details of a call", "further facts that a call tells"),
    ("state of a call", "how far a call had come"),
    ("approval", "that a person allowed a call"),
    ("denial", "that a person refused a call"),
    ("change of a call", "what was said of a call after its answer was whole"),
    ("note of a run", "what the agent noted of a tool's run"),
    ("duration", "how long a tool ran"),
    ("exit code", "what a command ended with"),
    ("preliminary result", "what a tool gave before it was done"),
    ("another result of the same call", "a second result where formats know one"),
    ("reason of a failure", "why a tool failed"),
    // What is known of a message.
    ("model", "which model answered"),
    ("usage", "how many tokens were used"),
    ("reasoning tokens", "how many of them were thinking"),
    ("cache tokens", "how many of them were put into a cache"),
    ("timestamp", "when it was said"),
    ("sender", "who said it"),
    ("role", "which side said it"),
    ("error", "that and how an answer failed"),
    ("kind of an error", "what kind of failure it was"),
    ("surroundings", "where it was said: working directory, git branch, platform, kind of user"),
    ("todos", "the task list"),
    ("thinking mode", "how hard the model was to think"),
    ("metadata", "further facts that a message tells"),
    ("field", "what a record says under a key that only its own format has"),
    // Facts of records.
    ("compaction facts", "why and when it was compacted, and how much it cut"),
    ("replaced history", "what the model was told instead of what was said before"),
    ("kept records", "which records the model is told beside a summary"),
    ("title source", "who gave the title"),
    ("reason of a rewind", "why somebody stepped back"),
    // The file.
    ("torn line", "a record that was cut off"),
    ("damaged line", "bytes that say nothing: zeros, no JSON, or too much of it"),
    ("damaged text", "characters that could not be read"),
    ("gap", "that what came before a record is missing"),
    ("interruption", "that the last turn was not over"),
    // The session.
    ("fork", "which session this one was forked from"),
    ("branch that was not compared", "one of very many branches: whether it says the same is not known"),
    ("original", "the file beside the new one, for the way back"),
    ("sub-agent session", "a session of its own, of an agent that this one started"),
    ("parent session", "the session whose agent started this one"),
    ("blobs", "other files in the session's own folder"),
    ("base", "the session that this one begins in"),
];

/// Words for what a record has at most once, however many of its parts tell that it is lost.
const ONCE: [&str; 15] = [
    "surroundings",
    "metadata",
    "sender",
    "model",
    "usage",
    "reasoning tokens",
    "cache tokens",
    "todos",
    "thinking mode",
    "error",
    "kind of an error",
    "several texts",
    "order of parts",
    "empty message",
    "fork",
];

/// What a person is told of it.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let became = match self.kind {
            LossKind::Dropped => "is not kept",
            LossKind::Renamed => "is kept as something else",
            LossKind::Synthesised => "is made up",
        };
        write!(f, "{} {became}", self.what)
    }
}

impl Loss {
    /// The word for where a message was said. A recorder fills that in: what nobody said, nobody misses.
    pub const SURROUNDINGS: &str = "surroundings";

    /// It is not in the file.
    pub fn dropped(what: &str) -> Loss {
        Loss::of(what, LossKind::Dropped)
    }

    /// It is there as something else.
    pub fn renamed(what: &str) -> Loss {
        Loss::of(what, LossKind::Renamed)
    }

    /// It was made up.
    pub fn synthesised(what: &str) -> Loss {
        Loss::of(what, LossKind::Synthesised)
    }

    pub(crate) fn of(what: &str, kind: LossKind) -> Loss {
        Loss { what: what.to_owned(), kind, count: 1 }
    }
}

impl Losses {
    /// Counts a loss.
    pub fn push(&mut self, loss: Loss) {
        let known = self.0.iter_mut().find(|known| known.what == loss.what && known.kind == loss.kind);
        match known {
            Some(_) if ONCE.contains(&loss.what.as_str()) => {}
            Some(known) => known.count = known.count.saturating_add(loss.count),
            None => self.0.push(loss),
        }
    }

    /// What was lost, in one line for people.
    pub(crate) fn words(&self) -> String {
        self.0.iter().map(|loss| loss.what.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Takes all losses of another list.
    pub fn append(&mut self, others: &mut Losses) {
        self.extend(std::mem::take(others));
    }

    pub(crate) fn dropped(&mut self, what: &str) {
        self.push(Loss::dropped(what));
    }

    pub(crate) fn renamed(&mut self, what: &str) {
        self.push(Loss::renamed(what));
    }

    pub(crate) fn synthesised(&mut self, what: &str) {
        self.push(Loss::synthesised(what));
    }

    pub(crate) fn dropped_if(&mut self, is_there: bool, what: &str) {
        if is_there {
            self.dropped(what);
        }
    }
}

impl From<Loss> for Losses {
    fn from(loss: Loss) -> Losses {
        Losses(vec![loss])
    }
}

impl Deref for Losses {
    type Target = [Loss];

    fn deref(&self) -> &[Loss] {
        &self.0
    }
}

impl IntoIterator for Losses {
    type Item = Loss;
    type IntoIter = std::vec::IntoIter<Loss>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Loss> for Losses {
    fn extend<T: IntoIterator<Item = Loss>>(&mut self, losses: T) {
        losses.into_iter().for_each(|loss| self.push(loss));
    }
}

impl FromIterator<Loss> for Losses {
    fn from_iter<T: IntoIterator<Item = Loss>>(losses: T) -> Losses {
        let mut all = Losses::default();
        all.extend(losses);
        all
    }
}

/// The word for a part.
pub(crate) fn word_for(part: &Part) -> &'static str {
    match part {
        Part::Text(_) => "text",
        Part::Reasoning(_) => "thinking",
        Part::File(file) if file.media_type.starts_with("image") => "image",
        Part::File(_) => "file",
        Part::ReasoningFile(_) => "file of thinking",
        Part::SourceUrl(_) | Part::SourceDocument(_) => "source",
        Part::Custom(_) => "custom part",
        Part::Steering(_) => "message inside another",
        Part::StepStart => "step",
        Part::Tool(_) => "tool call",
        Part::Data(data) => match data.kind.as_str() {
            "compaction" => "compaction",
            "rewind" => "rewind",
            "restore" => "restore",
            "error" => "error",
            "attachment" => "attachment",
            "reaction" => "reaction",
            _ => "data part",
        },
        Part::Other(_) => "unknown part",
    }
}

fn is_once(count: &u64) -> bool {
    *count == 1
}
