//! The output: one line of JSON for each line of the input that is not blank. A recorded line is acknowledged when it is on disk,
//! not before.

use std::collections::BTreeMap;
use std::io::Write;

use scrollback::model::loss::Loss;
use scrollback::write::recorder::{Ack, Durability, Refused, Saved};
use serde::Serialize;

use crate::failure::Failure;
use crate::render::json;

/// The lines that are not on disk yet, and the counts of the others.
#[derive(Default)]
pub(crate) struct Acks {
    session: String,
    /// By sequence number.
    waiting: BTreeMap<u64, Line>,
    /// The lines that wait for each held call, by ticket.
    held: BTreeMap<u64, Vec<u64>>,
    pub(crate) saved: u64,
    pub(crate) rejected: u64,
    /// Why nothing can be printed any more; recording continues.
    output_failure: Option<Failure>,
}

/// A line of the input, and what is on disk of it.
pub(crate) struct Line {
    seq: u64,
    losses: Vec<Loss>,
    /// Its calls that are not on disk.
    tickets: Vec<u64>,
    id: Option<String>,
    durability: Option<Durability>,
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
        Line { seq, losses, tickets: Vec::new(), id: None, durability: None }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether any of it is on disk, or will be.
    pub(crate) fn is_recorded(&self) -> bool {
        self.id.is_some() || !self.tickets.is_empty()
    }

    /// Adds the result of one of its calls.
    pub(crate) fn add(&mut self, ack: Ack) {
        match ack {
            Ack::Saved(saved) => self.add_saved(&saved),
            Ack::Held { ticket } => self.tickets.push(ticket),
            Ack::NotRecorded => {}
        }
    }

    /// Marks its calls that are on disk now.
    pub(crate) fn settle(&mut self, settled: &[Saved]) {
        for saved in settled {
            if self.tickets.contains(&saved.ticket) {
                self.add_saved(saved);
            }
        }
    }

    fn add_saved(&mut self, saved: &Saved) {
        self.tickets.retain(|ticket| *ticket != saved.ticket);
        self.losses.extend_from_slice(&saved.losses);
        (self.id, self.durability) = (Some(saved.id.0.clone()), Some(saved.durability));
    }

    /// Gives an earlier line that waited for this one the same result.
    pub(crate) fn apply_to(&self, mut earlier: Line) -> Line {
        earlier.tickets.extend_from_slice(&self.tickets);
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
        if line.tickets.is_empty() {
            return self.acknowledge(&line, out);
        }
        for ticket in &line.tickets {
            self.held.entry(*ticket).or_default().push(line.seq);
        }
        self.waiting.insert(line.seq, line);
    }

    /// Acknowledges the lines of held calls that are on disk now.
    pub(crate) fn settle(&mut self, settled: &[Saved], out: &mut dyn Write) {
        for saved in settled {
            for seq in self.held.remove(&saved.ticket).unwrap_or_default() {
                if let Some(line) = self.waiting.get_mut(&seq) {
                    line.add_saved(saved);
                }
                self.acknowledge_when_done(seq, out);
            }
        }
    }

    /// Acknowledges the lines of held calls that were discarded.
    pub(crate) fn discard(&mut self, tickets: &[u64], out: &mut dyn Write) {
        for ticket in tickets {
            for seq in self.held.remove(ticket).unwrap_or_default() {
                if let Some(line) = self.waiting.get_mut(&seq) {
                    line.tickets.retain(|held| held != ticket);
                }
                self.acknowledge_when_done(seq, out);
            }
        }
    }

    /// Rejects the lines of held calls that the format cannot store.
    pub(crate) fn reject_held(&mut self, refused: &[Refused], out: &mut dyn Write) {
        for Refused { ticket, what } in refused {
            for seq in self.held.remove(ticket).unwrap_or_default() {
                if self.waiting.remove(&seq).is_some() {
                    self.reject(seq, &format!("the format cannot store this: {what}"), out);
                }
            }
        }
    }

    /// Rejects a line.
    pub(crate) fn reject(&mut self, seq: u64, why: &str, out: &mut dyn Write) {
        self.rejected += 1;
        self.print(&Rejected { seq, error: why }, out);
    }

    /// Rejects every line that is not on disk.
    pub(crate) fn reject_rest(&mut self, why: &str, out: &mut dyn Write) {
        self.held.clear();
        for (seq, _) in std::mem::take(&mut self.waiting) {
            self.reject(seq, why, out);
        }
    }

    /// Why not everything could be printed.
    pub(crate) fn into_output_failure(self) -> Option<Failure> {
        self.output_failure
    }

    fn acknowledge_when_done(&mut self, seq: u64, out: &mut dyn Write) {
        if self.waiting.get(&seq).is_some_and(|line| line.tickets.is_empty())
            && let Some(line) = self.waiting.remove(&seq)
        {
            self.acknowledge(&line, out);
        }
    }

    fn acknowledge(&mut self, line: &Line, out: &mut dyn Write) {
        self.saved += u64::from(line.id.is_some());
        let session = std::mem::take(&mut self.session);
        let Line { seq, losses, tickets: _, id, durability } = line;
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
