//! Texts and thoughts of a stream. Several may go on at once: the first is written as it comes, the others wait for it.

use serde_json::{Map, Value};

use super::chunks::without_start;
use super::fields::Fields;
use super::{Heard, Refused, Saying};
use crate::model::message::{Part, ReasoningPart, TextPart};
use crate::write::recorder::Delta;

/// How many texts may be open at once: a provider has one or two.
const OPEN_LIMIT: usize = 1_000;

/// Texts that go on.
#[derive(Default)]
pub(super) struct Texts {
    open: Vec<Open>,
}

struct Open {
    id: String,
    is_reasoning: bool,
    /// What waits until the text before it has ended.
    waiting: String,
    /// Some of it was said.
    begun: bool,
    ended: bool,
    about: Option<Map<String, Value>>,
}

impl Texts {
    /// A text begins.
    pub(super) fn begin(&mut self, is_reasoning: bool, mut fields: Fields) -> Result<(), Refused> {
        let id = fields.needed(&["id"])?;
        if self.open.len() >= OPEN_LIMIT {
            return Err(Refused(format!("{OPEN_LIMIT} texts are open already")));
        }
        // A text of this id that never ended ends here.
        if let Some(open) = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)) {
            open.ended = true;
        }
        let about = fields.object(&["providerMetadata"])?;
        self.open.push(Open { id, is_reasoning, waiting: String::new(), begun: false, ended: false, about });
        Ok(())
    }

    /// It goes on.
    pub(super) fn go_on(&mut self, is_reasoning: bool, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let (id, delta) = (fields.needed(&["id"])?, fields.needed(&["delta"])?);
        let about = fields.object(&["providerMetadata"])?;
        if !self.open.iter().any(|open| open.is(is_reasoning, &id)) {
            return Err(without_start(&id));
        }
        self.let_ended_ones_go(heard);
        let mut open = self.open.iter_mut().enumerate();
        let Some((at, open)) = open.find(|(_, open)| open.is(is_reasoning, &id)) else { return Ok(()) };
        open.about = about.or(open.about.take());
        if at > 0 {
            open.waiting.push_str(&delta);
            heard.waits = true;
            return Ok(());
        }
        open.begun |= !delta.is_empty();
        if !delta.is_empty() {
            heard.say(piece(is_reasoning, delta));
        }
        Ok(())
    }

    /// It ends.
    pub(super) fn end(&mut self, is_reasoning: bool, mut fields: Fields, heard: &mut Heard) -> Result<(), Refused> {
        let id = fields.needed(&["id"])?;
        let about = fields.object(&["providerMetadata"])?;
        let open = self.open.iter_mut().find(|open| open.is(is_reasoning, &id)).ok_or_else(|| without_start(&id))?;
        open.about = about.or(open.about.take());
        open.ended = true;
        if fields.any(&["citations"]).is_some() {
            heard.lose("citations");
        }
        self.let_ended_ones_go(heard);
        Ok(())
    }

    /// Writes texts that have ended, and what waited for them.
    fn let_ended_ones_go(&mut self, heard: &mut Heard) {
        while self.open.first().is_some_and(|open| open.ended) {
            self.open.remove(0).write(heard);
            if let Some(next) = self.open.first_mut().filter(|next| !next.waiting.is_empty()) {
                next.begun = true;
                heard.say(piece(next.is_reasoning, std::mem::take(&mut next.waiting)));
            }
        }
    }

    /// Nothing goes on any more.
    pub(super) fn end_all(&mut self, heard: &mut Heard) {
        std::mem::take(&mut self.open).into_iter().for_each(|text| text.write(heard));
    }

    /// Whether words wait for another text to end.
    pub(super) fn hold_back(&self) -> bool {
        self.open.iter().any(|open| !open.waiting.is_empty())
    }
}

impl Open {
    fn is(&self, is_reasoning: bool, id: &str) -> bool {
        !self.ended && self.is_reasoning == is_reasoning && self.id == id
    }

    /// Writes what waits of a text, and its end.
    fn write(self, heard: &mut Heard) {
        if self.begun || !self.waiting.is_empty() {
            heard.sayings.extend((!self.waiting.is_empty()).then(|| piece(self.is_reasoning, self.waiting)));
            heard.say(Saying::Delta(Delta::End(self.about)));
        } else if self.about.is_some() {
            // A thought that a provider hides has no words.
            let (text, provider_metadata) = (String::new(), self.about);
            heard.say(Saying::Delta(Delta::Part(if self.is_reasoning {
                Part::Reasoning(ReasoningPart { text, provider_metadata, ..ReasoningPart::default() })
            } else {
                Part::Text(TextPart { text, provider_metadata, ..TextPart::default() })
            })));
        }
    }
}

fn piece(is_reasoning: bool, text: String) -> Saying {
    Saying::Delta(if is_reasoning { Delta::Reasoning(text) } else { Delta::Text(text) })
}
