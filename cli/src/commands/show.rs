//! `show`: one branch of a session, for people.

use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;

use scrollback::model::{Error, Message, RecordId, Sdk};
use scrollback::session::{Branch, Bridge, RecordRef, Session, Source};
use scrollback::view::find::SessionName;
use scrollback::view::{Conversation, Page, SessionRow, listing, origins};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::outlet::Secrets;
use crate::record::destination::report_branch;
use crate::render::divider;
use crate::render::message::Detail;
use crate::render::short_ids::ShortIds;
use crate::render::sub_agents::SubAgents;
use crate::render::todo_course;
use crate::render::transcript::Transcript;
use crate::render::{json, plural};
use crate::session::located::{self, Located};
use crate::session::resume::quote;
use crate::session::{name, scope};

/// Show a session
///
/// Shows the newest branch, or with SESSION#ID the branch of that message: the pager opens there. SESSION is an id, a unique prefix, @ (the
/// newest of this project), @~1 (the one before it), DIALECT:ID, a path, or - (standard input).
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Session id, unique prefix, @, a path, or -
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// Show the branch that ends in this record
    #[arg(long, value_name = "RECORD")]
    head: Option<String>,
    /// Show only the last N messages and what a person did after each, without reading all of a large file; 0 shows only the
    /// header
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Show the 20 messages before this record, or N with --last N
    #[arg(long, value_name = "RECORD")]
    before: Option<String>,
    /// Unfold tool calls and thinking
    #[arg(long)]
    full: bool,
    /// Print the original lines of the file
    #[arg(long, conflicts_with = "full")]
    raw: bool,
    /// Show how the task list changed: what was added, started and done at each message
    #[arg(long, conflicts_with_all = ["raw", "last", "before", "full"])]
    todos: bool,
    /// Connect each gap to the record that was written before it
    #[arg(long)]
    bridge: bool,
    /// Print messages for this major version of the AI SDK (with --json)
    #[arg(long, value_name = "MAJOR", default_value = "7")]
    sdk: Sdk,
}

const EXAMPLES: &str = "\
Examples:
  scrollback show @
  scrollback show 3f8a --last 2 --full
  scrollback show @ --todos";

/// How many messages `--before` shows without `--last`.
const PAGE_MESSAGES: usize = 20;

impl ShowArgs {
    /// Whether it prints the lines of the file.
    pub(crate) fn is_raw(&self) -> bool {
        self.raw
    }
}

pub(crate) fn run(args: &ShowArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if args.raw && ctx.json {
        let failure = Failure::new(FailureKind::Usage, "--raw cannot be used with --json");
        return Err(failure.hint("--raw already prints JSON: the lines of the file"));
    }
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let paged = args.last.is_some() || args.before.is_some();
    let page = Page { messages: args.last.unwrap_or(PAGE_MESSAGES), before: args.before.as_deref() };
    // Another head can be anywhere in the file.
    let by_page = paged && args.head.is_none() && named.record.is_none();
    let source = if let Located::Source(source) = &named.located { Some(source.clone()) } else { None };
    let mut session = named.located.open(global, ctx, bridge, by_page.then_some(page), ctx.mask.clone().as_ref())?;
    if let (Some(record), Some(source)) = (&named.record, &source)
        && session.find(record).is_err()
        && let Some(older) = older_generation(record, source, global, ctx, bridge)?
    {
        ctx.note("The agent has rewritten this session since; this is the copy that was kept.")?;
        session = older;
    }
    if let Some(summary) = listing::summary_elsewhere(&session) {
        session.title_from_summary(summary);
    }
    let at = named.record.as_deref().map(|record| name::record(&session, record)).transpose()?;
    let head = match (&args.head, at) {
        (Some(head), _) => Some(name::record(&session, head)?),
        (None, Some(at)) => Some(head_through(&session, at)),
        (None, None) => session.head(),
    };
    let Some(head) = head else { return no_records(&session, ctx) };
    let branch = session.branch(head);
    if args.todos {
        return todos(&session, &branch, ctx);
    }
    let conversation = Conversation::new(&branch);
    let mut range = range(args, paged, &session, &conversation, page)?;
    if (ctx.json || args.raw)
        && let Some(at) = at.and_then(|at| conversation.position(at))
    {
        range.start = range.start.max(at);
    }
    if args.raw {
        raw(&session, &branch, &conversation, range, ctx)?;
    } else if ctx.json {
        let whole = range.len() == conversation.len();
        // Each message is read when it is printed: a long session is never in memory as a whole.
        let messages = json::Streamed(|| {
            let messages = conversation.messages(range.clone());
            messages.map(|message| message.map(|message| message.for_sdk(args.sdk)))
        });
        let mut page = session.page(&branch, Some(head), messages, whole)?;
        mark_copied_requests(&session, source.as_deref(), &mut page.session, global, ctx)?;
        ctx.stream_json(&page)?;
    } else {
        let empty = conversation.is_empty().then(|| session.check_not_empty(Some(head)));
        let left = match empty {
            None => None,
            // Nobody asked for this place: the conversation was taken back to it.
            Some(Err(Error::EmptyBranch { left, .. })) if args.head.is_none() && named.record.is_none() => Some(left),
            Some(_) => return Err(no_messages(&session, head)),
        };
        let at = at.and_then(|at| conversation.position(at));
        let detail = Detail { full: args.full };
        let ids = ShortIds::of_records(&session);
        let places = scope::places(global, ctx)?;
        let parent = session.id().0;
        let mut row = session.row()?;
        mark_copied_requests(&session, source.as_deref(), &mut row, global, ctx)?;
        let sub_agents = source.map(|source| SubAgents::new(places, *source, parent, ctx.now));
        let (branch, conversation) = (&branch, &conversation);
        let transcript = Transcript { session: &session, row, branch, conversation, range, detail, ids, sub_agents };
        print(&transcript, at, ctx)?;
        if let Some(left) = left {
            rewound_to_the_start(&session, &left, &transcript.ids, ctx)?;
        }
        footer(&session, &session_part(&args.session, named.record.as_deref(), &session), ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts what a session copied from others; one that was piped has none beside it.
fn mark_copied_requests(
    session: &Session,
    source: Option<&Source>,
    row: &mut SessionRow,
    global: &Global,
    ctx: &Ctx,
) -> Result<(), Failure> {
    if let Some(source) = source {
        origins::mark_copied_requests(session, row, &scope::places(global, ctx)?.finder(source));
    }
    Ok(())
}

/// Says that nothing is left on the branch, and how to see what was.
fn rewound_to_the_start(session: &Session, left: &RecordId, ids: &ShortIds<'_>, ctx: &mut Ctx) -> Result<(), Failure> {
    let record = ids.short(left.as_str());
    ctx.line(&divider::rule("rewound to the start", &ctx.prose()))?;
    ctx.line(&format!("  what was left: scrollback show {}", format_args!("{}#{record}", quote(session.id().as_str()))))
}

/// Prints the course of the task list.
fn todos(session: &Session, branch: &Branch<'_>, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let steps = scrollback::view::todo_course::steps(branch)?;
    if ctx.json {
        ctx.print_json(&steps)?;
    } else if steps.is_empty() {
        ctx.note("This branch has no task list.")?;
    } else {
        let text = todo_course::text(&steps, &ShortIds::of_records(session), ctx);
        ctx.line(text.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was kept of a session before its agent rewrote it, if that has the record.
fn older_generation(
    record: &str,
    source: &Source,
    global: &Global,
    ctx: &mut Ctx,
    bridge: Bridge,
) -> Result<Option<Session>, Failure> {
    let places = scope::places(global, ctx)?;
    let copies = places.kept_copies(source).into_iter().chain(places.copies_under_other_names(&[source], ctx.now));
    for kept in copies {
        let older = Located::Source(Box::new(kept)).open(global, ctx, bridge, None, ctx.mask.clone().as_ref())?;
        if older.find(record).is_ok() {
            return Ok(Some(older));
        }
    }
    Ok(None)
}

/// The newest head whose branch contains the record.
fn head_through<'s>(session: &'s Session, record: RecordRef<'s>) -> RecordRef<'s> {
    let mut head_of: Vec<Option<RecordRef<'s>>> = vec![None; session.records().len()];
    for head in session.heads().map(|head| head.record) {
        let unseen = lineage(head).take_while(|record| head_of[record.order()].is_none());
        for record in unseen.collect::<Vec<_>>() {
            head_of[record.order()] = Some(head);
        }
    }
    // A tool result may be beside the parent chain; then its parent is on one.
    lineage(record).find_map(|ancestor| head_of[ancestor.order()]).unwrap_or(record)
}

fn lineage(record: RecordRef<'_>) -> impl Iterator<Item = RecordRef<'_>> {
    std::iter::successors(Some(record), |record| record.parent())
}

fn no_messages(session: &Session, head: RecordRef<'_>) -> Failure {
    if session.dialect().name() == "unknown" {
        let failure = Failure::new(
            FailureKind::NotFound,
            format!("{}: not a session file of a known agent", session.path().display()),
        );
        return failure
            .hint("use --dialect NAME to read it as one agent's, or run `scrollback doctor FILE` for details");
    }
    if let Err(empty) = session.check_not_empty(Some(head)) {
        return Failure { kind: FailureKind::NotFound, ..empty.into() };
    }
    Failure::new(FailureKind::NotFound, format!("session {} has no messages", session.id()))
        .hint(format!("run `scrollback tree {} --records` to see its records", session.id()))
}

fn range(
    args: &ShowArgs,
    paged: bool,
    session: &Session,
    conversation: &Conversation<'_, '_>,
    page: Page<'_>,
) -> Result<Range<usize>, Failure> {
    let end = match &args.before {
        None => conversation.len(),
        Some(before) => {
            let record = name::record(session, before)?;
            conversation.position(record).ok_or_else(|| {
                Failure::new(FailureKind::NotFound, format!("{before:?} is not on this branch"))
                    .hint("use --head RECORD to choose another branch")
            })?
        }
    };
    Ok(if paged { conversation.page_start(end, page.messages).unwrap_or(0)..end } else { 0..end })
}

fn no_records(session: &Session, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if ctx.json {
        let branch = Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() };
        ctx.print_json(&session.page(&branch, None, Vec::<Message>::new(), true)?)?;
        return Ok(ExitCode::from(super::FOUND_PROBLEMS));
    }
    Err(located::no_records(session))
}

fn raw(
    session: &Session,
    branch: &Branch<'_>,
    conversation: &Conversation<'_, '_>,
    range: Range<usize>,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    let mut secrets = Secrets::new(ctx)?;
    let mut print = |record: RecordRef<'_>| -> Result<(), Failure> {
        for piece in record.raw()? {
            secrets.count(&piece);
            ctx.out.write_all(&piece)?;
            ctx.out.write_all(b"\n")?;
        }
        Ok(())
    };
    if conversation.is_empty() {
        session.records().try_for_each(print)?;
    } else if range.len() == conversation.len() {
        branch.records.iter().try_for_each(|record| print(*record))?;
    } else {
        range.flat_map(|message| conversation.records(message)).try_for_each(print)?;
    }
    secrets.tell(ctx)
}

fn print(transcript: &Transcript<'_>, at: Option<usize>, ctx: &mut Ctx) -> Result<(), Failure> {
    let range = transcript.range.clone();
    // The pager opens at a line: count the lines above it.
    let above = match at.filter(|at| range.contains(at) && ctx.on_terminal) {
        Some(at) => {
            let mut above = Vec::new();
            transcript.write(range.start..at, ctx, &mut above)?;
            above.iter().filter(|byte| **byte == b'\n').count()
        }
        None => 0,
    };
    ctx.page(above);
    // Without a terminal, earlier messages are left out.
    let start = if ctx.on_terminal { range.start } else { at.unwrap_or(range.start).max(range.start) };
    ctx.writing(|ctx, out| transcript.write(start..range.end, ctx, out))?;
    ctx.end_page()
}

/// `SESSION` of `SESSION#RECORD` as it was typed, for a command line; `@` is another session elsewhere.
fn session_part(name: &SessionName, record: Option<&str>, session: &Session) -> String {
    let typed = record.and_then(|record| name.typed().strip_suffix(record)?.strip_suffix('#'));
    let typed = typed.unwrap_or(name.typed());
    let is_relative = typed.rsplit(':').next().is_some_and(|name| name.starts_with('@'));
    if is_relative { quote(session.id().as_str()) } else { quote(typed) }
}

/// Notes about other branches and damage, on standard error, with commands for the session as it was named.
fn footer(session: &Session, name: &str, ctx: &mut Ctx) -> Result<(), Failure> {
    report_branch(session, ctx)?;
    let others = session.heads().len().saturating_sub(1) as u64;
    if others > 0 {
        ctx.note(&format!("{}; run `scrollback tree {name}` to see all.", plural(others, "more branch")))?;
    }
    if session.has_errors() {
        ctx.note(&format!(
            "{} in the file; run `scrollback doctor {name}` for details.",
            plural(session.issue_count(), "problem")
        ))?;
    }
    Ok(())
}
