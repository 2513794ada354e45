//! `doctor`: what is wrong in files, where, and what was kept.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use scrollback::model::issue::{Issue, Severity};
use scrollback::session::read::folder;
use scrollback::session::read::source::Source;
use scrollback::session::{Bridge, Session};
use scrollback::view::answers::Examination;
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
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Tell what is wrong in sessions' files
///
/// Each problem is named with its place, what is wrong and what was kept. Nothing is changed. Without a name every session in scope is
/// examined; a directory stands for the sessions in it and below it. The exit code is 1 when something is lost or cannot be trusted,
/// and 0 when there are only notes.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Sessions, files or directories (can be repeated)
    sessions: Vec<SessionName>,
    /// Print every problem, however many there are
    #[arg(long)]
    full: bool,
    /// Also judge each line by the rules that a format states
    ///
    /// Reading forgives what a profile does not: an unknown role, say. An invalid line is told with the field that fails, and makes the
    /// exit code 1.
    #[arg(long, value_name = "PROFILE", value_parser = Profile::ALL.map(Profile::name))]
    profile: Option<String>,
}

/// Problems printed for a file without `--full`.
const ISSUES_SHOWN: usize = 20;

pub(crate) fn run(args: &DoctorArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let profile = Profile::ALL.into_iter().find(|profile| Some(profile.name()) == args.profile.as_deref());
    let mut report = Report::default();
    let mut patients = Vec::new();
    if args.sessions.is_empty() {
        let found = scope::found(global, ctx, Depth::Windows)?;
        report.unreadable = found.unreadable;
        if found.hidden > 0 {
            ctx.note(&format!("{} sessions in other projects are not examined: --all does.", found.hidden))?;
        }
        patients.extend(found.rows.into_iter().map(|(_, source)| Located::Source(Box::new(source))));
        if patients.is_empty() && found.unreadable == 0 {
            let failure = Failure::new(FailureKind::NotFound, "no session to examine");
            return Err(failure.hint("name a file, or `scrollback --demo doctor`"));
        }
    }
    for session in &args.sessions {
        match folder(session, global, ctx, &mut report)? {
            Some(sources) => patients.extend(sources.into_iter().map(|source| Located::Source(Box::new(source)))),
            None => match name::resolve(session, global, ctx)?.located {
                // A database holds many sessions.
                Located::Source(source) if source.key.is_none() => {
                    let all = Source::in_file(source.dialect, &source.path)?;
                    patients.extend(all.into_iter().map(|source| Located::Source(Box::new(source))));
                }
                located => patients.push(located),
            },
        }
    }
    for patient in patients {
        let session = match patient.open(global, ctx, Bridge::AsTheAgent, None) {
            Ok(session) => session,
            Err(failure) => {
                report.unreadable += 1;
                ctx.warn(&failure)?;
                continue;
            }
        };
        // Who names no session asks about those that the profile is for.
        let asked = profile.filter(|profile| !args.sessions.is_empty() || session.dialect().name() == profile.name());
        let judged = match asked {
            Some(profile) => session.verdicts(profile).map(Some),
            None => session.message_verdicts(),
        };
        let verdicts = match judged {
            Ok(verdicts) => verdicts,
            Err(error) => {
                report.unreadable += 1;
                ctx.warn(&error.into())?;
                None
            }
        };
        report.take(&session, verdicts);
    }
    if ctx.json {
        ctx.print_json(&report.examined)?;
    } else {
        report.print(args, ctx)?;
    }
    Ok(if report.has_errors || report.unreadable > 0 { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// The sessions in a directory and below it.
fn folder(
    session: &SessionName,
    global: &Global,
    ctx: &mut Ctx,
    report: &mut Report,
) -> Result<Option<Vec<Source>>, Failure> {
    let path = ctx.home.cwd.join(session.typed());
    if !path.is_dir() {
        return Ok(None);
    }
    let found = folder::sessions(&path, &ctx.home, scope::dialect(global)?);
    let (sources, unreadable) = scope::readable(found.sources, ctx)?;
    report.unreadable += unreadable;
    if sources.is_empty() && unreadable == 0 {
        let failure = Failure::new(FailureKind::NotFound, format!("{}: no session in it", path.display()));
        return Err(failure.hint("name a store, a session's folder or a file"));
    }
    if found.ignored > 0 {
        let files = plural(found.ignored as u64, "file");
        ctx.note(&format!("{files} beside the sessions in {}: no session's.", path.display()))?;
    }
    Ok(Some(sources))
}

/// What was found in all files.
#[derive(Default)]
struct Report {
    examined: Vec<Examination>,
    /// Of each file: issues beyond those kept.
    beyond: Vec<u64>,
    has_errors: bool,
    unreadable: usize,
    /// (dialect, sessions, records, with problems)
    dialects: BTreeMap<String, (usize, usize, usize)>,
    /// (agent, version, kind) and how many.
    unknown: BTreeMap<(String, String, String), u64>,
}

impl Report {
    fn take(&mut self, session: &Session, verdicts: Option<Vec<Verdict>>) {
        let examined = Examination { verdicts, ..session.examine() };
        let beyond = session.issue_count() - examined.issues.len() as u64;
        self.has_errors |= session.has_errors() || invalid(&examined).next().is_some();
        let (sessions, records, damaged) = self.dialects.entry(examined.dialect.clone()).or_default();
        *sessions += 1;
        *records += examined.records;
        *damaged += usize::from(session.has_errors());
        let version = session.agent_version().unwrap_or_default().to_owned();
        for (kind, count) in session.unknown_kinds() {
            *self.unknown.entry((examined.dialect.clone(), version.clone(), kind.to_owned())).or_default() += count;
        }
        self.beyond.push(beyond);
        self.examined.push(examined);
    }

    fn print(&self, args: &DoctorArgs, ctx: &mut Ctx) -> Result<(), Failure> {
        for (examined, beyond) in self.examined.iter().zip(&self.beyond) {
            let is_faulty = !examined.issues.is_empty() || invalid(examined).next().is_some();
            if is_faulty || self.examined.len() == 1 {
                file(examined, *beyond, args, ctx)?;
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

/// The lines that break a rule of the profile.
fn invalid(examined: &Examination) -> impl Iterator<Item = &Verdict> {
    examined.verdicts.iter().flatten().filter(|verdict| !verdict.valid)
}

fn file(examined: &Examination, beyond: u64, args: &DoctorArgs, ctx: &mut Ctx) -> Result<(), Failure> {
    let paint = ctx.paint();
    let lines = plural(examined.lines, "line");
    let about = format!("{} · {lines} · {}", examined.dialect, plural(examined.records as u64, "record"));
    ctx.line(&format!("{}  {}", paint.bold(&examined.path), paint.dim(&about)))?;
    let shown = if args.full { examined.issues.len() } else { ISSUES_SHOWN };
    for issue in examined.issues.iter().take(shown) {
        let kind = format!("{:<18}", issue.kind.name());
        let kind = if issue.severity == Severity::Error { paint.red(&kind) } else { paint.yellow(&kind) };
        ctx.line(&format!("  {:<14} {kind} {}", paint.dim(&place(issue)), clean::line(&issue.detail)))?;
    }
    let left = examined.issues.len().saturating_sub(shown) as u64 + beyond;
    if left > 0 {
        ctx.line(&format!("  … and {left} more{}", if beyond < left { " (--full)" } else { "" }))?;
    }
    if examined.issues.is_empty() {
        let verdict = if examined.records == 0 { "nothing is wrong: the file is empty" } else { "nothing is wrong" };
        ctx.line(&format!("  {}", paint.green(verdict)))?;
    }
    if let (Some(profile), Some(verdicts)) = (&args.profile, &examined.verdicts) {
        judged(profile, examined, verdicts.len(), args.full, ctx)?;
    }
    ctx.line("")
}

/// What a profile says of a file's lines.
fn judged(profile: &str, examined: &Examination, lines: usize, full: bool, ctx: &mut Ctx) -> Result<(), Failure> {
    let paint = ctx.paint();
    let count = invalid(examined).count();
    let shown = if full { count } else { ISSUES_SHOWN };
    for verdict in invalid(examined).take(shown) {
        let place = paint.dim(&format!("line {}", verdict.line));
        for fault in verdict.fault.iter().chain(&verdict.further) {
            let field = paint.red(&format!("{:<18}", fault.field.as_deref().unwrap_or("no message")));
            ctx.line(&format!("  {place:<14} {field} {}", clean::line(&fault.reason)))?;
        }
    }
    if count > shown {
        ctx.line(&format!("  … and {} more (--full)", count - shown))?;
    }
    let verdict = format!("{profile}: {} of {} valid", lines - count, plural(lines as u64, "line"));
    ctx.line(&format!("  {}", if count == 0 { paint.green(&verdict) } else { paint.red(&verdict) }))
}

fn place(issue: &Issue) -> String {
    let file = issue.file.as_ref().map(|file| format!("{file} ")).unwrap_or_default();
    match issue.line {
        Some(line) => format!("{file}line {line}"),
        None => format!("{file}byte {}", issue.offset),
    }
}
