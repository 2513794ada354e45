//! Acknowledgements: one line of JSON for each line that was recorded, printed when it is on disk and not before.

use std::io::Write;

use scrollback::recorder::{Ack, Durability, Refused, Saved};
use scrollback::writing::Loss;
use serde::Serialize;

use crate::failure::Failure;
use crate::json;

/// Lines that wait for the disk, and how many were refused.
#[derive(Default)]
pub(crate) struct Acks {
    session: String,
    waiting: Vec<Line>,
    pub(crate) saved: u64,
    pub(crate) refused: u64,
    /// Why nothing is printed any more. The records are worth more than their acknowledgements: recording goes on.
    unheard: Option<Failure>,
}

/// One line of the input, as far as it is on disk.
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) losses: Vec<Loss>,
    /// Calls that are held.
    tickets: Vec<u64>,
    id: Option<String>,
    durability: Option<Durability>,
}

#[derive(Serialize)]
struct Acknowledged<'a> {
    seq: u64,
    id: &'a str,
    session: &'a str,
    durability: Durability,
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

    /// Notes what came of one of its calls.
    pub(crate) fn note(&mut self, ack: Ack) {
        match ack {
            Ack::Saved(saved) => self.note_saved(saved),
            Ack::Held { ticket } => self.tickets.push(ticket),
            Ack::NotRecorded => {}
        }
    }

    /// Learns which of its held calls are on disk.
    pub(crate) fn settle(&mut self, settled: &[Saved]) {
        let own: Vec<Saved> = settled.iter().filter(|saved| self.tickets.contains(&saved.ticket)).cloned().collect();
        own.into_iter().for_each(|saved| self.note_saved(saved));
    }

    fn note_saved(&mut self, saved: Saved) {
        self.tickets.retain(|ticket| *ticket != saved.ticket);
        self.losses.extend(saved.losses);
        (self.id, self.durability) = (Some(saved.id.0), Some(saved.durability));
    }

    /// The same, for a line that said its part before this one.
    pub(crate) fn also(&self, earlier: Line) -> Line {
        Line { tickets: self.tickets.clone(), id: self.id.clone(), durability: self.durability, ..earlier }
    }
}

impl Acks {
    pub(crate) fn of_session(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    /// Prints what is on disk of a line, or remembers it until it is.
    pub(crate) fn add(&mut self, line: Line, out: &mut dyn Write) {
        self.waiting.push(line);
        self.print(out);
    }

    /// Learns that held calls are on disk.
    pub(crate) fn settle(&mut self, settled: &[Saved], out: &mut dyn Write) {
        self.waiting.iter_mut().for_each(|line| line.settle(settled));
        self.print(out);
    }

    /// Tells of held calls that the format has no place for.
    pub(crate) fn refuse_held(&mut self, refused: &[Refused], out: &mut dyn Write) {
        for Refused { ticket, what } in refused {
            let (lines, waiting) =
                std::mem::take(&mut self.waiting).into_iter().partition(|line| line.tickets.contains(ticket));
            self.waiting = waiting;
            let lines: Vec<Line> = lines;
            lines
                .into_iter()
                .for_each(|line| self.refuse(line.seq, &format!("the format has no place for this: {what}"), out));
        }
    }

    /// Tells that a line was refused or could not be written.
    pub(crate) fn refuse(&mut self, seq: u64, why: &str, out: &mut dyn Write) {
        self.refused += 1;
        self.say(&NotSaved { seq, error: why }, out);
    }

    /// Tells of all that still waits that it was not saved.
    pub(crate) fn refuse_rest(&mut self, why: &str, out: &mut dyn Write) {
        for line in std::mem::take(&mut self.waiting) {
            self.refuse(line.seq, why, out);
        }
    }

    /// How it went: whether everything could be told.
    pub(crate) fn unheard(self) -> Option<Failure> {
        self.unheard
    }

    fn print(&mut self, out: &mut dyn Write) {
        let (done, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|line| line.tickets.is_empty());
        self.waiting = waiting;
        let done: Vec<Line> = done;
        for line in done {
            // A line without a record only frames what others say.
            let (Some(id), Some(durability)) = (&line.id, line.durability) else { continue };
            self.saved += 1;
            let session = std::mem::take(&mut self.session);
            self.say(&Acknowledged { seq: line.seq, id, session: &session, durability, losses: &line.losses }, out);
            self.session = session;
        }
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
