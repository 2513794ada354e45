//! The current title of a session: of several titles only this one is written, once, wherever the source has it.

use super::Replay;
use crate::model::error::Result;
use crate::model::loss::{LossKind, Lost};
use crate::model::record::{Body, Kind, Title};
use crate::session::{RecordRef, Session};
use crate::write::recorder::Entry;

/// The current title, and whether it was written.
#[derive(Default)]
pub(super) struct CurrentTitle {
    title: Option<Title>,
    is_written: bool,
}

impl CurrentTitle {
    pub(super) fn of(session: &Session) -> CurrentTitle {
        CurrentTitle { title: session.title().cloned(), is_written: false }
    }

    /// Whether this is the current title, whatever its source is.
    fn is(&self, text: &str) -> bool {
        self.title.as_ref().is_some_and(|title| title.text == text)
    }
}

/// The record with the current title; none if only a sidecar has it.
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
    /// Whether a title is to be written now. Only the current one is.
    pub(super) fn takes_title(&mut self, record: RecordRef<'s>, title: &Title) -> bool {
        if !self.title.is(&title.text) {
            self.lose(record, LossKind::Dropped, Lost::OtherTitle);
            return false;
        }
        let is_current = self.title.title.as_ref() == Some(title) && !self.title.is_written;
        self.title.is_written |= is_current;
        is_current
    }

    /// Leaves a title out; if it is not the current one, it is lost.
    pub(super) fn leave_title(&mut self, record: RecordRef<'s>) -> Result<()> {
        match record.body()? {
            Body::Title(title) if self.title.is(&title.text) => {}
            _ => self.lose(record, LossKind::Dropped, Lost::OtherTitle),
        }
        Ok(())
    }

    /// Writes the current title, if no record did.
    pub(super) fn end_with_title(&mut self, head: Option<RecordRef<'s>>) -> Result<()> {
        self.end_turn()?;
        let (Some(head), false) = (head, self.title.is_written) else { return Ok(()) };
        let Some(title) = self.title.title.clone() else { return Ok(()) };
        self.title.is_written = true;
        self.host.add_to(head, head);
        if let Some(tip) = self.parents.get(&head.order()).cloned() {
            self.branch_from(Some(tip), head);
        }
        let before = self.recorder.head().cloned();
        match self.recorder.record(Body::Title(title)) {
            Ok(Entry { saved: Some(saved), .. }) => {
                self.note(&head.id(), saved);
                // Where a title is no link of the conversation, the file still ends in the record that was written before.
                if self.recorder.head() != before.as_ref() {
                    self.follow(head);
                    self.keep_tip(&[head]);
                }
            }
            Ok(Entry { saved: None, .. }) => {}
            Err(error) => self.refuse(head, error, Kind::Title)?,
        }
        Ok(())
    }
}
