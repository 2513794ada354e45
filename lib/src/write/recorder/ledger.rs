//! The entries of a recorder: which of them are on disk, and which may be lost after a failed `sync`.

use super::{Durability, Entry, Report, Saved};
use crate::model::loss::Losses;
use crate::model::record::RecordId;

/// Counts the entries. Those that wait for more of their answer or turn are listed there; the ledger knows all others.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    last: u64,
    /// Everything up to here was on disk when the last `sync` succeeded.
    pub(super) synced_through: u64,
    /// Entries whose lines are held, or in the file although a `sync` failed since.
    in_doubt: Vec<(u64, Saved)>,
    /// The entry of the call in progress, once it is on disk.
    current: Option<Saved>,
    /// Losses of a line that belongs to no entry of its own; reported with the next one.
    unreported: Losses,
    /// `None` until somebody wants reports.
    reports: Option<Vec<Report>>,
}

impl Ledger {
    /// Starts an entry and returns its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.current = None;
        self.last += 1;
        self.last
    }

    /// Ends a call that recorded nothing: it has no entry.
    pub(super) fn cancel(&mut self) -> Entry {
        self.last -= 1;
        Entry::default()
    }

    /// Ends a call that recorded something, now or later.
    pub(super) fn end(&mut self) -> Entry {
        let saved = self.current.take().filter(|_| self.in_doubt.is_empty());
        Entry { number: self.last, saved }
    }

    /// Whether the entry of the call in progress is in the file.
    pub(super) fn is_written(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn first_in_doubt(&self) -> Option<u64> {
        self.in_doubt.iter().map(|(entry, _)| *entry).min()
    }

    /// Notes that entries are on disk; the last one is reported with the losses.
    pub(super) fn settle(&mut self, mut entries: Vec<u64>, saved: Saved, is_in_doubt: bool) {
        let Some(last) = entries.pop() else { return self.unreported.extend(saved.losses) };
        for entry in entries {
            let (id, durability) = (saved.id.clone(), saved.durability);
            self.settle_one(entry, Saved { id, durability, losses: Losses::default() }, is_in_doubt);
        }
        self.settle_one(last, saved, is_in_doubt);
    }

    /// Notes that entries are on disk; each is reported with the losses, because any of them may have caused one.
    pub(super) fn settle_with_losses(&mut self, entries: Vec<u64>, saved: &Saved, is_in_doubt: bool) {
        if entries.is_empty() {
            self.unreported.extend(saved.losses.iter().cloned());
        }
        entries.into_iter().for_each(|entry| self.settle_one(entry, saved.clone(), is_in_doubt));
    }

    fn settle_one(&mut self, entry: u64, mut saved: Saved, is_in_doubt: bool) {
        saved.losses.extend(std::mem::take(&mut self.unreported));
        let is_current = entry == self.last;
        if !is_in_doubt && self.reports.is_none() {
            // Nobody else wants to know: this is the path of most records.
            self.current = if is_current { Some(saved) } else { self.current.take() };
            return;
        }
        if is_current {
            self.current = Some(saved.clone());
        }
        if is_in_doubt {
            self.in_doubt.push((entry, saved));
        } else {
            self.report(entry, Ok(saved));
        }
    }

    /// Notes that entries can never be written.
    pub(super) fn refuse(&mut self, entries: Vec<u64>, why: &str) {
        entries.into_iter().for_each(|entry| self.report(entry, Err(why.to_owned())));
    }

    /// Notes that everything in doubt is safe.
    pub(super) fn resolve_doubt(&mut self) {
        self.in_doubt.iter_mut().for_each(|(_, saved)| saved.durability = Durability::Sync);
        self.report_held();
    }

    /// Notes that lines that were held are in the file.
    pub(super) fn report_held(&mut self) {
        std::mem::take(&mut self.in_doubt)
            .into_iter()
            .for_each(|(entry, saved)| self.report(entry, Ok(saved)));
    }

    /// The ids of entries that are held or in doubt.
    pub(super) fn ids_in_doubt(&mut self) -> impl Iterator<Item = &mut RecordId> {
        self.in_doubt.iter_mut().map(|(_, saved)| &mut saved.id)
    }

    /// What is known of an entry whose `sync` failed.
    pub(super) fn doubted(&self, entry: u64) -> Option<Saved> {
        let known = self.in_doubt.iter().find(|(known, _)| *known == entry)?;
        Some(Saved { durability: Durability::Sync, ..known.1.clone() })
    }

    pub(super) fn keeps_reports(&self) -> bool {
        self.reports.is_some()
    }

    pub(super) fn keep_reports(&mut self) {
        self.reports.get_or_insert_default();
    }

    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        self.reports.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn report(&mut self, entry: u64, result: Result<Saved, String>) {
        if let Some(reports) = &mut self.reports {
            reports.push(Report { entry, result });
        }
    }
}
