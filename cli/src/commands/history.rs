//! `history`: what a model would see to go on from a record, in the words of one API.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use scrollback::session::{Bridge, Session};
use scrollback::view::find::SessionName;
use scrollback::view::history::{History, Note, View};
use serde_json::{Value, json};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::json;
use crate::session::name;
use crate::terminal::clean;

/// Print what a model would see to go on
///
/// Prints the messages that an agent would send to the model to go on from the newest record, or from RECORD of SESSION#RECORD: from the
/// last compaction on, every call with a result, in the form that the API takes. The document is an array, as the API wants it in
/// `messages`, `input` or `contents`; of --for text it is plain text. How the session ends and what had to be repaired or left out is told
/// on standard error. Nothing is run again, and the session is not changed.
#[derive(clap::Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Session id, unique beginning, @, a path, or -; #RECORD behind it goes on from that record
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// In whose words
    #[arg(long = "for", value_name = "VIEW", value_parser = PossibleValuesParser::new(View::ALL.map(View::name)).try_map(|name| name.parse::<View>()))]
    view: View,
    /// Print only the last N messages; a result whose call is not among them is left out
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Add the context that the agent put in and would make anew
    #[arg(long)]
    with_context: bool,
    /// Go on before a missing record with the one that was written before it
    #[arg(long)]
    bridge: bool,
}

/// How many records a note names; all are counted.
const RECORDS_NAMED: usize = 3;

/// How many notes are told on a terminal: a damaged history can have one for each of its calls.
const NOTES_TOLD: usize = 50;

pub(crate) fn run(args: &HistoryArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let session = named.located.open(global, ctx, bridge, None)?;
    let head = match &named.record {
        Some(record) => Some(name::record(&session, record)?),
        None => session.head(),
    };
    let head = head.ok_or_else(|| nothing_in(&session))?;
    let mut history =
        if args.with_context { History::with_context(&session, head)? } else { History::of(&session, head)? };
    let (count, notes) = print(&mut history, args, ctx)?;
    history.notes.extend(notes);
    tell(&history, ctx)?;
    if count == 0 && !ctx.json {
        ctx.note("Nothing to send. `scrollback show` prints what is in the session.")?;
    }
    Ok(if count == 0 { ExitCode::from(super::FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

fn nothing_in(session: &Session) -> Failure {
    Failure::new(FailureKind::NotFound, format!("{} holds no record", session.path().display()))
        .hint("`scrollback doctor` tells what is in it")
}

/// Prints message by message: a long history is never a document in memory.
fn print(history: &mut History<'_>, args: &HistoryArgs, ctx: &mut Ctx) -> Result<(usize, Vec<Note>), Failure> {
    let view = args.view;
    let is_text = view == View::Text;
    let (mut count, mut failed, mut whole) = (0, None, String::new());
    let in_json = ctx.json;
    let on_terminal = ctx.on_terminal;
    let out = &mut ctx.out;
    let mut print = |message: &Value| -> Result<(), Failure> {
        if let (true, Some(text)) = (is_text, message.as_str()) {
            let space = if count > 0 { "\n" } else { "" };
            if in_json {
                whole.extend([space, text, "\n"]);
                count += 1;
                return Ok(());
            }
            // What is piped on is for a model: it gets the text as it is.
            let text = if on_terminal { clean::text(text) } else { text.into() };
            writeln!(out, "{space}{text}")?;
        } else {
            out.write_all(if count > 0 { b",\n" } else { b"[\n" })?;
            json::compact(out, message)?;
        }
        count += 1;
        Ok(())
    };
    let mut emit = |message: Value| {
        if failed.is_none() {
            failed = print(&message).err();
        }
    };
    let notes = match args.last {
        Some(last) => {
            let (messages, notes) = history.last_messages(last, view)?;
            messages.into_iter().for_each(emit);
            notes
        }
        None => view.write(history, &mut emit)?,
    };
    match failed {
        Some(failure) => return Err(failure),
        // The same text as without `--json`, as one string.
        None if is_text && in_json => {
            json::compact(&mut ctx.out, &whole)?;
            writeln!(ctx.out)?;
        }
        None if is_text => {}
        None if count == 0 => writeln!(ctx.out, "[]")?,
        None => writeln!(ctx.out, "\n]")?,
    }
    ctx.out.flush()?;
    Ok((count, notes))
}

/// Tells how the branch ends and what is not as the session has it. With `--json` it is one line of JSON.
fn tell(history: &History<'_>, ctx: &mut Ctx) -> Result<(), Failure> {
    if ctx.json {
        let notes = history.notes.iter().map(|note| json!({"record": note.record, "what": note.what}));
        let told = json!({"state": history.state.name(), "notice": history.notice, "notes": notes.collect::<Value>()});
        json::compact(&mut ctx.err, &told)?;
        writeln!(ctx.err)?;
        return Ok(());
    }
    ctx.note(&format!("{}: {}", history.state.name(), history.notice))?;
    let (mut told, mut places) = (Vec::<(&str, Vec<&str>)>::new(), HashMap::new());
    for note in &history.notes {
        let at = *places.entry(note.what.as_str()).or_insert(told.len());
        if at == told.len() {
            told.push((&note.what, Vec::new()));
        }
        told[at].1.push(note.record.as_str());
    }
    for (what, records) in told.iter().take(NOTES_TOLD) {
        let named = records[..records.len().min(RECORDS_NAMED)].join(", ");
        let more = match records.len().saturating_sub(RECORDS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        ctx.note(&format!("note: {named}{more}: {what}"))?;
    }
    if told.len() > NOTES_TOLD {
        ctx.note(&format!("{} more notes: --json tells all.", told.len() - NOTES_TOLD))?;
    }
    Ok(())
}
