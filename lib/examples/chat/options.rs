//! The command line of the example.

use std::path::PathBuf;

use scrollback::dialect::{self, Dialect};
use scrollback::model::home::Home;

use super::model::{Failure, Model};

pub(crate) const HELP: &str = "\
Usage: cargo run -p scrollback-lib --example chat -- [OPTIONS]

  --continue               go on with the newest session of this project
  --resume ID              go on with this session; a unique beginning of its id does
  --checkpoint ID#RECORD   go on from this record; what came after it stays a branch
  --format DIALECT         native (default), claude-code, codex, qwen-code, fluux, sage-el, ai-sdk
  --store DIR              where the sessions lie; another agent's folder, where its format is written
  --with JID               whom a fluux session is with
  --script FILE            answers from a file instead of a model, from the beginning again after the last:
                           [{\"think\": \"…\", \"text\": \"…\", \"calls\": [{\"name\": \"…\", \"input\": {…}}]}, …]
  --acks                   print a line of JSON for each record that is on disk

The model: ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, or OPENAI_BASE_URL and OPENAI_API_KEY; MODEL names it.
Only http:// is spoken: for https start a proxy on this machine.

  /new  /rewind N|RECORD  /fork  /title TEXT  /todos [TEXT|N]  /export  /help  /quit";

/// What was typed.
pub(crate) struct Options {
    /// A session, or a record of one as `ID#RECORD`.
    pub(crate) resume: Option<String>,
    pub(crate) is_continued: bool,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) store: PathBuf,
    pub(crate) with: Option<String>,
    pub(crate) prints_acks: bool,
    pub(crate) model: Model,
}

/// Nothing where help is wanted.
pub(crate) fn read(args: &mut dyn Iterator<Item = String>) -> Result<Option<Options>, Failure> {
    let (mut resume, mut store, mut script, mut with) = (None, None, None, None);
    let (mut format, mut is_continued, mut prints_acks, mut points) = ("native".to_owned(), false, false, 0);
    while let Some(option) = args.next() {
        points += usize::from(matches!(option.as_str(), "--continue" | "--resume" | "--checkpoint"));
        let mut value = || args.next().ok_or_else(|| format!("{option} is followed by nothing; see --help"));
        match option.as_str() {
            "--continue" => is_continued = true,
            "--resume" => resume = Some(value()?),
            "--checkpoint" => {
                resume = Some(value()?);
                resume.as_ref().filter(|named| named.contains('#')).ok_or("--checkpoint wants ID#RECORD")?;
            }
            "--format" => format = value()?,
            "--store" => store = Some(PathBuf::from(value()?)),
            "--with" => with = Some(value()?),
            "--script" => script = Some(value()?),
            "--acks" => prints_acks = true,
            "--help" => return Ok(None),
            _ => return Err(format!("no option {option}; see --help").into()),
        }
    }
    (points < 2).then_some(()).ok_or("--continue, --resume and --checkpoint exclude one another")?;
    let dialect = dialect::named(&format).ok_or_else(|| format!("no format {format:?}; see --help"))?;
    let vars = std::env::vars_os().filter_map(|(key, told)| Some((key.into_string().ok()?, told.into_string().ok()?)));
    let home = || Some(Home { dir: std::env::var_os("HOME")?.into(), cwd: PathBuf::new(), vars: vars.collect() });
    let store = store.or_else(|| Some(home().filter(|_| format == "native")?.data()));
    let store = store.ok_or_else(|| format!("--format {format} needs --store"))?;
    let turns = |file: &String| Ok::<_, Failure>(serde_json::from_slice(&std::fs::read(file)?)?);
    let play = |file| Ok(Model::Script(turns(&file).map_err(|error| format!("{file}: {error}"))?));
    let model = script.map_or_else(Model::named, play)?;
    Ok(Some(Options { resume, is_continued, dialect, store, with, prints_acks, model }))
}
