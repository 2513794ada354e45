//! The session that a command writes to, with its store; and the store of a new session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrollback::dialect::{Dialect, bare_jid};
use scrollback::model::{Home, Host, project};
use scrollback::redact::Redactor;
use scrollback::session::{Bridge, Session, Source};
use scrollback::view::find::SessionName;
use scrollback::write::{Store, Trash};
use serde::Serialize;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::located::Located;
use crate::session::name;
use crate::session::resume::Resumable;

/// The session that a command writes to.
pub(crate) struct Writable {
    pub(crate) source: Source,
    pub(crate) session: Session,
    /// The record that was named after `#`.
    pub(crate) record: Option<String>,
    host: Host,
    /// The folder of its store.
    root: PathBuf,
}

/// What a writing command prints with `--json`.
#[derive(Serialize)]
pub(crate) struct Done {
    pub(crate) session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<String>,
    pub(crate) path: PathBuf,
}

/// Fails with `--demo`, which is read-only.
pub(crate) fn refuse_demo(ctx: &Ctx) -> Result<(), Failure> {
    if !ctx.demo {
        return Ok(());
    }
    let failure = Failure::new(FailureKind::Usage, "the demo is read-only");
    Err(failure.hint("leave out --demo to write to your own sessions"))
}

impl Writable {
    /// Finds and reads the session that was named.
    pub(crate) fn find(name: &SessionName, global: &Global, ctx: &mut Ctx) -> Result<Writable, Failure> {
        Writable::find_masked(name, global, None, ctx)
    }

    /// The same, to copy it without secrets.
    pub(crate) fn find_masked(
        name: &SessionName,
        global: &Global,
        mask: Option<Arc<Redactor>>,
        ctx: &mut Ctx,
    ) -> Result<Writable, Failure> {
        let named = name::resolve(name, global, ctx)?;
        let Located::Source(source) = named.located else {
            let failure = Failure::new(FailureKind::Usage, "cannot write to piped input");
            return Err(failure.hint("name a session or its file"));
        };
        Writable::masked(*source, named.record, global, mask, ctx)
    }

    /// Reads the session of a source.
    pub(crate) fn of(
        source: Source,
        record: Option<String>,
        global: &Global,
        ctx: &mut Ctx,
    ) -> Result<Writable, Failure> {
        Writable::masked(source, record, global, None, ctx)
    }

    fn masked(
        source: Source,
        record: Option<String>,
        global: &Global,
        mask: Option<Arc<Redactor>>,
        ctx: &mut Ctx,
    ) -> Result<Writable, Failure> {
        let located = Located::Source(Box::new(source.clone()));
        let session = located.open(global, ctx, Bridge::AsTheAgent, None, mask.as_ref())?;
        let mut host = ctx.host();
        if let Some(cwd) = session.cwd().map(PathBuf::from).filter(|cwd| cwd.is_absolute()) {
            // New records belong to the directory of the session, wherever the command was typed.
            host.cwd = cwd;
        } else if let Some(project) = &global.project {
            // The first line may be torn: then the session does not say.
            host.cwd = project::settled(&ctx.home.cwd, project);
        }
        let given = || global.store.as_ref().map(|store| ctx.home.cwd.join(store));
        let root = source.store().or_else(given).map_or_else(|| usual_store(source.dialect, ctx), Ok)?;
        Ok(Writable { source, session, record, host, root })
    }

    /// The store of the session; for a file outside of any store, the dialect's usual one.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        check_directory(&self.host)?;
        Ok(Store::open(self.source.dialect, &self.root, self.host.clone())?)
    }

    /// The store of a copy: that of its agent, also where only a kept copy of the session is left.
    pub(crate) fn store_of_copy(&self) -> Result<Store, Failure> {
        check_directory(&self.host)?;
        let original = self.source.kept_from().map(|path| Source::file(self.source.dialect, path));
        let root = original.and_then(|original| original.store()).unwrap_or_else(|| self.root.clone());
        Ok(Store::open(self.source.dialect, &root, self.host.clone())?)
    }

    /// The trash for the session; `data` is our own folder.
    pub(crate) fn trash(&self, data: &Path) -> Result<Trash, Failure> {
        Ok(Store::open(self.source.dialect, &self.root, self.host.clone())?.trash_of(&self.source, data))
    }

    /// The same store; new records name this agent as their writer.
    pub(crate) fn store_for(&self, agent: Option<&str>) -> Result<Store, Failure> {
        let mut host = self.host.clone();
        if let Some(agent) = agent {
            agent.clone_into(&mut host.version);
        }
        check_directory(&host)?;
        Ok(Store::open(self.source.dialect, &self.root, host)?)
    }

    /// What writing to it needs.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// What `--json` prints after a change.
    pub(crate) fn done(&self, record: Option<String>) -> Done {
        Done { session: self.session.id().to_string(), record, path: self.source.path.clone() }
    }

    /// What its own agent needs to continue it.
    pub(crate) fn resumable<'a>(&'a self, id: &'a str) -> Resumable<'a> {
        let Writable { source, session, .. } = self;
        Resumable { dialect: source.dialect, id, path: &source.path, cwd: session.cwd() }
    }

    /// The id of the session.
    pub(crate) fn id(&self) -> String {
        self.session.id().to_string()
    }
}

/// The store of a dialect without `--store`.
pub(crate) fn usual_store(dialect: &dyn Dialect, ctx: &Ctx) -> Result<PathBuf, Failure> {
    let variable = dialect.store_variable().unwrap_or("XDG_DATA_HOME or SCROLLBACK_HOME");
    let others = format!("{variable} or --store DIR");
    ctx.check_home(store_in(dialect, &ctx.home).unwrap_or_else(|| ctx.home.data()), &others)
}

/// Fails if new records would belong to no directory: nothing names one, and the one that the command was typed in is gone.
pub(crate) fn check_directory(host: &Host) -> Result<(), Failure> {
    if host.cwd.is_absolute() {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Io, "the working directory no longer exists")
        .hint("change to another directory with `cd`, then run the command again"))
}

/// The store of a dialect in a home, if the dialect has one.
pub(crate) fn store_in(dialect: &dyn Dialect, home: &Home) -> Option<PathBuf> {
    let below = dialect.layouts_in(std::path::Path::new("")).into_iter().next()?.root;
    let usual = dialect.layouts(home).into_iter().next()?.root;
    let depth = below.components().count();
    usual.ancestors().nth(depth).filter(|_| usual.ends_with(&below)).map(PathBuf::from)
}

/// The store of a dialect, and the project of new sessions.
pub(crate) fn place_for(
    dialect: &'static dyn Dialect,
    agent: Option<&str>,
    global: &Global,
    ctx: &Ctx,
) -> Result<(Store, PathBuf), Failure> {
    let mut host = ctx.host();
    if let Some(project) = &global.project {
        host.cwd = project::settled(&ctx.home.cwd, project);
    }
    check_directory(&host)?;
    if let Some(agent) = agent {
        agent.clone_into(&mut host.version);
    }
    let project = project::of(&host.cwd);
    let given = global.store.as_ref().map(|store| ctx.home.cwd.join(store));
    let root = given.map_or_else(|| usual_store(dialect, ctx), Ok)?;
    Ok((Store::open(dialect, &root, host)?, project))
}

/// The person or room of a session: needed for Fluux Agent, refused for every other dialect.
pub(crate) fn with_whom(dialect: &dyn Dialect, jid: Option<&str>) -> Result<Option<String>, Failure> {
    let misuse = |message: &str, hint: &str| Err(Failure::new(FailureKind::Usage, message).hint(hint));
    match (is_with_somebody(dialect), jid) {
        (true, None) => misuse("a Fluux session needs a person or a room", "add --jid JID"),
        (true, Some(jid)) => match bare_jid(jid) {
            Ok(jid) => Ok(Some(jid)),
            Err(why) => misuse(&why, "a JID looks like alice@example.com"),
        },
        (false, Some(_)) => misuse("--jid works only with Fluux Agent", "use --dialect fluux, or leave out --jid"),
        (false, None) => Ok(None),
    }
}

/// Whether each session of a dialect belongs to a person or a room.
pub(crate) fn is_with_somebody(dialect: &dyn Dialect) -> bool {
    dialect.writer().is_some_and(|writing| writing.is_with_somebody)
}
