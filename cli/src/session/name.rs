//! Finds the session and the record that an argument names, and explains why there is none.

use std::cell::{LazyCell, RefCell};

use scrollback::dialect;
use scrollback::model::Error;
use scrollback::session::{RecordRef, Session};
use scrollback::view::find::{Location, Lookup, Match, Memory, NameError, Places, SessionName};
use scrollback::view::listing::Depth;

use super::located::Located;
use super::{archive, scope};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind, use_a_path};
use crate::render::plural;

/// A session, and the record in it that was named.
pub(crate) struct Named {
    pub(crate) located: Located,
    pub(crate) record: Option<String>,
}

/// Finds the session that was named. Prints a warning for each file that cannot be read.
pub(crate) fn resolve(name: &SessionName, global: &Global, ctx: &mut Ctx) -> Result<Named, Failure> {
    let (places, scope) = (scope::places(global, ctx)?, scope::scope(global, ctx)?);
    let mut unreadable = Vec::new();
    // A path needs none.
    let archive = LazyCell::new(|| RefCell::new(archive::open_known(places.clone(), global, ctx)));
    let memory = Memory {
        ids: &|sources| archive.borrow_mut().ids(sources),
        describe: &|sources| archive.borrow_mut().describe(sources, Depth::Ends, &|| {}),
    };
    let lookup = Lookup { places: &places, scope: &scope, now: ctx.now, memory: Some(memory) };
    let resolved = name.resolve(lookup, &mut unreadable);
    for error in unreadable {
        ctx.warn(&error.into())?;
    }
    let named = resolved.map_err(|error| match error {
        NameError::TooFew { count: 0, hidden: 0, .. } => {
            let of_dialect = name.typed().split_once(':').and_then(|(dialect, _)| dialect::named(dialect));
            let searched = scope::searched(&Places { dialect: of_dialect.or(places.dialect), ..places.clone() });
            let hint = format!("{searched}; run `scrollback --demo list` to see the bundled demo sessions");
            Failure::new(FailureKind::NotFound, error.to_string()).hint(hint)
        }
        error => error.into(),
    })?;
    let located = match named.location {
        Location::Source(source) => Located::Source(source),
        Location::Pipe(path) => Located::from_pipe(&path, places.dialect)?,
        Location::Stdin => Located::from_stdin(places.dialect)?,
    };
    Ok(Named { located, record: named.record })
}

/// The record that was named, or why there is none.
pub(crate) fn record<'s>(session: &'s Session, name: &str) -> Result<RecordRef<'s>, Failure> {
    session.find(name).map_err(|error| match error {
        Error::NoRecord(_) => {
            let message = format!("no record {name:?} in session {}", session.id());
            Failure::new(FailureKind::NotFound, message)
                .hint(format!("run `scrollback tree {} --records` to see every record", session.id()))
        }
        error => error.into(),
    })
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Failure {
        let message = error.to_string();
        let (kind, hint) = match error {
            NameError::Read(error) => return error.into(),
            NameError::NotFound(name) => match of_unknown_dialect(&name) {
                Some(dialect) => return scope::unknown_dialect(dialect),
                None => (FailureKind::NotFound, "run `scrollback list --all` to see every id".to_owned()),
            },
            NameError::NeedsSlash(name) => {
                (FailureKind::NotFound, format!("use ./{name} for the file or folder of that name in this directory"))
            }
            NameError::Ambiguous { matches, .. } => (FailureKind::Usage, longer_names(&matches)),
            NameError::Malformed(_) => (
                FailureKind::Usage,
                "use @ for the newest session of this project, @~1 for the one before it, codex:@ for an agent's"
                    .to_owned(),
            ),
            NameError::TooFew { count: 1.., hidden: 0, .. } => {
                (FailureKind::NotFound, "run `scrollback list` to see them".to_owned())
            }
            NameError::TooFew { hidden: 0, .. } => {
                (FailureKind::NotFound, "run `scrollback --demo list` to see the bundled demo sessions".to_owned())
            }
            NameError::TooFew { hidden, .. } => {
                (FailureKind::NotFound, format!("{} in other projects: add --all", plural(hidden as u64, "session")))
            }
            NameError::NotASession(_) => {
                let hint = "name a file in it, or run `scrollback list --store DIR` to list a store";
                (FailureKind::Usage, hint.to_owned())
            }
            NameError::InFile { file, count, .. } => {
                let kind = if count == 0 { FailureKind::NotFound } else { FailureKind::Usage };
                (kind, format!("run `scrollback list --store {}` to see every id", file.display()))
            }
        };
        Failure::new(kind, message).hint(hint)
    }
}

/// The name in `NAME:@`, if no dialect has it.
fn of_unknown_dialect(name: &str) -> Option<&str> {
    let (dialect, rest) = name.split_once(':')?;
    (rest.starts_with('@') && dialect::named(dialect).is_none()).then_some(dialect)
}

/// How to name one of the matches.
fn longer_names(matches: &[Match]) -> String {
    const LISTED: usize = 6;
    if matches.iter().all(|other| other.id == matches[0].id) {
        return use_a_path(matches.iter().map(|one| &one.path));
    }
    let is_unique =
        |one: &Match| matches.iter().filter(|other| (other.dialect, &other.id) == (one.dialect, &one.id)).count() == 1;
    let name = |one: &Match| match is_unique(one) {
        true => format!("{}:{}", one.dialect, one.id),
        false => one.path.display().to_string(),
    };
    let names: Vec<String> = matches.iter().take(LISTED).map(name).collect();
    let more = if matches.len() > LISTED { ", …" } else { "" };
    format!("use a longer prefix: {}{more}", names.join(", "))
}
