//! Texts and reasoning of a chunk stream. Several may be open at once: the first is recorded as it comes, the others wait for it.

use scrollback::model::{Part, ReasoningPart, TextPart};
use scrollback::write::Delta;
use serde_json::{Map, Value};

use super::ai_sdk_chunks::without_start;
use super::fields::Fields;
use super::{Op, Parsed, Refused};

/// How many texts may be open at once: a provider has one or two.
const OPEN_LIMIT: usize = 1_000;

/// The open texts, in the order in which they began.
#[derive(Default)]
pub(super) struct Texts {
    open: Vec<Open>,
    before: Before,
}

/// How the texts were before the last line.
#[derive(Default)]
enum Before {
    /// The line did not change them.
    #[default]
    Same,
    /// It continued one of them. What waits of it may be long, and is not copied for each piece.
    Continued { at: usize, waiting: usize, has_begun: bool, metadata: Option<Map<String, Value>> },
    /// It began or ended some.
    Others(Vec<Open>),
}

#[derive(Clone)]
struct Open {
    id: String,
    is_reasoning: bool,
    /// What waits for the text before it to end.
    waiting: String,
    has_begun: bool,
    has_ended: bool,
    metadata: Option<Map<String, Value>>,
}

impl Texts {
    /// Forgets what is needed to undo the line before.
    pub(super) fn begin_line(&mut self) {
        self.before = Before::Same;
    }

    /// Undoes the last line.
    pub(super) fn undo(&mut self) {
        std::mem::take(&mut self.before).restore(&mut self.open);
    }

    /// Remembers all texts, unless the line changed them already.
    fn remember(&mut self) {
        if !matches!(self.before, Before::Others(_)) {
            let mut open = self.open.clone();
            std::mem::take(&mut self.before).restore(&mut open);
            self.before = Before::Others(open);
        }
    }

    /// Forgets all texts.
    pub(super) fn discard(&mut self) {
        self.remember();
        self.open.clear();
    }

    pub(super) fn begin(&mut self, is_reasoning: bool, mut fields: Fields) -> Result<(), Refused> {
        self.remember();
        let id = fields.needed(&["id"])?;
        if self.open.len() >= OPEN_LIMIT {
            return Err(Refused(format!("{OPEN_LIMIT} texts are open already")));
        }
        // The same id again ends the earlier text.
        if let Some(open) = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)) {
            open.has_ended = true;
        }
        let metadata = fields.object(&["providerMetadata"])?;
        self.open
            .push(Open { id, is_reasoning, waiting: String::new(), has_begun: false, has_ended: false, metadata });
        Ok(())
    }

    pub(super) fn add(&mut self, is_reasoning: bool, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let (id, delta) = (fields.needed(&["id"])?, fields.needed(&["delta"])?);
        let metadata = fields.object(&["providerMetadata"])?;
        if !self.open.iter().any(|open| open.is(is_reasoning, &id)) {
            return Err(without_start(&id));
        }
        if self.open.first().is_some_and(|open| open.has_ended) {
            self.remember();
        }
        self.release_ended(parsed);
        let mut open = self.open.iter_mut().enumerate();
        let Some((at, open)) = open.find(|(_, open)| open.is(is_reasoning, &id)) else { return Ok(()) };
        if let Before::Same = self.before {
            let (waiting, metadata) = (open.waiting.len(), open.metadata.clone());
            self.before = Before::Continued { at, waiting, has_begun: open.has_begun, metadata };
        }
        open.metadata = metadata.or(open.metadata.take());
        if at > 0 {
            open.waiting.push_str(&delta);
            parsed.waits = true;
            return Ok(());
        }
        open.has_begun |= !delta.is_empty();
        if !delta.is_empty() {
            parsed.push(piece(is_reasoning, delta));
        }
        Ok(())
    }

    pub(super) fn end(&mut self, is_reasoning: bool, mut fields: Fields, parsed: &mut Parsed) -> Result<(), Refused> {
        let id = fields.needed(&["id"])?;
        let metadata = fields.object(&["providerMetadata"])?;
        self.remember();
        let open = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)).ok_or_else(|| without_start(&id))?;
        open.metadata = metadata.or(open.metadata.take());
        open.has_ended = true;
        if fields.any(&["citations"]).is_some() {
            parsed.lose("citations");
        }
        self.release_ended(parsed);
        Ok(())
    }

    /// Records texts that have ended, and what waited for them.
    fn release_ended(&mut self, parsed: &mut Parsed) {
        while self.open.first().is_some_and(|open| open.has_ended) {
            self.open.remove(0).record(parsed);
            if let Some(next) = self.open.first_mut().filter(|next| !next.waiting.is_empty()) {
                next.has_begun = true;
                parsed.push(piece(next.is_reasoning, std::mem::take(&mut next.waiting)));
            }
        }
    }

    /// Ends every text.
    pub(super) fn end_all(&mut self, parsed: &mut Parsed) {
        self.remember();
        std::mem::take(&mut self.open).into_iter().for_each(|text| text.record(parsed));
    }

    /// Whether a text waits for another one to end.
    pub(super) fn has_waiting(&self) -> bool {
        self.open.iter().any(|open| !open.waiting.is_empty())
    }
}

impl Before {
    fn restore(self, texts: &mut Vec<Open>) {
        match self {
            Before::Same => {}
            Before::Continued { at, waiting, has_begun, metadata } => {
                if let Some(open) = texts.get_mut(at) {
                    open.waiting.truncate(waiting);
                    (open.has_begun, open.metadata) = (has_begun, metadata);
                }
            }
            Before::Others(open) => *texts = open,
        }
    }
}

impl Open {
    fn is(&self, is_reasoning: bool, id: &str) -> bool {
        !self.has_ended && self.is_reasoning == is_reasoning && self.id == id
    }

    /// Records what waits of a text, and its end.
    fn record(self, parsed: &mut Parsed) {
        if self.has_begun || !self.waiting.is_empty() {
            parsed.ops.extend((!self.waiting.is_empty()).then(|| piece(self.is_reasoning, self.waiting)));
            parsed.push(Op::Delta(Delta::End(self.metadata)));
        } else if self.metadata.is_some() {
            // Hidden reasoning has no text.
            let (text, provider_metadata) = (String::new(), self.metadata);
            parsed.push(Op::Delta(Delta::Part(if self.is_reasoning {
                Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
            } else {
                Part::Text(TextPart { text, provider_metadata, ..TextPart::default() })
            })));
        }
    }
}

fn piece(is_reasoning: bool, text: String) -> Op {
    Op::Delta(if is_reasoning { Delta::Reasoning(text) } else { Delta::Text(text) })
}
