//! Writes a session in another dialect's format, and reports what that format cannot hold.
//!
//! ```text
//! records ─group─▶ answers ─replay─▶ Recorder of the other dialect ─▶ file ─read back, compare─▶ losses
//!                                    its clock and ids are the source's
//! ```
//!
//! A copy of the original is kept beside the new file, so that converting back restores it (`convert/original.rs`).

mod answers;
mod compare;
mod one_path;
mod original;
mod pairing;
mod plan;
mod replay;
mod replay_host;
mod report;
mod restore_chain;
mod skipped;
mod unmapped;

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dialect::Dialect;
use crate::dialect::layout::Format;
use crate::disk::replace::write_all;
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::loss::{LossKind, Lost};
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::session::{RecordRef, Session};
use crate::write::fork::Staged;
use original::{Files, LIMITS, Limits, Original};
use plan::Plan;
use replay::Replayed;
pub use report::LossRow;
use report::merge;
use skipped::Lines;

/// A file that is copied as it is may be larger than memory: it is copied in pieces of this size.
const COPIED_AT_ONCE_BYTES: usize = 1024 * 1024;

/// Where a converted session goes.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// Into this file, which must not exist.
    File(&'a Path),
    /// Into a store, at the dialect's usual place.
    Store(&'a Path),
}

/// What to convert a session to.
#[derive(Clone, Copy)]
pub struct Conversion<'a> {
    /// The other dialect.
    pub to: &'static dyn Dialect,
    /// Where the file goes.
    pub target: Target<'a>,
    /// The last record of the branch to convert, for formats that hold only one; by default the session's head.
    pub head: Option<&'a str>,
    /// The person or room that the session is with, for formats that require it.
    pub with: Option<&'a str>,
}

/// A session that was converted.
#[derive(Debug, Serialize)]
pub struct Converted {
    /// The id of the new session.
    #[serde(skip)]
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// The file beside it that describes the original.
    #[serde(skip)]
    pub sidecar: Option<PathBuf>,
    /// What it does not say as the source does, record by record.
    pub losses: Vec<LossRow>,
    /// Warnings, for example that a sidecar was ignored.
    #[serde(skip)]
    pub remarks: Vec<String>,
}

impl Session {
    /// Writes this session in another dialect's format. The source is only read.
    ///
    /// Converting to the same dialect copies the bytes; converting back restores the original.
    pub fn convert(&self, how: &Conversion<'_>, host: &Host) -> Result<Converted> {
        self.convert_within(how, host, LIMITS)
    }

    fn convert_within(&self, how: &Conversion<'_>, host: &Host, limits: Limits) -> Result<Converted> {
        let plan = Plan::find(self, how, host, how.target)?;
        let staged = Staged::make(&Real, &plan.path, &(host.new_id)())?;
        let written = (|| {
            let mut losses = Vec::new();
            let replayed = self.write_planned(how, &plan, staged.file(), &mut losses)?;
            let files = self.keep_original(how, &plan, &replayed, staged.file(), limits, &mut losses)?;
            let sidecar = files.map(|files| files.publish(&plan.path, || (host.new_id)())).transpose()?;
            // The file comes last: once it exists, everything does. Only on a file system without hard links can a crash leave an
            // empty one, which is refused like any other existing file.
            staged.publish().inspect_err(|_| _ = sidecar.is_some().then(|| original::remove(&plan.path)))?;
            Ok((losses, sidecar))
        })();
        let (losses, sidecar) = written.inspect_err(|_| staged.clean_up())?;
        let mut converted = self.converted(&plan, losses);
        converted.sidecar = sidecar;
        if let Target::Store(_) = how.target {
            let store = &plan.store;
            let described = store.describe(self, &converted.session, &converted.path, &project::of(&store.host.cwd));
            let warning = described.err().map(|error| format!("the file beside it was not written: {error}"));
            converted.remarks.extend(warning);
        }
        Ok(converted)
    }

    /// Returns what [`Session::convert`] would write and report; only `scratch`, an existing folder, is written to.
    pub fn rehearse(&self, how: &Conversion<'_>, host: &Host, scratch: &Path) -> Result<(Converted, Vec<u8>)> {
        self.rehearse_within(how, host, scratch, LIMITS)
    }

    fn rehearse_within(
        &self,
        how: &Conversion<'_>,
        host: &Host,
        scratch: &Path,
        limits: Limits,
    ) -> Result<(Converted, Vec<u8>)> {
        let plan = Plan::find(self, how, host, Target::Store(scratch))?;
        let path = scratch.join((host.new_id)());
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let mut losses = Vec::new();
        let written = (|| {
            let replayed = self.write_planned(how, &plan, staged.file(), &mut losses)?;
            self.keep_original(how, &plan, &replayed, staged.file(), limits, &mut losses)?;
            std::fs::read(staged.file()).at(&path)
        })();
        staged.clean_up();
        let bytes = written?;
        Ok((self.converted(&plan, losses), bytes))
    }

    fn converted(&self, plan: &Plan, losses: Vec<LossRow>) -> Converted {
        // Files that stay where they are: this session's, and those of the original that it becomes again.
        let lines = if plan.is_new_format || plan.original.is_some() { Lines::Replayed } else { Lines::Copied };
        let of_original = plan.original.iter().flat_map(Original::skipped);
        let skipped = skipped::found(self, lines).into_iter().chain(of_original);
        let skipped = skipped.map(|(what, count)| self.session_loss(what, count));
        let mut rows = Vec::new();
        merge(&mut rows, losses.into_iter().chain(skipped).collect(), |a, b| a + b);
        let remarks = plan.warning.iter().cloned().collect();
        Converted { session: plan.id.clone(), path: plan.path.clone(), sidecar: None, losses: rows, remarks }
    }

    /// Whether the file is copied as it is. Rows of a database are not a file.
    fn is_copied(&self, how: &Conversion<'_>) -> bool {
        how.to.name() == self.dialect().name() && !self.is_rows()
    }

    /// The files beside the new one. Where there should be some and are none, the original is lost.
    fn keep_original(
        &self,
        how: &Conversion<'_>,
        plan: &Plan,
        replayed: &Replayed,
        file: &Path,
        limits: Limits,
        losses: &mut Vec<LossRow>,
    ) -> Result<Option<Files>> {
        let original = match &plan.original {
            // What is restored was itself converted, and can be restored further.
            Some(original) => original.before().map(Cow::Borrowed),
            None if self.is_copied(how) => plan.other.as_ref().map(Cow::Borrowed),
            None => Original::of(self, how.to, file, replayed, plan.other.as_ref(), limits)?.map(Cow::Owned),
        };
        let files = original.and_then(|original| original.files(limits));
        if files.is_none() && plan.is_new_format && !self.is_rows() {
            losses.push(self.session_loss(Lost::Original, 1));
        }
        Ok(files)
    }

    /// A loss of the session, reported of its head.
    fn session_loss(&self, what: impl Into<Lost>, count: u64) -> LossRow {
        let record = self.head().map(|head| head.id().into_owned()).unwrap_or_default();
        LossRow { count, ..LossRow::new(&record, LossKind::Dropped, what) }
    }

    /// Writes the new file, and adds what it does not say as the source does.
    fn write_planned(
        &self,
        how: &Conversion<'_>,
        plan: &Plan,
        file: &Path,
        losses: &mut Vec<LossRow>,
    ) -> Result<Replayed> {
        let how = &Conversion { with: plan.with.as_deref(), ..*how };
        let Some(step) = &plan.step else { return self.write_as(how, plan, file, losses) };
        let mut further = Vec::new();
        let replayed = step.session.write_as(how, plan, file, &mut further)?;
        losses.extend(step.renamed(further));
        Ok(replayed)
    }

    /// The same in one step: the file is written, read back and compared.
    fn write_as(&self, how: &Conversion<'_>, plan: &Plan, file: &Path, losses: &mut Vec<LossRow>) -> Result<Replayed> {
        if self.is_copied(how) {
            return self.copy_to(file).map(|()| Replayed::default());
        }
        let head = self.named_head(how.head)?;
        let (store, original) = (&plan.store, plan.original.as_ref());
        let mut replayed = match original {
            Some(original) => replay::restore(self, original, store, &plan.id, file)?,
            None => replay::all(self, how, store, &plan.id, file)?,
        };
        if original.is_none() && !replayed.has_content {
            return Err(Error::NothingToStore(how.to.name()));
        }
        let reading = ReadOptions::plain(self.updated().unwrap_or_else(|| (store.host.now)()));
        let converted = Session::open(&Source::file(how.to, file), &reading)?;
        // A store's own sidecar repeats the working directory.
        let is_described = matches!(how.target, Target::Store(_)) && store.writing.sidecar.is_some();
        let cwd_beside = is_described.then(|| store.host.cwd.to_string_lossy());
        let sessions =
            report::Sessions { source: self, converted: &converted, original, cwd_beside: cwd_beside.as_deref() };
        losses.extend(sessions.report(head, &mut replayed)?);
        Ok(replayed)
    }

    /// A session that is rows of a database has no file of its own.
    pub(crate) fn is_rows(&self) -> bool {
        matches!(self.source.layout.format, Format::Rows(_))
    }

    fn copy_to(&self, file: &Path) -> Result<()> {
        let Some(own) = self.files.0.first() else { return Ok(()) };
        let copy = Real.create(file).at(file)?;
        let mut reader = own.reader(0);
        let mut piece = vec![0; COPIED_AT_ONCE_BYTES];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => write_all(&*copy, &piece[..read], file)?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).at(self.path()),
            }
        }
        copy.sync().at(file)
    }

    /// The head that was named, or the session's own.
    fn named_head(&self, name: Option<&str>) -> Result<Option<RecordRef<'_>>> {
        let Some(name) = name else { return Ok(self.head()) };
        self.find(name).map(Some)
    }
}
