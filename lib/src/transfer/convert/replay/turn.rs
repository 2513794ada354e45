//! A turn that is held until it ends, for formats that write whole turns.

use super::{Replay, refused};
use crate::dialect::writer::WriteUnit;
use crate::model::error::Result;
use crate::model::loss::LossKind;
use crate::model::record::{Body, Content, Kind};
use crate::session::RecordRef;

impl<'s> Replay<'s> {
    /// Takes the results out of a record that also has text: if a turn is one message, they belong to it and the text ends it.
    pub(super) fn results_beside_text(&self, body: &mut Body) -> Option<Body> {
        let (Body::User(content) | Body::Attachment(content)) = body else { return None };
        if self.unit != WriteUnit::Turn || content.results.is_empty() {
            return None;
        }
        let (results, context) = (std::mem::take(&mut content.results), content.context.clone());
        Some(Body::ToolResult(Content { results, context, ..Content::default() }))
    }

    /// Adds a part of a record to the turn that is held.
    pub(super) fn add_to_turn(&mut self, of: RecordRef<'s>, body: Body) -> Result<()> {
        if body.content().is_some_and(|content| content.parts.is_empty() && content.results.is_empty()) {
            return Ok(());
        }
        match self.recorder.record(body) {
            Ok(entry) => match entry.saved {
                Some(saved) => self.note(&of.id(), saved),
                None if self.held.is_empty() => self.held.push(of),
                None => {}
            },
            Err(error) => self.refuse(of, error, Kind::ToolResult)?,
        }
        Ok(())
    }

    /// Writes the turn that is held, with the id and the time of its first record.
    pub(super) fn end_turn(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let Some(first) = held.first().copied() else { return Ok(()) };
        self.host.turn_to(first, first);
        match self.recorder.end_turn() {
            Ok(saved) => {
                saved.into_iter().for_each(|saved| self.note(&first.id(), saved));
                self.out.has_content = true;
                self.follow(first);
            }
            Err(error) => {
                refused(error)?;
                held.iter().for_each(|record| self.lose(*record, LossKind::Dropped, record.kind()));
            }
        }
        self.keep_tip(&held);
        Ok(())
    }
}

/// Whether a turn continues with a record: as a part of it, or because the record is no part of the conversation.
pub(super) fn continues_turn(kind: Kind) -> bool {
    kind.is_about_session() || matches!(kind, Kind::Assistant | Kind::ToolResult | Kind::Other)
}
