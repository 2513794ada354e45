//! A second try after a failed `sync`.

use super::{Ack, Durability, Recorder, Saved, Unsaved};
use crate::model::error::{Error, Result};

impl Recorder {
    /// Makes a call and, when its `sync` fails ([`Error::Unsaved`]), saves what was written once more at once. The call itself
    /// is repeated only when nothing of it is in the file. After an error nothing of it is recorded; after a second
    /// [`Error::Unsaved`] its record is in the file, may not survive a crash, and is saved before the next call.
    pub fn retry(&mut self, mut call: impl FnMut(&mut Recorder) -> Result<Ack>) -> Result<Ack> {
        if self.is_in_doubt() {
            self.reopen()?;
        }
        let (last_ticket, was_answering) = (self.tickets.last(), self.is_answering());
        let result = call(self);
        let Err(Error::Unsaved { .. }) = result else { return result };
        let unsaved = self.unsaved();
        let (ticket, is_new) = (self.tickets.last(), self.tickets.last() > last_ticket);
        let is_held = |unsaved: &Unsaved| is_new && unsaved.ticket == ticket && unsaved.id.is_none();
        let is_held = unsaved.iter().any(is_held);
        // A call that ends an answer may have written nothing itself.
        let has_ended = is_new && was_answering && !self.is_answering();
        let is_own = |unsaved: &Unsaved| unsaved.id.is_some() && (has_ended || is_new && unsaved.ticket == ticket);
        let written = unsaved.into_iter().rfind(is_own);
        self.reopen()?;
        match written {
            _ if is_held => Ok(Ack::Held { ticket }),
            Some(Unsaved { id: Some(id), losses, .. }) => {
                Ok(Ack::Saved(Saved { ticket, id, durability: Durability::Sync, losses }))
            }
            _ => call(self),
        }
    }
}
