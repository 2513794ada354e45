//! How a session is named: an id or its beginning, `@`, `@~1`, `DIALECT:ID`, a path, `-`; and a record in it by `#ID`.

use std::path::Path;
use std::str::FromStr;

use scrollback::model::record::TitleSource;
use scrollback::session::read::source::Source;
use scrollback::session::{NotFound, RecordRef, Session};
use scrollback::view::answers::SessionRow;
use scrollback::view::listing::Depth;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::located::Located;
use crate::scope;

/// What was typed for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionName {
    typed: String,
}

impl FromStr for SessionName {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        if typed.is_empty() {
            return Err("a session's name is not empty".to_owned());
        }
        Ok(SessionName { typed: typed.to_owned() })
    }
}

/// A session, and the record in it that was named.
pub(crate) struct Named {
    pub(crate) located: Located,
    pub(crate) record: Option<String>,
    /// The summary of it that stands in another session's file, where the sessions were looked through.
    pub(crate) summary: Option<String>,
}

impl SessionName {
    /// What was typed, letter by letter.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// Whether a file was named by its path: then only its content tells whose it is.
    pub(crate) fn is_file(&self, ctx: &Ctx) -> bool {
        let name = self.typed.rsplit_once('#').map_or(self.typed.as_str(), |(name, _)| name);
        let is_file = |name: &str| looks_like_a_path(name, ctx) && ctx.home.cwd.join(name).is_file();
        is_file(&self.typed) || is_file(name)
    }

    /// Finds what is meant.
    pub(crate) fn resolve(&self, global: &Global, ctx: &mut Ctx) -> Result<Named, Failure> {
        if looks_like_a_path(&self.typed, ctx) {
            return Ok(Named { located: Located::at(&self.typed, global, ctx)?, record: None, summary: None });
        }
        let (name, record) = match self.typed.rsplit_once('#') {
            Some((name, record)) if !record.is_empty() && !name.is_empty() => (name, Some(record.to_owned())),
            _ => (self.typed.as_str(), None),
        };
        if let Some(session) = record.as_deref().filter(|_| looks_like_a_path(name, ctx)) {
            let located = Located::at(name, global, ctx)?;
            // Of a database, what is behind the # names one of its sessions.
            return Ok(match located.session_in(session, ctx)? {
                Some(located) => Named { located, record: None, summary: None },
                None => Named { located, record, summary: None },
            });
        }
        if name == "-" {
            return Ok(Named { located: Located::of_stdin(global)?, record, summary: None });
        }
        if let Some(back) = back_from_newest(name) {
            return Ok(Named::listed(newest(back?, global, ctx)?, record));
        }
        let (rows, _) = scope::rows(global, ctx, Depth::Windows)?;
        // An id is a stranger's: it may hold a # or look like a path.
        if let Some(row) = rows.iter().find(|(row, _)| row.id.as_str() == self.typed) {
            return Ok(Named::listed(row.clone(), None));
        }
        match by_id(name, rows) {
            Err(failure) if failure.kind == FailureKind::NotFound && name.contains(['/', '\\']) => {
                Ok(Named { located: Located::at(name, global, ctx)?, record, summary: None })
            }
            row => Ok(Named::listed(row?, record)),
        }
    }
}

impl Named {
    fn listed((row, source): (SessionRow, Source), record: Option<String>) -> Named {
        let summary = (row.title_source == TitleSource::Summary).then_some(row.title);
        Named { located: Located::Source(Box::new(source)), record, summary }
    }
}

/// The record that was named, or why there is none.
pub(crate) fn record<'s>(session: &'s Session, name: &str) -> Result<RecordRef<'s>, Failure> {
    session.find(name).map_err(|error| match error {
        NotFound::Nothing => {
            let message = format!("no record of session {} matches {name:?}", session.id());
            Failure::new(FailureKind::NotFound, message).hint("`scrollback tree SESSION` shows every record")
        }
        NotFound::Several(ids) => {
            let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
            Failure::new(FailureKind::Usage, format!("several records match {name:?}"))
                .hint(format!("say more of one: {}", ids.join(", ")))
        }
    })
}

fn looks_like_a_path(name: &str, ctx: &Ctx) -> bool {
    let is_special = |name: &str| name == "-" || name.starts_with('@');
    !is_special(name) && ctx.home.cwd.join(name).exists()
}

/// `@` is 0, `@~2` is 2.
fn back_from_newest(name: &str) -> Option<Result<usize, Failure>> {
    let rest = name.strip_prefix('@')?;
    if rest.is_empty() {
        return Some(Ok(0));
    }
    let count = rest.strip_prefix('~').map(|count| if count.is_empty() { Ok(1) } else { count.parse() });
    Some(match count {
        Some(Ok(count)) => Ok(count),
        _ => {
            let message = format!("{name:?} names no session");
            Err(Failure::new(FailureKind::Usage, message).hint("@ is the newest of this project, @~1 the one before"))
        }
    })
}

fn newest(back: usize, global: &Global, ctx: &mut Ctx) -> Result<(SessionRow, Source), Failure> {
    let found = scope::found(global, ctx, Depth::Windows)?;
    let mut of_people = found.rows.into_iter().filter(|(row, _)| row.parent_session.is_none());
    let count = of_people.clone().count();
    of_people.nth(back).ok_or_else(|| {
        let message = match (count, &found.project) {
            (0, Some(project)) => format!("no session in {}", project.display()),
            (0, None) => "no session".to_owned(),
            (count, _) => format!("there are only {count} sessions"),
        };
        let failure = Failure::new(FailureKind::NotFound, message);
        if found.hidden > 0 {
            failure.hint(format!("{} sessions belong to other projects: add --all", found.hidden))
        } else {
            failure.hint("`scrollback --demo list` shows the bundled ones")
        }
    })
}

/// The rows of which a name begins so; where one is exactly so, only that one.
fn matching(
    rows: &[(SessionRow, Source)],
    prefix: &str,
    names: impl Fn(&SessionRow, &Source) -> Vec<String>,
) -> scope::Rows {
    let which = |fits: &dyn Fn(&str) -> bool| -> scope::Rows {
        let fitting = rows.iter().filter(|(row, source)| names(row, source).iter().any(|name| fits(name)));
        fitting.cloned().collect()
    };
    let exact = which(&|name| name == prefix);
    if exact.is_empty() { which(&|name| name.starts_with(prefix)) } else { exact }
}

/// What a session is called by its place, where that is not what every session's file is called.
fn place_names(source: &Source) -> Vec<String> {
    let is_own = source.layout.pattern.rsplit('/').next().is_some_and(|name| name.contains('*'));
    let stem = source.path.file_stem().filter(|_| is_own && source.key.is_none());
    stem.map(|stem| stem.to_string_lossy().into_owned()).into_iter().chain([source.name()]).collect()
}

/// The session whose id begins so; or else the one whose file or folder is called so.
fn by_id(name: &str, rows: scope::Rows) -> Result<(SessionRow, Source), Failure> {
    let (wanted, prefix) = match name.split_once(':') {
        Some((dialect, prefix)) if scrollback::dialect::named(dialect).is_some() => (Some(dialect.to_owned()), prefix),
        _ => (None, name),
    };
    let of_dialect = rows.into_iter().filter(|(row, _)| wanted.as_deref().is_none_or(|wanted| row.dialect == wanted));
    let rows: Vec<_> = of_dialect.collect();
    let by_ids = matching(&rows, prefix, |row, _| vec![row.id.as_str().to_owned()]);
    let mut matching =
        if by_ids.is_empty() { matching(&rows, prefix, |_, source| place_names(source)) } else { by_ids };
    match matching.len() {
        1 => Ok(matching.swap_remove(0)),
        0 => {
            let failure = Failure::new(FailureKind::NotFound, format!("no session matches {name:?}"));
            let is_file_name = Path::new(name).extension().is_some();
            let hint = "`scrollback list --all` shows every id";
            Err(failure.hint(if is_file_name { format!("and there is no such file; {hint}") } else { hint.to_owned() }))
        }
        count => {
            const LISTED: usize = 6;
            let same_id = matching.iter().all(|(row, _)| row.id == matching[0].0.id);
            let listed = matching.iter().take(LISTED);
            let names: Vec<String> = if same_id {
                listed.map(|(row, _)| row.path.clone()).collect()
            } else {
                listed.map(|(row, _)| format!("{}:{}", row.dialect, row.id)).collect()
            };
            let more = if count > LISTED { ", …" } else { "" };
            let failure = Failure::new(FailureKind::Usage, format!("{count} sessions match {name:?}"));
            Err(failure.hint(format!("say more of one: {}{more}", names.join(", "))))
        }
    }
}
