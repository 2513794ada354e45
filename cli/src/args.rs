//! The command line: commands, global options, and how usage errors are printed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::commands::{
    completions::CompletionsArgs,
    config::ConfigArgs,
    convert::ConvertArgs,
    doctor::DoctorArgs,
    export::ExportArgs,
    extract_tools::ExtractToolsArgs,
    files::FilesArgs,
    fork::ForkArgs,
    history::HistoryArgs,
    hook::HookArgs,
    import::ImportArgs,
    index::IndexArgs,
    keep::KeepArgs,
    list::ListArgs,
    new::NewArgs,
    record::RecordArgs,
    redact::RedactArgs,
    remove::RemoveArgs,
    rename::RenameArgs,
    replay::ReplayArgs,
    resume::ResumeArgs,
    rewind::RewindArgs,
    search::SearchArgs,
    serve::ServeArgs,
    show::ShowArgs,
    sql::SqlArgs,
    stats::StatsArgs,
    tail::TailArgs,
    trash::TrashArgs,
    tree::TreeArgs,
    undo::{RedoArgs, UndoArgs},
};
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::heap;

/// The session history of every AI agent, in one place
///
/// Reads the session files of AI agents where they are. Only a command that names a session changes it.
///
/// To name a session, use its id or a unique prefix, @ (the newest of this project), @~1 (the one before it), DIALECT:@ (the newest of
/// one agent), DIALECT:ID, a path (with a slash or an ending such as .jsonl), or - (standard input). SESSION#ID names one message of it.
#[derive(Parser, Debug)]
#[command(
    name = "scrollback",
    disable_version_flag = true,
    max_term_width = 100,
    after_long_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) global: Global,
    /// Print the version
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback --demo list
  scrollback show @";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    #[command(visible_alias = "ls")]
    List(ListArgs),
    Search(SearchArgs),
    Stats(StatsArgs),
    Sql(SqlArgs),
    Show(ShowArgs),
    Tree(TreeArgs),
    Tail(TailArgs),
    Replay(ReplayArgs),
    History(HistoryArgs),
    ExtractTools(ExtractToolsArgs),
    Export(ExportArgs),
    Serve(ServeArgs),
    Resume(ResumeArgs),
    Record(RecordArgs),
    New(NewArgs),
    Fork(ForkArgs),
    Convert(ConvertArgs),
    Rewind(RewindArgs),
    Undo(UndoArgs),
    Redo(RedoArgs),
    Files(FilesArgs),
    Rename(RenameArgs),
    Remove(RemoveArgs),
    Trash(TrashArgs),
    Import(ImportArgs),
    Index(IndexArgs),
    Hook(HookArgs),
    Keep(KeepArgs),
    Doctor(DoctorArgs),
    Redact(RedactArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(
        after_long_help = "Examples:\n  scrollback man | man -l -\n  scrollback man > ~/.local/share/man/man1/scrollback.1"
    )]
    Man,
}

impl Command {
    /// Whether it writes to a session or creates one. `convert` may write somewhere else.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Command::Record(_)
            | Command::New(_)
            | Command::Fork(_)
            | Command::Rewind(_)
            | Command::Undo(_)
            | Command::Redo(_)
            | Command::Rename(_)
            | Command::Remove(_)
            | Command::Trash(_)
            | Command::Import(_) => true,
            Command::Redact(args) => args.is_in_place(),
            Command::Keep(args) => args.writes(),
            Command::List(_)
            | Command::Search(_)
            | Command::Stats(_)
            | Command::Sql(_)
            | Command::Index(_)
            | Command::Hook(_)
            | Command::Show(_)
            | Command::Tree(_)
            | Command::Tail(_)
            | Command::Replay(_)
            | Command::History(_)
            | Command::ExtractTools(_)
            | Command::Export(_)
            | Command::Serve(_)
            | Command::Resume(_)
            | Command::Convert(_)
            | Command::Files(_)
            | Command::Doctor(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man => false,
        }
    }
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Choose when to use colours (default: `color` in the config file, else auto)
    #[arg(long, global = true, value_name = "WHEN")]
    pub(crate) color: Option<ColorChoice>,
    /// Read the bundled demo sessions instead of your own
    #[arg(long, global = true)]
    pub(crate) demo: bool,
    /// Mask secrets (default: where standard output is not a terminal, and in recordings)
    #[arg(long, global = true, help_heading = "Secrets")]
    pub(crate) redact: bool,
    /// Do not mask secrets
    #[arg(long, global = true, help_heading = "Secrets", conflicts_with = "redact")]
    pub(crate) no_redact: bool,
    /// Include every project, not only the current one
    #[arg(long, short = 'a', global = true, help_heading = "Scope")]
    pub(crate) all: bool,
    /// Include only sessions of this directory's project
    #[arg(long, global = true, value_name = "DIR", help_heading = "Scope", conflicts_with = "all")]
    pub(crate) project: Option<PathBuf>,
    /// Include only this agent's sessions (claude, codex, qwen, …), and read files in its format
    #[arg(long, global = true, value_name = "NAME", help_heading = "Scope")]
    pub(crate) dialect: Option<String>,
    /// Search this store instead of the default locations
    #[arg(long, global = true, value_name = "DIR", help_heading = "Scope")]
    pub(crate) store: Option<PathBuf>,
    /// Include only sessions updated since this time: a date, an instant, or an age such as 3d
    #[arg(long, global = true, value_name = "TIME", help_heading = "Scope")]
    pub(crate) since: Option<String>,
    /// Include only sessions updated before this time
    #[arg(long, global = true, value_name = "TIME", help_heading = "Scope")]
    pub(crate) until: Option<String>,
}

impl Global {
    /// No option at all.
    pub(crate) fn plain() -> Global {
        Global {
            json: false,
            color: None,
            demo: false,
            redact: false,
            no_redact: false,
            all: false,
            project: None,
            dialect: None,
            store: None,
            since: None,
            until: None,
        }
    }
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    /// Use colours on a terminal, unless NO_COLOR is set
    Auto,
    /// Use colours everywhere
    Always,
    /// Use no colours
    Never,
}

/// Parses the command line. Help and usage errors are printed here.
pub(crate) fn parse() -> Result<(Ctx, Cli), ExitCode> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let error = match Cli::try_parse_from(&typed) {
        Ok(cli) => {
            if let Some(Command::Serve(_)) = cli.command {
                heap::restart_small(&typed);
            }
            let ctx = Ctx::system(&cli.global);
            return Ok((ctx, cli));
        }
        Err(error) => error,
    };
    if !error.use_stderr() {
        // This is help. A closed pipe is not an error.
        drop(error.print());
        return Err(ExitCode::SUCCESS);
    }
    let wants_json = typed.iter().any(|word| word == "--json" || word == "--jsonl" || word == "--chunks");
    let mut ctx = Ctx::plain(wants_json);
    Err(ctx.finish(Err(misuse(&error, &typed))))
}

/// Shortens clap's message to one line and a hint.
fn misuse(error: &clap::Error, typed: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let rest: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    // Nobody who mistypes an option means it as a value.
    let is_meant = |tip: &&str| !tip.starts_with("to pass ");
    let tip = rest.iter().filter_map(|line| line.strip_prefix("tip: ")).find(is_meant).map(str::to_owned);
    let listed = rest.iter().filter(|line| !line.starts_with("tip: ")).copied().collect::<Vec<_>>().join(" ");
    let cli = Cli::command();
    let command = typed.iter().filter_map(|word| word.to_str()).find(|word| cli.find_subcommand(word).is_some());
    let help = command.map_or_else(|| "--help".to_owned(), |command| format!("{command} --help"));
    let message = if listed.is_empty() { first } else { format!("{first} {listed}") };
    Failure::new(FailureKind::Usage, message).hint(tip.unwrap_or_else(|| format!("run `scrollback {help}`")))
}
