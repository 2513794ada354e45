//! `doctor`: reports damage in session files, with its place and what was kept.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use scrollback::model::{Issue, IssueKind, Severity};
use scrollback::session::{Bridge, Session, Source, folder};
use scrollback::view::Examination;
use scrollback::view::find::SessionName;
use scrollback::view::listing::Depth;
use scrollback::view::profile::{Profile, Verdict};

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::render::table::{Cell, Column, Table};
use crate::session::located::Located;
use crate::session::name;
use crate::session::scope;
use crate::terminal::paint::Paint;
use crate::terminal::{MIN_COLUMNS, clean, wrap};

/// Check session files for damage
///
/// Reports the place of each problem, what is wrong and what was kept. Changes nothing. Without a name it checks every session in scope;
/// a directory stands for all sessions in and below it. The exit code is 1 if something is lost or cannot be trusted, and 0 if there
/// are only notes.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Session ids, files or directories (can be repeated)
    sessions: Vec<SessionName>,
    /// Print every problem, not only the first 20 of each file
    #[arg(long)]
    full: bool,
    /// Also check each line against the rules of a format
    ///
    /// A profile is stricter than reading, which accepts an unknown role, for example. Each invalid line is reported with the field that
    /// fails, and makes the exit code 1.
    #[arg(long, value_name = "PROFILE", value_parser = Profile::ALL.map(Profile::name))]
    profile: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback doctor --all
  scrollback doctor ~/.claude/projects";

/// Problems printed for a file without `--full`.
const ISSUES_SHOWN: usize = 20;

pub(crate) fn run(args: &DoctorArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    for target in targets(args, global, ctx, &mut report)? {
        match target.open(global, ctx, Bridge::AsTheAgent, None, ctx.mask.clone().as_ref()) {
            Ok(session) => report.add(&session, args, ctx)?,
            Err(failure) => {
                report.unreadable += 1;
                ctx.warn(&failure)?;
            }
        }
    }
    if ctx.json {
        ctx.print_json(&report.examined)?;
    } else {
        report.print(args, ctx)?;
    }
    Ok(if report.has_errors || report.unreadable > 0 { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// The sessions to check: those that are named, else those in scope.
fn targets(args: &DoctorArgs, global: &Global, ctx: &mut Ctx, report: &mut Report) -> Result<Vec<Located>, Failure> {
    let located = |source| Located::Source(Box::new(source));
    let mut targets = Vec::new();
    for session in &args.sessions {
        match folder(session, global, ctx, report)? {
            Some(sources) => targets.extend(sources.into_iter().map(located)),
            None => match name::resolve(session, global, ctx)?.located {
                // A database contains many sessions.
                Located::Source(source) if source.key.is_none() => {
                    targets.extend(Source::in_file(source.dialect, &source.path)?.into_iter().map(located));
                }
                target => targets.push(target),
            },
        }
    }
    if !args.sessions.is_empty() {
        return Ok(targets);
    }
    let found = scope::found(global, ctx, Depth::Ends)?;
    report.unreadable = found.unreadable;
    if found.hidden > 0 {
        let sessions = plural(found.hidden as u64, "session");
        ctx.note(&format!("{sessions} in other projects; add --all to check them."))?;
    }
    if found.rows.is_empty() && found.unreadable == 0 {
        let failure = Failure::new(FailureKind::NotFound, "no session to check");
        return Err(failure.hint("name a file, or run `scrollback --demo doctor`"));
    }
    Ok(found.rows.into_iter().map(|(_, source)| located(source)).collect())
}

/// The sessions in a directory and below it.
fn folder(
    session: &SessionName,
    global: &Global,
    ctx: &mut Ctx,
    report: &mut Report,
) -> Result<Option<Vec<Source>>, Failure> {
    // Without `.` in the middle.
    let path: PathBuf = ctx.home.cwd.join(session.typed()).components().collect();
    if !session.is_path() || !path.is_dir() {
        return Ok(None);
    }
    let found = folder::sessions(&path, &ctx.home, scope::dialect(global)?);
    let (sources, unreadable) = scope::readable(found.sources, ctx)?;
    report.unreadable += unreadable;
    if sources.is_empty() && unreadable == 0 {
        let failure = Failure::new(FailureKind::NotFound, format!("{}: contains no session", path.display()));
        return Err(failure.hint("name a store, a session folder or a session file"));
    }
    if found.ignored > 0 {
        let files = plural(found.ignored as u64, "file");
        let belong = if found.ignored == 1 { "belongs" } else { "belong" };
        ctx.note(&format!("{files} in {} {belong} to no session.", path.display()))?;
    }
    Ok(Some(sources))
}

/// What was found in all files.
#[derive(Default)]
struct Report {
    examined: Vec<Examination>,
    /// For each session: how many more issues it has than are kept.
    beyond: Vec<u64>,
    has_errors: bool,
    unreadable: usize,
    /// (dialect, sessions, records, with problems)
    dialects: BTreeMap<String, (usize, usize, usize)>,
    /// (agent, version, kind) and how many.
    unknown: BTreeMap<(String, String, String), u64>,
}

impl Report {
    /// Adds what is wrong in a session.
    fn add(&mut self, session: &Session, args: &DoctorArgs, ctx: &mut Ctx) -> Result<(), Failure> {
        let profile = Profile::ALL.into_iter().find(|profile| Some(profile.name()) == args.profile.as_deref());
        // Without a name, a profile applies only to sessions of its dialect.
        let applies = |profile: &Profile| !args.sessions.is_empty() || session.dialect().name() == profile.name();
        let checked = match profile.filter(applies) {
            Some(profile) => session.verdicts(profile).map(Some),
            None => session.message_verdicts(),
        };
        let verdicts = match checked {
            Ok(verdicts) => verdicts,
            Err(error) => {
                self.unreadable += 1;
                ctx.warn(&error.into())?;
                None
            }
        };
        let mut examined = Examination { verdicts, ..session.examine() };
        if ctx.demo {
            examined.issues.retain(|issue| issue.kind != IssueKind::MissingCwd);
        }
        let beyond = session.issue_count() - session.issues().len() as u64;
        let has_errors = session.has_errors() || examined.issues.iter().any(|issue| issue.severity == Severity::Error);
        self.has_errors |= has_errors || invalid(&examined).next().is_some();
        let (sessions, records, damaged) = self.dialects.entry(examined.dialect.clone()).or_default();
        *sessions += 1;
        *records += examined.records;
        *damaged += usize::from(has_errors);
        let version = session.agent_version().unwrap_or_default().to_owned();
        for (kind, count) in session.unknown_kinds() {
            *self.unknown.entry((examined.dialect.clone(), version.clone(), kind.to_owned())).or_default() += count;
        }
        self.beyond.push(beyond);
        self.examined.push(examined);
        Ok(())
    }

    fn print(&self, args: &DoctorArgs, ctx: &mut Ctx) -> Result<(), Failure> {
        let is_only = self.examined.len() == 1;
        for (examined, beyond) in self.examined.iter().zip(&self.beyond) {
            if is_only || problems(examined).next().is_some() || invalid(examined).next().is_some() {
                // Of many sessions, it only matters what is wrong in the files.
                let issues = examined.issues.iter().filter(|issue| is_only || is_in_file(issue)).collect::<Vec<_>>();
                print_file(examined, &issues, *beyond, args, ctx)?;
            }
        }
        let paint = ctx.paint();
        let mut summary = Table::new(vec![
            Column::fixed("DIALECT"),
            Column::right("SESSIONS"),
            Column::right("RECORDS"),
            Column::right("DAMAGED"),
        ]);
        for (dialect, (sessions, records, damaged)) in &self.dialects {
            let cells = [dialect.clone(), sessions.to_string(), records.to_string(), damaged.to_string()];
            summary.push(cells.map(|text| Cell::new(text, Paint::plain)).into());
        }
        if self.examined.len() > 1 {
            write!(ctx.out, "{}", summary.render(ctx.look.width, paint))?;
        }
        if self.unreadable > 0 {
            ctx.line(&format!("{} could not be read", plural(self.unreadable as u64, "file")))?;
        }
        if !self.unknown.is_empty() {
            let columns = ["AGENT", "VERSION", "UNKNOWN KIND"].map(Column::fixed).into_iter();
            let mut table = Table::new(columns.chain([Column::right("COUNT")]).collect());
            for ((agent, version, kind), count) in &self.unknown {
                let cells = [agent.clone(), clean::line(version).into(), clean::line(kind).into(), count.to_string()];
                table.push(cells.map(|text| Cell::new(text, Paint::plain)).into());
            }
            let above = if self.examined.len() > 1 { "\n" } else { "" };
            write!(ctx.out, "{above}{}", table.render(ctx.look.width, paint))?;
        }
        Ok(())
    }
}

/// The lines that the profile rejects.
fn invalid(examined: &Examination) -> impl Iterator<Item = &Verdict> {
    examined.verdicts.iter().flatten().filter(|verdict| !verdict.valid)
}

/// Whether it is a problem of the files: a working directory that is gone is not.
fn is_in_file(issue: &Issue) -> bool {
    issue.kind != IssueKind::MissingCwd
}

fn problems(examined: &Examination) -> impl Iterator<Item = &Issue> {
    examined.issues.iter().filter(|issue| is_in_file(issue))
}

fn print_file(
    examined: &Examination,
    issues: &[&Issue],
    beyond: u64,
    args: &DoctorArgs,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    let paint = ctx.paint();
    let size = match examined.other_paths.len() as u64 {
        0 => plural(examined.lines, "line"),
        others => plural(others + 1, "file"),
    };
    let about = format!("{} · {size} · {}", examined.dialect, plural(examined.records as u64, "record"));
    ctx.line(&format!("{}  {}", paint.bold(&examined.path), paint.dim(&about)))?;
    for other in &examined.other_paths {
        ctx.line(&paint.bold(other))?;
    }
    let shown = if args.full { issues.len() } else { ISSUES_SHOWN };
    for issue in issues.iter().take(shown) {
        let brush = if issue.severity == Severity::Error { Paint::red } else { Paint::yellow };
        print_problem(&place(issue), issue.kind.name(), brush, &issue.detail, ctx)?;
    }
    let left = issues.len().saturating_sub(shown) as u64 + beyond;
    if left > 0 {
        ctx.line(&format!("  … and {left} more{}", if beyond < left { " (--full)" } else { "" }))?;
    }
    if problems(examined).next().is_none() {
        let verdict = match (examined.records, issues.is_empty()) {
            (0, _) => "no problems: the file is empty",
            (_, true) => "no problems",
            (_, false) => "no problems in the file itself",
        };
        ctx.line(&format!("  {}", paint.green(verdict)))?;
    }
    if let (Some(profile), Some(verdicts)) = (&args.profile, &examined.verdicts) {
        print_verdicts(profile, examined, verdicts.len(), args.full, ctx)?;
    }
    ctx.line("")
}

/// Prints the lines that a profile rejects.
fn print_verdicts(
    profile: &str,
    examined: &Examination,
    lines: usize,
    full: bool,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    let paint = ctx.paint();
    let count = invalid(examined).count();
    let shown = if full { count } else { ISSUES_SHOWN };
    for verdict in invalid(examined).take(shown) {
        let place = format!("line {}", verdict.line);
        for fault in verdict.fault.iter().chain(&verdict.further) {
            print_problem(&place, fault.field.as_deref().unwrap_or("not a message"), Paint::red, &fault.reason, ctx)?;
        }
    }
    if count > shown {
        ctx.line(&format!("  … and {} more (--full)", count - shown))?;
    }
    let verdict = format!("{profile}: {} of {} valid", lines - count, plural(lines as u64, "line"));
    ctx.line(&format!("  {}", if count == 0 { paint.green(&verdict) } else { paint.red(&verdict) }))
}

/// Prints one problem in three columns; on a terminal, the text is wrapped in its column.
fn print_problem(
    place: &str,
    what: &str,
    brush: fn(Paint, &str) -> String,
    text: &str,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    const TEXT_COLUMN: usize = 36;
    let (paint, text) = (ctx.paint(), clean::line(text));
    let room = ctx.look.width.saturating_sub(TEXT_COLUMN).max(MIN_COLUMNS);
    let whole = std::iter::once(0..text.len()).collect();
    let lines = if ctx.on_terminal { wrap::prose(&text, room) } else { whole };
    let margin = format!("\n{}", " ".repeat(TEXT_COLUMN));
    let text = lines.into_iter().map(|line| &text[line]).collect::<Vec<_>>().join(&margin);
    let (place, what) = (paint.dim(&format!("{place:<14}")), brush(paint, &format!("{what:<18}")));
    ctx.line(&format!("  {place} {what} {text}"))
}

/// Whether an issue is about a whole file beside the log.
fn is_about_file(kind: IssueKind) -> bool {
    matches!(kind, IssueKind::UnreadableFile | IssueKind::DamagedSidecar | IssueKind::OtherCopy)
}

fn place(issue: &Issue) -> String {
    let file = issue.file.as_ref().map(|file| format!("{file} ")).unwrap_or_default();
    match issue.line {
        Some(line) => format!("{file}line {line}"),
        None if is_about_file(issue.kind) => file.trim_end().to_owned(),
        None => format!("{file}byte {}", issue.offset),
    }
}
