//! The output: one line of JSON for each line of the input that is not blank. A recorded line is acknowledged when it is on disk,
//! not before.

use std::collections::BTreeMap;
use std::io::Write;

use scrollback::model::Loss;
use scrollback::write::{Durability, Entry, Report, Saved};
use serde::Serialize;

use crate::failure::Failure;
use crate::render::json;

/// The lines that are not on disk yet, and the counts of the others.
#[derive(Default)]
pub(crate) struct Acks {
    session: String,
    /// By sequence number.
    waiting: BTreeMap<u64, Line>,
    /// The lines that wait for each entry of the recorder.
    by_entry: BTreeMap<u64, Vec<u64>>,
    pub(crate) saved: u64,
    pub(crate) rejected: u64,
    /// Why nothing can be printed any more; recording continues.
    output_failure: Option<Failure>,
}

/// A line of the input, and what is on disk of it.
pub(crate) struct Line {
    seq: u64,
    losses: Vec<Loss>,
    /// Its entries of the recorder that are not on disk.
    entries: Vec<u64>,
    id: Option<String>,
    durability: Option<Durability>,
    /// Why the format cannot store it.
    refusal: Option<String>,
}

/// The acknowledgement of a line; without an id when the line recorded nothing.
#[derive(Serialize)]
struct Acknowledged<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    durability: Option<Durability>,
    #[serde(skip_serializing_if = "<[Loss]>::is_empty")]
    losses: &'a [Loss],
}

#[derive(Serialize)]
struct Rejected<'a> {
    seq: u64,
    error: &'a str,
}

impl Line {
    pub(crate) fn new(seq: u64, losses: Vec<Loss>) -> Line {
        Line { seq, losses, entries: Vec::new(), id: None, durability: None, refusal: None }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether any of it is on disk, or will be.
    pub(crate) fn is_recorded(&self) -> bool {
        self.id.is_some() || !self.entries.is_empty()
    }

    /// Adds one of its entries.
    pub(crate) fn add(&mut self, entry: &Entry) {
        self.entries.extend((entry.number > 0).then_some(entry.number));
    }

    /// Notes what became of one of its entries.
    pub(crate) fn report(&mut self, report: &Report) {
        if !self.entries.contains(&report.entry) {
            return;
        }
        self.entries.retain(|entry| *entry != report.entry);
        match &report.result {
            Ok(Saved { id, durability, losses }) => {
                self.losses.extend_from_slice(losses);
                (self.id, self.durability) = (Some(id.0.clone()), Some(*durability));
            }
            Err(why) => self.refusal = Some(format!("the format cannot store this: {why}")),
        }
    }

    /// Forgets an entry that the input itself discarded.
    pub(crate) fn discard(&mut self, entry: u64) {
        self.entries.retain(|own| *own != entry);
    }

    /// Gives an earlier line that waited for this one the same result.
    pub(crate) fn apply_to(&self, mut earlier: Line) -> Line {
        earlier.entries.extend_from_slice(&self.entries);
        earlier.id = self.id.clone().or(earlier.id);
        earlier.durability = self.durability.or(earlier.durability);
        earlier
    }
}

impl Acks {
    pub(crate) fn set_session(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    /// Acknowledges a line when it is on disk, at once or later.
    pub(crate) fn add(&mut self, line: Line, out: &mut dyn Write) {
        for entry in &line.entries {
            self.by_entry.entry(*entry).or_default().push(line.seq);
        }
        let seq = line.seq;
        self.waiting.insert(seq, line);
        self.answer_when_done(seq, out);
    }

    /// Answers the lines that are on disk now, or that the format cannot store.
    pub(crate) fn report(&mut self, reports: &[Report], out: &mut dyn Write) {
        for report in reports {
            for seq in self.by_entry.remove(&report.entry).unwrap_or_default() {
                self.waiting.get_mut(&seq).into_iter().for_each(|line| line.report(report));
                self.answer_when_done(seq, out);
            }
        }
    }

    /// Acknowledges the lines of entries that the input itself discarded: they recorded nothing.
    pub(crate) fn discard(&mut self, entry: u64, out: &mut dyn Write) {
        for seq in self.by_entry.remove(&entry).unwrap_or_default() {
            self.waiting.get_mut(&seq).into_iter().for_each(|line| line.discard(entry));
            self.answer_when_done(seq, out);
        }
    }

    /// Rejects a line.
    pub(crate) fn reject(&mut self, seq: u64, why: &str, out: &mut dyn Write) {
        self.rejected += 1;
        self.print(&Rejected { seq, error: why }, out);
    }

    /// Rejects every line that is not on disk.
    pub(crate) fn reject_rest(&mut self, why: &str, out: &mut dyn Write) {
        self.by_entry.clear();
        for (seq, _) in std::mem::take(&mut self.waiting) {
            self.reject(seq, why, out);
        }
    }

    /// Why not everything could be printed.
    pub(crate) fn into_output_failure(self) -> Option<Failure> {
        self.output_failure
    }

    fn answer_when_done(&mut self, seq: u64, out: &mut dyn Write) {
        let is_done = |line: &Line| line.entries.is_empty() || line.refusal.is_some();
        if !self.waiting.get(&seq).is_some_and(is_done) {
            return;
        }
        let Some(line) = self.waiting.remove(&seq) else { return };
        match &line.refusal {
            Some(why) => self.reject(seq, why, out),
            None => self.acknowledge(&line, out),
        }
    }

    fn acknowledge(&mut self, line: &Line, out: &mut dyn Write) {
        self.saved += u64::from(line.id.is_some());
        let session = std::mem::take(&mut self.session);
        let Line { seq, losses, id, durability, .. } = line;
        let ack = Acknowledged { seq: *seq, id: id.as_deref(), session: &session, durability: *durability, losses };
        self.print(&ack, out);
        self.session = session;
    }

    fn print(&mut self, line: &impl Serialize, out: &mut dyn Write) {
        if self.output_failure.is_some() {
            return;
        }
        let mut print = || -> Result<(), Failure> {
            json::compact(out, line)?;
            writeln!(out)?;
            Ok(out.flush()?)
        };
        self.output_failure = print().err();
    }
}
