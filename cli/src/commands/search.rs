//! `search`: finds words in all sessions, grouped by session.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::ValueEnum;
use scrollback::model::SessionId;
use scrollback::view::listing::Depth as ListDepth;
use scrollback::view::texts::TextRole;
use scrollback_index::query::{Query, QueryError};
use scrollback_index::{Answer, Depth, FoundSession, Hit, Piece, SearchOptions, Sort};

use super::list::project_name;
use super::{FOUND_PROBLEMS, index};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::clock;
use crate::render::plural;
use crate::render::short_ids::ShortIds;
use crate::session::{archive, scope};
use crate::terminal::clean;
use crate::terminal::preview::one_line;

/// Search all sessions
///
/// Finds the parts of sessions with all the words: prompts, answers, thoughts, tool calls and their outputs, on every branch. By default
/// it searches the current project; add --all for every project.
///
/// In a query: word, "a phrase", prefix*, -without, OR, (groups), /expression/, and filters: agent: project: role: tool: file: model:
/// branch: since: until: is:error is:thinking is:dead is:sidechain is:compacted in:title. Quote it for the shell.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SearchArgs {
    /// What to find
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// The order of sessions
    #[arg(long, value_name = "ORDER", default_value = "newest")]
    sort: Order,
    /// Show N lines before and after each match
    #[arg(long, short = 'C', value_name = "N")]
    context: Option<usize>,
    /// Show at most N sessions
    #[arg(long, short = 'n', value_name = "N", default_value = "20")]
    limit: NonZeroUsize,
}

const EXAMPLES: &str = "\
Examples:
  scrollback search high water
  scrollback search '\"connection refused\" tool:Bash since:7d' --all";

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The session that was updated last comes first
    Newest,
    /// The session that was updated first comes first
    Oldest,
    /// The session with the best match comes first
    Relevance,
}

/// How many matches of a session are shown; programs get more.
const HITS_SHOWN: usize = 3;
const HITS_IN_JSON: usize = 50;

/// A search first indexes what has changed, unless it is more: then it reads those sessions, and indexes them afterwards.
const INDEXED_FIRST_BYTES: u64 = 32 * 1024 * 1024;

pub(crate) fn run(args: &SearchArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let typed = args.query.join(" ");
    let query = Query::parse(&typed, ctx.now, &ctx.zone).map_err(|error| invalid(&typed, &error))?;
    let mut found = scope::found(global, ctx, ListDepth::Ends)?;
    add_older_generations(&mut found);
    let sources: Vec<_> = found.rows.iter().map(|(_, source)| source.clone()).collect();
    let pending = found.archive.pending(&sources, Depth::Text);
    let is_small = pending.iter().map(|pending| pending.bytes).sum::<u64>() <= INDEXED_FIRST_BYTES;
    let mut later = Some(pending).filter(|pending| !pending.is_empty() && found.archive.has_index());
    if let Some(pending) = later.take_if(|_| is_small) {
        index::refresh(&mut found.archive, pending, Depth::Text, ctx);
    }
    let options = SearchOptions {
        sort: match args.sort {
            Order::Newest => Sort::Newest,
            Order::Oldest => Sort::Oldest,
            Order::Relevance => Sort::Relevance,
        },
        sessions: args.limit.get(),
        hits: if ctx.json { HITS_IN_JSON } else { HITS_SHOWN },
        context: args.context,
    };
    let mut answer = found.archive.search(&query, &found.rows, options);
    for error in std::mem::take(&mut answer.unreadable) {
        ctx.warn(&error.into())?;
    }
    archive::warn_about_index(&mut found.archive, ctx)?;
    if ctx.json {
        ctx.print_json(&answer.sessions)?;
    } else {
        let text = text(&answer, &found.ids, ctx);
        ctx.page_if_long(text.lines().count());
        std::io::Write::write_all(&mut ctx.out, text.as_bytes())?;
        ctx.end_page()?;
        notes(&answer, found.hidden, later.as_ref().map_or(0, Vec::len), ctx)?;
    }
    if let Some(pending) = later.filter(|_| ctx.on_terminal) {
        index::refresh(&mut found.archive, pending, Depth::Text, ctx);
        archive::warn_about_index(&mut found.archive, ctx)?;
    }
    // The process ends: its memory goes back at once, and not session by session.
    std::mem::forget(found.rows);
    match (answer.sessions.is_empty(), ctx.json) {
        (false, _) => Ok(ExitCode::SUCCESS),
        (true, true) => Ok(ExitCode::from(FOUND_PROBLEMS)),
        (true, false) => Err(nothing(&typed, &answer, found.hidden)),
    }
}

/// What an agent has rewritten since is found under the same id, where the session itself is in scope.
fn add_older_generations(found: &mut scope::Found) {
    let older = found.archive.places().older_generations();
    if older.is_empty() && found.copies.is_empty() {
        return;
    }
    let ids: HashSet<SessionId> = found.rows.iter().map(|(row, _)| row.id.clone()).collect();
    let older = found.archive.describe(older, ListDepth::Ends, &|| {}).sessions;
    let older = older.into_iter().chain(std::mem::take(&mut found.copies));
    found.rows.extend(older.filter(|(row, _)| ids.contains(&row.id)));
}

/// What is wrong with a question, and where.
pub(super) fn invalid(typed: &str, error: &QueryError) -> Failure {
    let failure = Failure::new(FailureKind::Usage, &error.message).pointing_at(typed, error.at.clone());
    failure.hint(error.hint.clone().unwrap_or_else(|| "run `scrollback search --help`".to_owned()))
}

fn nothing(typed: &str, answer: &Answer, hidden: usize) -> Failure {
    let failure = Failure::new(FailureKind::NotFound, format!("nothing matches {:?}", clean::line(typed)));
    match (&answer.suggestion, hidden) {
        (Some((word, near)), _) => {
            failure.hint(format!("{word:?} is in none of these sessions; did you mean {near:?}?"))
        }
        (None, 0) => failure.hint("use fewer words, a prefix (wor*), or OR"),
        (None, hidden) => failure.hint(format!("{} in other projects: add --all", plural(hidden as u64, "session"))),
    }
}

fn text(answer: &Answer, ids: &ShortIds<'_>, ctx: &Ctx) -> String {
    let mut text = String::new();
    for (at, found) in answer.sessions.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        session(&mut text, found, ids, ctx);
    }
    text
}

fn session(text: &mut String, found: &FoundSession, ids: &ShortIds<'_>, ctx: &Ctx) {
    let (paint, row) = (ctx.paint(), &found.session);
    let id = clean::line(ids.short_session(row.id.as_str())).into_owned();
    let about = [
        row.updated.map(|at| clock::age(at, ctx.now)),
        row.project.as_ref().map(|_| clean::line(&project_name(row)).into_owned()),
        Some(row.dialect.clone()),
    ];
    let about: Vec<String> = about.into_iter().flatten().collect();
    let title = one_line(&row.title, ctx.look.width.saturating_sub(2));
    push_line(text, &format!("{}  {}", paint.cyan(&id), paint.dim(&about.join(" · "))));
    push_line(text, &paint.bold(&title));
    let records = ShortIds::of_sessions(found.hits.iter().map(|hit| hit.record.to_string()));
    for hit in &found.hits {
        one_hit(text, hit, records.short(hit.record.as_str()), &id, ctx);
    }
    if found.more > 0 {
        push_line(text, &format!("  {}", paint.dim(&format!("{} more in this session", found.more))));
    }
}

fn one_hit(text: &mut String, hit: &Hit, record: &str, session: &str, ctx: &Ctx) {
    let paint = ctx.paint();
    let who = match (hit.role, &hit.tool) {
        (_, Some(tool)) => clean::line(tool).into_owned(),
        (TextRole::User, None) => "you".to_owned(),
        (role, None) => role.name().to_owned(),
    };
    let mut about = vec![who, format!("{session}#{}", clean::line(record))];
    about.extend(hit.labels.iter().map(|label| (*label).to_owned()));
    if !hit.also_in.is_empty() {
        about.push(format!("also in {}", plural(hit.also_in.len() as u64, "session")));
    }
    push_line(text, &format!("  {}", paint.dim(&about.join(" · "))));
    let marked: String = hit.snippet.iter().map(|piece| marked(piece, ctx)).collect();
    for line in marked.lines() {
        push_line(text, &format!("    {line}"));
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn marked(piece: &Piece, ctx: &Ctx) -> String {
    let text = clean::text(&piece.text);
    if piece.is_match { ctx.paint().yellow(&text) } else { text.into_owned() }
}

/// What the answer leaves out.
fn notes(answer: &Answer, hidden: usize, unindexed: usize, ctx: &mut Ctx) -> Result<(), Failure> {
    const MEGABYTE: u64 = 1_000_000;
    if answer.more_sessions > 0 {
        ctx.note(&format!(
            "{} match; use --limit N to show more.",
            plural(answer.more_sessions as u64, "more session")
        ))?;
    }
    if hidden > 0 && !answer.sessions.is_empty() {
        ctx.note(&format!("{} in other projects; add --all to search them.", plural(hidden as u64, "session")))?;
    }
    if answer.read_bytes >= MEGABYTE {
        ctx.note(&format!("Read {} MB that are not indexed.", answer.read_bytes / MEGABYTE))?;
    }
    if answer.unsearched_bytes >= MEGABYTE {
        let megabytes = answer.unsearched_bytes / MEGABYTE;
        ctx.note(&format!(
            "{megabytes} MB of long tool outputs were not searched; `scrollback index --everything` includes them."
        ))?;
    }
    if unindexed > 0 && !ctx.on_terminal {
        ctx.note(&format!("{} not indexed yet; run `scrollback index`.", plural(unindexed as u64, "session")))?;
    }
    Ok(())
}
