//! A session as one file of HTML or Markdown.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use scrollback::model::Usage;
use scrollback::session::{Bridge, RecordRef, Session, Source};
use scrollback::view::find::SessionName;
use scrollback::view::listing;
use scrollback::write::NewFile;
use scrollback_web::export::{self, CountMasked, Document};

use super::{ExportArgs, Format};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::prices::Prices;
use crate::render::plural;
use crate::render::sub_agents::SubAgents;
use crate::session::located::{self, Located};
use crate::session::{name, scope};
use crate::terminal::clean;

pub(super) fn run(
    session: &SessionName,
    args: &ExportArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let named = name::resolve(session, global, ctx)?;
    let source = if let Located::Source(source) = &named.located { Some((**source).clone()) } else { None };
    let mask = ctx.mask.clone();
    let mut session = named.located.open(global, ctx, Bridge::AsTheAgent, None, mask.as_ref())?;
    if let Some(summary) = listing::summary_elsewhere(&session) {
        session.title_from_summary(summary);
    }
    let heads = heads(args, named.record.as_deref(), &session)?;
    if heads.is_empty() {
        return Err(located::no_records(&session));
    }
    let sub_agents = source.map(|source| sub_agents(source, &session, global, ctx)).transpose()?;
    let nobody = ();
    let prices = Prices::read(ctx)?;
    let price = move |model: &str, usage: Usage| prices.cost(model, usage);
    let document = Document {
        session: &session,
        heads,
        zone: &ctx.zone.clone(),
        now: ctx.now,
        price: &price,
        sub_agents: sub_agents.as_ref().map_or(&nobody as &dyn scrollback_web::SubAgents, |found| found),
    };
    let masked = match &args.output {
        Some(output) => {
            let path = ctx.typed_in.join(output);
            let file = NewFile::create(&path, &ctx.host())?;
            let mut out = CountMasked::new(BufWriter::with_capacity(WRITTEN_AT_ONCE_BYTES, file));
            write(&document, args.to, &mut out)?;
            let masked = out.count;
            let file = out.into_inner().into_inner().map_err(|error| error.into_error())?;
            file.finish()?;
            ctx.line(&clean::line(&path.to_string_lossy()))?;
            masked
        }
        None => {
            let mut out = CountMasked::new(&mut ctx.out);
            write(&document, args.to, &mut out)?;
            out.count
        }
    };
    if masked > 0 {
        ctx.note(&format!("secrets masked in {}; --no-redact writes them.", plural(masked as u64, "place")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How much is written to a file at once.
const WRITTEN_AT_ONCE_BYTES: usize = 256 * 1024;

fn write(document: &Document<'_>, to: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let written = match to {
        Format::Md => export::markdown(document, out),
        Format::Html | Format::Sqlite => export::html(document, out),
    };
    written.map_err(|error| match error {
        export::Error::Read(error) => Failure::from(error),
        export::Error::Write(error) => Failure::from(error),
    })?;
    Ok(out.flush()?)
}

fn heads<'s>(args: &ExportArgs, named: Option<&str>, session: &'s Session) -> Result<Vec<RecordRef<'s>>, Failure> {
    if args.branches {
        return Ok(session.heads().map(|head| head.record).collect());
    }
    match args.head.as_deref().or(named) {
        Some(head) => Ok(vec![name::record(session, head)?]),
        None => Ok(session.head().into_iter().collect()),
    }
}

fn sub_agents(source: Source, session: &Session, global: &Global, ctx: &Ctx) -> Result<SubAgents, Failure> {
    Ok(SubAgents::new(scope::places(global, ctx)?, source, session.id().0, ctx.now))
}
