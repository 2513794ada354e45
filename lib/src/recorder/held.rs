//! What is not written yet: a turn of a format that writes only whole ones; and what is added to the message before.

use super::log::{On, Piece};
use super::turn::Turn;
use super::{Ack, Durability, Mode, Recorder, Refused, Saved};
use crate::error::{Error, Result};
use crate::record::{Body, Kind, RecordId, Said};
use crate::writing::Fragment;

impl Recorder {
    /// Writes a turn that will not be finished.
    pub fn end_turn(&mut self) -> Result<()> {
        self.end_answer()?;
        // A log that refuses everything refuses this turn too, and it stays held.
        if let Some(log) = self.log.as_ref().filter(|_| self.turn.is_some()) {
            log.check()?;
        }
        let Some((turn, tickets)) = self.turn.take() else { return Ok(()) };
        let body = turn.into_body();
        let ticket = tickets.last().copied().unwrap_or_default();
        match self.write(vec![Piece::next(body.clone())], ticket, Durability::Sync) {
            Ok(Ack::Saved(saved)) => {
                self.settled.extend(tickets.into_iter().map(|ticket| Saved { ticket, ..saved.clone() }));
                Ok(())
            }
            Ok(Ack::Held { .. } | Ack::NotRecorded) => Ok(()),
            Err(error @ Error::Unsaved { .. }) => {
                // It is written: what is missing is the sync.
                let id = self.head().cloned().unwrap_or_else(|| RecordId(String::new()));
                self.unsettled.extend(tickets.into_iter().map(|ticket| (ticket, id.clone())));
                Err(error)
            }
            Err(Error::CannotHold { dialect, what }) => {
                let refused = |ticket| Refused { ticket, what: what.clone() };
                self.refused.extend(tickets.into_iter().map(refused));
                Err(Error::CannotHold { dialect, what })
            }
            Err(error) => {
                self.turn = Some((Turn::of(body), tickets));
                Err(error)
            }
        }
    }

    pub(super) fn record_in_turn(&mut self, body: Body, ticket: u64) -> Result<Ack> {
        let mut held = |add: &dyn Fn(&mut Turn)| {
            let (turn, tickets) = self.turn.get_or_insert_default();
            add(turn);
            tickets.push(ticket);
        };
        match body {
            Body::Assistant(said) => held(&|turn| turn.answer(said.clone())),
            Body::ToolResult(said) => held(&|turn| turn.results(said.clone())),
            // They say something about the session, not in the conversation.
            body @ (Body::Title(_) | Body::Snapshot(_) | Body::Header(_)) => {
                let durability = Durability::of(&body);
                return self.write(vec![Piece::next(body)], ticket, durability);
            }
            body @ (Body::User(_)
            | Body::Attachment(_)
            | Body::System(_)
            | Body::Compaction(_)
            | Body::Rewind(_)
            | Body::Restore(_)
            | Body::Other(_)) => {
                match self.end_turn() {
                    // What the turn before could not be written as is no reason against this record.
                    Ok(()) | Err(Error::CannotHold { .. }) => {}
                    Err(error) => return Err(error),
                }
                let durability = Durability::of(&body);
                return self.write(vec![Piece::next(body)], ticket, durability);
            }
        }
        // What is said again is known to go on until somebody else speaks.
        let is_live = self.log.as_ref().is_some_and(|log| log.place.mode == Mode::Live);
        if is_live && self.turn.as_ref().is_some_and(|(turn, _)| turn.is_over()) {
            let before = self.settled.len();
            self.end_turn()?;
            let own = self.settled.iter().skip(before).position(|saved| saved.ticket == ticket);
            if let Some(own) = own {
                return Ok(Ack::Saved(self.settled.remove(before + own)));
            }
        }
        Ok(Ack::Held { ticket })
    }

    /// Facts that belong to the message that was said last: a further piece of it, or a notice without words.
    pub(super) fn add_to_message(&mut self, said: Said) -> Result<Ack> {
        self.end_answer()?;
        let ticket = self.next_ticket();
        if let Some((turn, tickets)) = &mut self.turn {
            turn.know(said);
            tickets.push(ticket);
            return Ok(Ack::Held { ticket });
        }
        let Some(log) = &mut self.log else { return Ok(Ack::NotRecorded) };
        let tip = log.start.chain.tip.clone().filter(|_| log.joins());
        let body = tip.as_ref().and_then(|tip| match tip.kind {
            Kind::User => Some(Body::User(said.clone())),
            Kind::Assistant => Some(Body::Assistant(said.clone())),
            Kind::ToolResult => Some(Body::ToolResult(said.clone())),
            Kind::System => Some(Body::System(said.clone())),
            Kind::Attachment
            | Kind::Snapshot
            | Kind::Title
            | Kind::Compaction
            | Kind::Rewind
            | Kind::Restore
            | Kind::Header
            | Kind::Other => None,
        });
        let piece = match (body, tip) {
            (Some(body), Some(tip)) => {
                let fragment = Some(Fragment { seq: tip.lines, part: tip.lines });
                Piece { body, on: On::Again(tip), fragment }
            }
            _ => Piece::next(Body::System(said)),
        };
        self.write(vec![piece], ticket, Durability::Flush)
    }
}
