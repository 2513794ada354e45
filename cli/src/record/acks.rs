//! Answers: one line of JSON for each line of the input that is not blank. What was recorded is acknowledged when it is on disk
//! and not before.

use std::collections::BTreeMap;
use std::io::Write;

use scrollback::dialect::writer::Loss;
use scrollback::write::recorder::{Ack, Durability, Refused, Saved};
use serde::Serialize;

use crate::failure::Failure;
use crate::render::json;

/// Lines that wait for the disk, and how many were refused.
#[derive(Default)]
pub(crate) struct Acks {
    session: String,
    /// By their number.
    waiting: BTreeMap<u64, Line>,
    /// Which lines wait for a held call.
    held: BTreeMap<u64, Vec<u64>>,
    pub(crate) saved: u64,
    pub(crate) refused: u64,
    /// Why nothing is printed any more. The records are worth more than their acknowledgements: recording goes on.
    unheard: Option<Failure>,
}

/// One line of the input, as far as it is on disk.
pub(crate) struct Line {
    seq: u64,
    losses: Vec<Loss>,
    /// Calls that are held.
    tickets: Vec<u64>,
    id: Option<String>,
    durability: Option<Durability>,
}

/// A line without an id recorded nothing: it frames what others say.
#[derive(Serialize)]
struct Answered<'a> {
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
struct NotSaved<'a> {
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

    /// Whether something of it is on disk, or will be.
    pub(crate) fn is_recorded(&self) -> bool {
        self.id.is_some() || !self.tickets.is_empty()
    }

    /// Notes what came of one of its calls.
    pub(crate) fn note(&mut self, ack: Ack) {
        match ack {
            Ack::Saved(saved) => self.note_saved(&saved),
            Ack::Held { ticket } => self.tickets.push(ticket),
            Ack::NotRecorded => {}
        }
    }

    /// Learns which of its held calls are on disk.
    pub(crate) fn settle(&mut self, settled: &[Saved]) {
        for saved in settled {
            if self.tickets.contains(&saved.ticket) {
                self.note_saved(saved);
            }
        }
    }

    fn note_saved(&mut self, saved: &Saved) {
        self.tickets.retain(|ticket| *ticket != saved.ticket);
        self.losses.extend_from_slice(&saved.losses);
        (self.id, self.durability) = (Some(saved.id.0.clone()), Some(saved.durability));
    }

    /// The same, for a line that said its part before this one.
    pub(crate) fn also(&self, mut earlier: Line) -> Line {
        earlier.tickets.extend_from_slice(&self.tickets);
        earlier.id = self.id.clone().or(earlier.id);
        earlier.durability = self.durability.or(earlier.durability);
        earlier
    }
}

impl Acks {
    pub(crate) fn of_session(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    /// Answers a line that is on disk, or remembers it until it is.
    pub(crate) fn add(&mut self, line: Line, out: &mut dyn Write) {
        if line.tickets.is_empty() {
            return self.answer(&line, out);
        }
        for ticket in &line.tickets {
            self.held.entry(*ticket).or_default().push(line.seq);
        }
        self.waiting.insert(line.seq, line);
    }

    /// Learns that held calls are on disk.
    pub(crate) fn settle(&mut self, settled: &[Saved], out: &mut dyn Write) {
        for saved in settled {
            for seq in self.held.remove(&saved.ticket).unwrap_or_default() {
                if let Some(line) = self.waiting.get_mut(&seq) {
                    line.note_saved(saved);
                }
                self.answer_when_done(seq, out);
            }
        }
    }

    /// Learns that held calls were taken back: nothing of them is on disk, and nothing is missing.
    pub(crate) fn take_back(&mut self, tickets: &[u64], out: &mut dyn Write) {
        for ticket in tickets {
            for seq in self.held.remove(ticket).unwrap_or_default() {
                if let Some(line) = self.waiting.get_mut(&seq) {
                    line.tickets.retain(|held| held != ticket);
                }
                self.answer_when_done(seq, out);
            }
        }
    }

    /// Tells of held calls that the format has no place for.
    pub(crate) fn refuse_held(&mut self, refused: &[Refused], out: &mut dyn Write) {
        for Refused { ticket, what } in refused {
            for seq in self.held.remove(ticket).unwrap_or_default() {
                if self.waiting.remove(&seq).is_some() {
                    self.refuse(seq, &format!("the format cannot store this: {what}"), out);
                }
            }
        }
    }

    /// Tells that a line was refused or could not be written.
    pub(crate) fn refuse(&mut self, seq: u64, why: &str, out: &mut dyn Write) {
        self.refused += 1;
        self.say(&NotSaved { seq, error: why }, out);
    }

    /// Tells of all that still waits that it was not saved.
    pub(crate) fn refuse_rest(&mut self, why: &str, out: &mut dyn Write) {
        self.held.clear();
        for (seq, _) in std::mem::take(&mut self.waiting) {
            self.refuse(seq, why, out);
        }
    }

    /// How it went: whether everything could be told.
    pub(crate) fn unheard(self) -> Option<Failure> {
        self.unheard
    }

    fn answer_when_done(&mut self, seq: u64, out: &mut dyn Write) {
        if self.waiting.get(&seq).is_some_and(|line| line.tickets.is_empty())
            && let Some(line) = self.waiting.remove(&seq)
        {
            self.answer(&line, out);
        }
    }

    fn answer(&mut self, line: &Line, out: &mut dyn Write) {
        self.saved += u64::from(line.id.is_some());
        let session = std::mem::take(&mut self.session);
        let Line { seq, losses, tickets: _, id, durability } = line;
        let answered = Answered { seq: *seq, id: id.as_deref(), session: &session, durability: *durability, losses };
        self.say(&answered, out);
        self.session = session;
    }

    fn say(&mut self, told: &impl Serialize, out: &mut dyn Write) {
        if self.unheard.is_some() {
            return;
        }
        let mut print = || -> Result<(), Failure> {
            json::compact(out, told)?;
            writeln!(out)?;
            Ok(out.flush()?)
        };
        self.unheard = print().err();
    }
}
