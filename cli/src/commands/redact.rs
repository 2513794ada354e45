//! `redact`: reports secrets in session files, and writes files without them.

mod targets;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rayon::prelude::*;
use scrollback::model::{Error, NotCleaned};
use scrollback::redact::Redactor;
use scrollback::session::ReadOptions;
use scrollback::view::find::SessionName;
use scrollback::view::secrets::{self, FileRole, FileSecrets, SecretFile};
use scrollback::write::Kept;
use scrollback::write::clean_copy::{self, CleanedFile, Cleaning};
use serde_json::Value;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{FAILED, Failure, FailureKind};
use crate::redaction;
use crate::render::plural;
use crate::render::table::{Cell, Column, Table};
use crate::terminal::paint::Paint;
use crate::terminal::progress::LateBar;
use crate::terminal::{ask, clean};
use targets::Target;

/// Find secrets in sessions and files, and remove them
///
/// Reports the rule, the line and the JSON pointer of each secret, and never the secret itself. A session stands for all of its files, a
/// directory for the sessions in and below it, - for standard input; a file that is no session is read as text or JSON. Nothing is changed without --in-place. docs/redaction.md lists
/// what is found, and has a git hook that uses --check.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RedactArgs {
    /// Session ids, files or directories (can be repeated)
    #[arg(required = true, value_name = "SESSION|PATH|DIR")]
    targets: Vec<SessionName>,
    /// Write a copy of one file without secrets; - is standard output
    ///
    /// Record ids, lines, signatures and images stay as they are. Nothing is overwritten.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["in_place", "check"])]
    output: Option<PathBuf>,
    /// Replace files by clean ones; no copy of the secrets is kept
    ///
    /// A file that was written to in the last minute, that a recorder has open, that is compressed or in a database is refused, and then
    /// nothing is changed. Close the session's agent first: one that has been idle for more than a minute is not noticed, and may go on
    /// writing to the old file. On a terminal it asks; elsewhere it needs --yes.
    #[arg(long, conflicts_with = "check")]
    in_place: bool,
    /// Exit with 1 if there is a secret; print only the report
    #[arg(long)]
    check: bool,
    /// Do not ask
    #[arg(long, requires = "in_place")]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback redact ~/.claude/projects
  scrollback redact 3f8a --in-place";

/// How many sessions a sentence lists.
const LISTED_SESSIONS: usize = 6;

/// Larger sessions are read one after the other, so that memory is bounded.
const LARGE_BYTES: u64 = 32 * 1024 * 1024;

/// A table in a pipe is not cut.
const PIPE_COLUMNS: usize = 100_000;

impl RedactArgs {
    /// Whether it changes files.
    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Whether a clean copy goes to standard output.
    pub(crate) fn is_piped(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }
}

/// A target and the secrets of its files.
struct Scan {
    target: Target,
    files: Vec<FileSecrets>,
}

impl Scan {
    fn has_findings(&self) -> bool {
        self.files.iter().any(|file| file.masked > 0)
    }
}

pub(crate) fn run(args: &RedactArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let is_writing = args.in_place || args.output.is_some();
    let redactor = if is_writing { redaction::for_cleaning(ctx)? } else { redaction::for_reading(ctx)? };
    let (targets, mut has_failed) = targets::find(&args.targets, args.check, global, ctx)?;
    if let Some(output) = &args.output {
        return copy(output, args, targets, &redactor, ctx);
    }
    let is_only = targets.len() == 1;
    let mut scans = Vec::new();
    let mut known = HashSet::new();
    // A sub-agent's session that was named, too, has its own rows.
    let logs: HashSet<PathBuf> = targets.iter().filter_map(Target::log).cloned().collect();
    for scanned in scan(targets, &redactor, ctx) {
        match scanned {
            Ok(mut scan) => {
                // Some sessions share a sidecar.
                let log = scan.target.log().cloned();
                let is_anothers = |path: &Path| log.as_deref() != Some(path) && logs.contains(path);
                scan.files.retain(|file| {
                    let mut is_new = || !is_anothers(&file.file) && known.insert(file.file.clone());
                    file.file.as_os_str().is_empty() || is_new()
                });
                scans.push(scan);
            }
            Err(error) if is_only => return Err(error.into()),
            Err(error) => {
                has_failed = true;
                ctx.warn(&error.into())?;
            }
        }
    }
    let is_torn = warn_about_torn(scans.iter().flat_map(|scan| &scan.files), ctx)?;
    // What was not read may have secrets: nobody may take it for clean.
    has_failed |= is_torn && (args.check || args.in_place);
    if !ctx.json {
        print_report(&scans, args, ctx)?;
    }
    let cleaned = if args.in_place { clean_all(&mut scans, args, &redactor, ctx) } else { Ok(true) };
    if ctx.json {
        let files: Vec<&FileSecrets> = scans.iter().flat_map(|scan| &scan.files).collect();
        print_json(&files, &redactor, ctx)?;
    }
    has_failed |= !cleaned?;
    if !args.check {
        note_blobs(&scans, &redactor, ctx)?;
    }
    let has_findings = scans.iter().any(Scan::has_findings);
    Ok(match (has_failed, has_findings && args.check) {
        (true, _) => ExitCode::from(FAILED),
        (false, true) => ExitCode::from(FOUND_PROBLEMS),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Says which snapshots still have secrets: undo needs the true bytes.
fn note_blobs(scans: &[Scan], redactor: &Redactor, ctx: &mut Ctx) -> Result<(), Failure> {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for scan in scans {
        let Target::Session(source) = &scan.target else { continue };
        if let Some((folder, count)) = clean_copy::snapshots_with_secrets(source, redactor, ctx.now) {
            *folders.entry(folder).or_default() += count;
        }
    }
    if !folders.is_empty() {
        ctx.out.flush()?;
    }
    folders.into_iter().try_for_each(|(folder, count)| {
        let (keep, folder) = (if count == 1 { "keeps" } else { "keep" }, folder.display());
        let snapshots = plural(count as u64, "snapshot");
        ctx.note(&format!(
            "{snapshots} {keep} the true bytes of files with secrets in blobs, so that undo works: {folder}"
        ))
    })
}

/// Reads all targets, several at once.
fn scan(targets: Vec<Target>, redactor: &Redactor, ctx: &Ctx) -> Vec<Result<Scan, Error>> {
    let bar = LateBar::new(targets.len() as u64, ctx);
    let now = ctx.now;
    let scan = |target: Target| {
        let reading = ReadOptions::plain(now);
        let files = match &target {
            Target::Session(source) => secrets::in_session(source, redactor, &reading),
            Target::File(path) => secrets::in_file(path, redactor).map(|file| vec![file]),
            Target::Bytes { dialect, bytes } => Ok(vec![secrets::in_bytes(*dialect, bytes, redactor, &reading)]),
        };
        bar.inc(1);
        files.map(|files| Scan { target, files })
    };
    let (large, small): (Vec<_>, Vec<_>) =
        targets.into_iter().enumerate().partition(|(_, target)| target.size_bytes() > LARGE_BYTES);
    let mut scanned: Vec<(usize, Result<Scan, Error>)> =
        small.into_par_iter().map(|(at, target)| (at, scan(target))).collect();
    scanned.extend(large.into_iter().map(|(at, target)| (at, scan(target))));
    bar.finish();
    scanned.sort_by_key(|(at, _)| *at);
    scanned.into_iter().map(|(_, scan)| scan).collect()
}

/// Says which files were not read, or not to their end, and whether there are some.
fn warn_about_torn<'f>(files: impl IntoIterator<Item = &'f FileSecrets>, ctx: &mut Ctx) -> Result<bool, Failure> {
    let mut is_torn = false;
    for (path, why) in files.into_iter().filter_map(|file| Some((&file.path, file.torn.as_ref()?))) {
        is_torn = true;
        ctx.caution("torn", &format!("{path}: {why}"))?;
    }
    Ok(is_torn)
}

/// Prints the files. Each string is masked by itself: beside the path of a file that is a secret as a whole, all would be.
fn print_json(files: &[&FileSecrets], redactor: &Redactor, ctx: &mut Ctx) -> Result<(), Failure> {
    let mut value = serde_json::to_value(files)?;
    if ctx.mask.is_some() {
        mask_strings(&mut value, redactor);
    }
    ctx.stream_json(&value)
}

fn mask_strings(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text).text.into_owned(),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_strings(value, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|value| mask_strings(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn print_report(scans: &[Scan], args: &RedactArgs, ctx: &mut Ctx) -> Result<(), Failure> {
    let files: Vec<&FileSecrets> = scans.iter().flat_map(|scan| &scan.files).collect();
    let found: Vec<&FileSecrets> = files.iter().copied().filter(|file| file.masked > 0).collect();
    found.iter().try_for_each(|file| print_file(file, ctx))?;
    if found.is_empty() {
        return match args.check {
            true => Ok(()),
            false => ctx.line(&format!("no secrets in {}", plural(files.len() as u64, "file"))),
        };
    }
    let count: usize = found.iter().flat_map(|file| &file.findings).map(|row| row.count).sum();
    ctx.line(&format!("{} in {}.", plural(count as u64, "secret"), plural(found.len() as u64, "file")))?;
    let mut holders: BTreeMap<&(String, String), BTreeSet<&str>> = BTreeMap::new();
    for (file, secret) in found.iter().flat_map(|file| file.hashes.iter().map(move |secret| (file, secret))) {
        holders.entry(secret).or_default().insert(&file.session);
    }
    for ((rule, hash), sessions) in holders.into_iter().filter(|(_, sessions)| sessions.len() > 1) {
        let listed: Vec<_> = sessions.iter().take(LISTED_SESSIONS).map(|session| clean::line(session)).collect();
        let more = if sessions.len() > LISTED_SESSIONS { ", …" } else { "" };
        let (count, listed) = (sessions.len(), listed.join(", "));
        ctx.line(&format!("The same {rule} ({hash}) is in {count} sessions: {listed}{more}."))?;
    }
    ctx.line("Rotate secrets that are still in use: removing them here does not revoke them.")
}

fn print_file(file: &FileSecrets, ctx: &mut Ctx) -> Result<(), Failure> {
    let paint = ctx.paint();
    let about = file.dialect.as_deref().unwrap_or("text");
    ctx.line(&format!("{}  {}", paint.bold(&clean::line(&file.path)), paint.dim(about)))?;
    let mut table = Table::new(vec![
        Column::right("LINE"),
        Column::fixed("RULE"),
        Column::right("COUNT"),
        Column::shrinking("POINTER", 16),
        Column::shrinking("RECORD", 8).spare(1),
    ]);
    for row in &file.findings {
        table.push(vec![
            Cell::new(row.line.to_string(), Paint::dim),
            Cell::new(clean::line(&row.rule), Paint::yellow),
            Cell::new(row.count.to_string(), Paint::plain),
            Cell::new(clean::line(&row.pointer), Paint::plain),
            Cell::new(clean::line(row.record.as_deref().unwrap_or_default()), Paint::cyan),
        ]);
    }
    let width = if ctx.on_terminal { ctx.look.width.saturating_sub(2) } else { PIPE_COLUMNS };
    let table = table.render(width, paint);
    table.lines().try_for_each(|line| ctx.line(&format!("  {line}")))?;
    ctx.line("")
}

/// Replaces every file that has secrets. Returns whether all were; if one is refused beforehand, nothing is changed.
fn clean_all(scans: &mut [Scan], args: &RedactArgs, redactor: &Redactor, ctx: &mut Ctx) -> Result<bool, Failure> {
    let host = ctx.host();
    ctx.check_home(ctx.home.data(), "XDG_DATA_HOME or SCROLLBACK_HOME")?;
    // A kept copy may be a second name of the agent's file, which would keep the secrets.
    let kept = Kept::open(&ctx.home, host.clone());
    for scan in scans.iter() {
        if let Target::Session(source) = &scan.target {
            kept.separate(source)?;
        }
    }
    let mut wanted = Vec::new();
    for scan in scans.iter_mut().filter(|scan| scan.has_findings()) {
        let files = files_to_clean(scan, redactor)?;
        if let Some(log) = scan.target.log() {
            drop(clean_copy::quiet(log, &host)?);
        }
        files.iter().try_for_each(|file| clean_copy::check_cleanable(file, &host))?;
        wanted.push((scan, files));
    }
    let roles: Vec<FileRole> = wanted.iter().flat_map(|(_, files)| files).map(|file| file.role).collect();
    if roles.is_empty() {
        return Ok(true);
    }
    if !may_clean(&roles, args, ctx)? {
        return Err(Failure::new(FailureKind::Usage, "nothing was changed").hint("answer y, or add --yes"));
    }
    let mut is_done = true;
    for (scan, files) in wanted {
        let cleaned = (|| {
            let _quiet = scan.target.log().map(|log| clean_copy::quiet(log, &host)).transpose()?;
            let files: Vec<&SecretFile> = files.iter().collect();
            clean_copy::clean_in_place(&files, redactor, &host)
        })();
        match cleaned {
            Ok(Cleaning { done, failed }) => {
                note_cleaned(scan, &done, ctx)?;
                if let Some(error) = failed {
                    is_done = false;
                    ctx.warn(&error.into())?;
                }
            }
            Err(error) => {
                is_done = false;
                ctx.warn(&error.into())?;
            }
        }
    }
    Ok(is_done)
}

/// The files of a target that have secrets. The description of an original goes with it.
fn files_to_clean(scan: &Scan, redactor: &Redactor) -> Result<Vec<SecretFile>, Failure> {
    let has_findings = |path: &Path| scan.files.iter().any(|file| file.masked > 0 && file.file == path);
    match &scan.target {
        Target::Session(source) => {
            let files = SecretFile::of_session(source);
            if files.is_empty() {
                let refused = Error::NotCleaned { path: source.path.clone(), why: NotCleaned::Database };
                return Err(refused.into());
            }
            let is_original = |file: &SecretFile| file.role == FileRole::Original;
            let drops_original = files.iter().any(|file| is_original(file) && has_findings(&file.path));
            let is_wanted =
                |file: &SecretFile| if is_original(file) { drops_original } else { has_findings(&file.path) };
            Ok(files.into_iter().filter(is_wanted).collect())
        }
        Target::File(path) if redactor.is_sensitive_file(&path.to_string_lossy()) => {
            let message = format!("{}: is a secret as a whole, and is not rewritten", path.display());
            Err(Failure::new(FailureKind::Usage, message).hint("keep it out of the repository, or use --output FILE"))
        }
        Target::File(path) => Ok(vec![SecretFile::text(path)]),
        Target::Bytes { .. } => Err(Failure::new(FailureKind::Usage, "piped input has no place to be cleaned in")
            .hint("use --output FILE, or name the file")),
    }
}

/// Asks on a terminal; elsewhere `--yes` is needed.
fn may_clean(roles: &[FileRole], args: &RedactArgs, ctx: &mut Ctx) -> Result<bool, Failure> {
    if args.yes {
        return Ok(true);
    }
    let count = |is_backup: bool| roles.iter().filter(|role| (**role == FileRole::Backup) == is_backup).count() as u64;
    let files = plural(count(false), "file");
    let backups = Some(count(true)).filter(|count| *count > 0).map(|count| plural(count, "file backup"));
    if !ask::is_possible(ctx) {
        let deleted = backups.map(|backups| format!(", and {backups} of the agent deleted")).unwrap_or_default();
        let message = format!("{files} would be rewritten for good{deleted}");
        return Err(Failure::new(FailureKind::Usage, message).hint("add --yes, or leave out --in-place to see them"));
    }
    let deleted = backups.map(|backups| format!(", and delete {backups} of the agent")).unwrap_or_default();
    ask::is_agreed(&format!("Remove the secrets from {files} for good{deleted}?"), ctx)
}

/// Says what was done to a session, and what that means.
fn note_cleaned(scan: &mut Scan, cleaned: &[CleanedFile], ctx: &mut Ctx) -> Result<(), Failure> {
    let is_log_changed = cleaned.iter().any(|cleaned| scan.target.log() == Some(&cleaned.path));
    let is_original_gone = cleaned.iter().any(|cleaned| cleaned.role == FileRole::Original);
    for CleanedFile { path, role } in cleaned {
        let deleted = role.is_deleted();
        let file = scan.files.iter_mut().find(|file| file.file == *path);
        if let Some(file) = file {
            file.deleted = deleted;
            file.output = (!deleted).then(|| path.to_string_lossy().into_owned());
        }
        if !ctx.json {
            let word = if deleted { "deleted" } else { "cleaned" };
            ctx.line(&format!("{word} {}", clean::line(&path.to_string_lossy())))?;
        }
    }
    // Notes come after it on a terminal.
    ctx.out.flush()?;
    let Target::Session(source) = &scan.target else { return Ok(()) };
    let is_kept = |file: &SecretFile| file.role == FileRole::Original;
    let has_original = is_original_gone || SecretFile::of_session(source).iter().any(is_kept);
    if has_original && (is_original_gone || is_log_changed) {
        ctx.note("Converting this session back will no longer restore the original.")?;
    }
    if scan.files.iter().any(|file| file.is_in_snapshot) {
        ctx.note("Undo can no longer restore files whose content had a secret in a snapshot.")?;
    }
    let backups = cleaned.iter().filter(|cleaned| cleaned.role == FileRole::Backup).count() as u64;
    if backups > 0 {
        let backups = plural(backups, "file backup");
        ctx.note(&format!("Deleted {backups} of the agent: undo can no longer restore what was in them."))?;
    }
    Ok(())
}

/// Writes the clean copy of one file.
fn copy(
    output: &Path,
    args: &RedactArgs,
    mut targets: Vec<Target>,
    redactor: &Redactor,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    if args.is_piped() && ctx.on_terminal {
        let failure = Failure::new(FailureKind::Usage, "standard output is a terminal");
        return Err(failure.hint("redirect it to a file or a program, or use --output FILE"));
    }
    if output.extension().is_some_and(|ending| ending == "gz" || ending == "zst") {
        let failure = Failure::new(FailureKind::Usage, format!("{}: a clean copy is not compressed", output.display()));
        return Err(failure.hint(format!("drop the ending: --output {}", output.with_extension("").display())));
    }
    let (Some(target), true) = (targets.pop(), targets.is_empty()) else {
        let failure = Failure::new(FailureKind::Usage, "--output writes a copy of one file");
        return Err(failure.hint("name one file or session"));
    };
    let scanned = scan(vec![target], redactor, ctx).pop();
    let Some(Scan { target, mut files }) = scanned.transpose()? else { return Ok(ExitCode::SUCCESS) };
    files.truncate(1);
    let bytes = match target {
        Target::Bytes { bytes, .. } => clean_copy::clean_bytes(bytes, redactor)?,
        Target::File(path) if redactor.is_sensitive_file(&path.to_string_lossy()) => {
            clean_copy::clean_assignments(&path, redactor)?.ok_or_else(|| {
                let message = format!("{}: is a secret as a whole, and has more than NAME=value lines", path.display());
                Failure::new(FailureKind::Usage, message).hint("write an example file by hand")
            })?
        }
        Target::File(path) => clean_copy::clean_content(&SecretFile::text(&path), redactor)?,
        Target::Session(source) => {
            let all = SecretFile::of_session(&source);
            let Some(file) = all.first() else {
                return Err(Error::NotCleaned { path: source.path, why: NotCleaned::Database }.into());
            };
            let further = all.iter().filter(|file| file.role == FileRole::Log).count() - 1;
            if further > 0 {
                let files = plural(further as u64, "further file");
                ctx.note(&format!("The session has {files}; only {} is copied.", file.path.display()))?;
            }
            clean_copy::clean_content(file, redactor)?
        }
    };
    warn_about_torn(&files, ctx)?;
    if args.is_piped() {
        ctx.out.write_all(&bytes)?;
        let masked: usize = files.iter().map(|file| file.masked).sum();
        ctx.note(&format!("{} masked.", plural(masked as u64, "string")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = ctx.typed_in.join(output);
    clean_copy::write_new_file(&path, &bytes, &ctx.host())?;
    files.iter_mut().for_each(|file| file.output = Some(path.to_string_lossy().into_owned()));
    if ctx.json {
        print_json(&files.iter().collect::<Vec<_>>(), redactor, ctx)?;
        return Ok(ExitCode::SUCCESS);
    }
    files.iter().filter(|file| file.masked > 0).try_for_each(|file| print_file(file, ctx))?;
    ctx.line(&format!("wrote {}", clean::line(&path.to_string_lossy())))?;
    Ok(ExitCode::SUCCESS)
}
