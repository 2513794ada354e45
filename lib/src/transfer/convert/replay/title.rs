//! What a session is called, said once: of several titles the one that counts, wherever the source keeps it.

use super::Replay;
use crate::model::error::Result;
use crate::model::loss::LossKind;
use crate::model::record::{Body, Kind, Title};
use crate::session::{RecordRef, Session};
use crate::write::recorder::Entry;

/// The title that counts, and whether it was said.
#[derive(Default)]
pub(super) struct Called {
    title: Option<Title>,
    is_said: bool,
}

impl Called {
    pub(super) fn of(session: &Session) -> Called {
        Called { title: session.title().cloned(), is_said: false }
    }

    /// Whether this is the title that counts, whoever gave it.
    fn is(&self, text: &str) -> bool {
        self.title.as_ref().is_some_and(|title| title.text == text)
    }
}

/// The record that says the title that counts; none where it stands beside the log.
pub(super) fn title_record(session: &Session) -> Result<Option<RecordRef<'_>>> {
    let Some(title) = session.title() else { return Ok(None) };
    let mut found = None;
    for record in session.records().filter(|record| record.kind() == Kind::Title) {
        if matches!(record.body()?, Body::Title(content) if content == *title) {
            found = Some(record);
        }
    }
    Ok(found)
}

impl<'s> Replay<'s> {
    /// Whether a title is to be said now. Another one than that which counts says nothing any more.
    pub(super) fn takes_title(&mut self, record: RecordRef<'s>, title: &Title) -> bool {
        if !self.called.is(&title.text) {
            self.lose(record, LossKind::Dropped, Kind::Title);
            return false;
        }
        let is_it = self.called.title.as_ref() == Some(title) && !self.called.is_said;
        self.called.is_said |= is_it;
        is_it
    }

    /// A title that is not said: the loss of one that does not count.
    pub(super) fn leave_title(&mut self, record: RecordRef<'s>) -> Result<()> {
        match record.body()? {
            Body::Title(title) if self.called.is(&title.text) => {}
            _ => self.lose(record, LossKind::Dropped, Kind::Title),
        }
        Ok(())
    }

    /// Says the title that counts, where no record did.
    pub(super) fn end_with_title(&mut self, head: Option<RecordRef<'s>>) -> Result<()> {
        self.end_turn()?;
        let (Some(head), false) = (head, self.called.is_said) else { return Ok(()) };
        let Some(title) = self.called.title.clone() else { return Ok(()) };
        self.called.is_said = true;
        self.host.add_to(head, head);
        if let Some(tip) = self.parents.get(&head.order()).cloned() {
            self.branch_from(Some(tip), head);
        }
        match self.recorder.record(Body::Title(title)) {
            Ok(Entry { saved: Some(saved), .. }) => {
                self.note(&head.id(), saved);
                self.follow(head);
                self.keep_tip(&[head]);
            }
            Ok(Entry { saved: None, .. }) => {}
            Err(error) => self.refuse(head, error, Kind::Title)?,
        }
        Ok(())
    }
}
