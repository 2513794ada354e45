//! `serve --allow-record`: records what programs send, as `record --resume` does.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use scrollback::session::Source;
use scrollback_web::records::{Acknowledged, NotRecorded, Record};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::record::destination::{Destination, Start};
use crate::record::input::Lines;
use crate::record::{Ended, Recording};
use crate::redaction;
use crate::session::writable::Writable;

/// What records the lines of a request. Each request is a run of its own: it opens the session, and closes it on disk.
pub(super) fn recorder(global: &Global) -> Box<Record> {
    let global = Global { json: true, ..global.clone() };
    Box::new(move |source, lines| {
        let printed = Printed::default();
        let mut ctx = Ctx::system(&global);
        (ctx.out, ctx.err) = (Box::new(printed.clone()), Box::new(io::sink()));
        let Ended { saved, rejected, has_failed, .. } = record(source, lines, &global, &mut ctx)
            .map_err(|failure| NotRecorded { message: failure.message, hint: failure.hint })?;
        Ok(Acknowledged { lines: printed.take(), saved, rejected, has_failed })
    })
}

fn record(source: &Source, lines: Vec<u8>, global: &Global, ctx: &mut Ctx) -> Result<Ended, Failure> {
    let options = redaction::options(global, ctx)?;
    let session = Writable::of(source.clone(), None, global, ctx)?;
    let store = session.store_for(None)?.with_options(options);
    store.check_source(&session.source)?;
    let start = Start::Resume { session: Box::new(session), record: None };
    Recording::new(Destination { store, start }, None).run(&Lines::of(lines), ctx)
}

/// What was printed, for two owners.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
