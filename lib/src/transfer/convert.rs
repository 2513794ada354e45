//! Writes a session in another dialect's format, and reports what that format cannot store.
//!
//! ```text
//! records ─group─▶ answers ─replay─▶ Recorder of the other dialect ─▶ file ─read back, compare─▶ losses
//!                                    its clock and ids are the source's
//! ```
//!
//! A copy of the original is kept beside the new file, so that converting back restores it (`convert/original.rs`).

mod answers;
mod compare;
mod json;
mod original;
mod pairing;
mod plan;
mod replay;
mod replay_host;
mod report;
mod restore_chain;
mod sent;
mod skipped;
mod unmapped;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dialect::Dialect;
use crate::dialect::layout::Format;
use crate::disk::Real;
use crate::disk::replace::{Durable, replace};
use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::model::loss::{LossKind, Lost};
use crate::model::project;
use crate::model::record::SessionId;
use crate::model::regular_file::{self, Links};
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::session::tree::skeleton::KeyRole;
use crate::session::{RecordRef, Session};
use crate::view::conversation::Conversation;
use crate::write::copy::copy_bytes;
use crate::write::fork::Staged;
use original::{Files, LIMITS, Limits, Original};
use plan::{Plan, Way};
use replay::Replayed;
pub use report::LossRow;
use report::merge;
use skipped::Lines;

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
    /// The last record of the branch to convert, for formats without branches; by default the session's head.
    pub head: Option<&'a str>,
    /// The person or room that the session is with, for formats that require it.
    pub with: Option<&'a str>,
}

/// A session that was converted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Converted {
    /// The id of the new session.
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// The file beside it that describes the original.
    #[serde(skip)]
    pub sidecar: Option<PathBuf>,
    /// The number of messages on the branch that it opens with, as `list` counts them.
    pub messages: u64,
    /// The number of tool calls on that branch.
    pub tool_calls: u64,
    /// What differs from the source, record by record.
    pub losses: Vec<LossRow>,
    /// The names of files in the session's own folder that stay there, the first few.
    #[serde(skip)]
    pub other_files: Vec<String>,
    /// Warnings, for example that a sidecar was ignored.
    #[serde(skip)]
    pub remarks: Vec<String>,
    /// Why it does not have the id of the source: that cannot be the name of a file.
    #[serde(skip)]
    pub renamed: Option<String>,
}

impl Session {
    /// Writes this session in another dialect's format. The source is only read.
    ///
    /// Converting to the same dialect copies the bytes; converting back restores the original. A session in several files becomes one.
    pub fn convert(&self, how: &Conversion<'_>, host: &Host) -> Result<Converted> {
        self.convert_within(how, host, LIMITS)
    }

    fn convert_within(&self, how: &Conversion<'_>, host: &Host, limits: Limits) -> Result<Converted> {
        let plan = Plan::find(self, how, host, how.target)?;
        let staged = Staged::make(&Real, &plan.path, &(host.new_id)())?;
        let written = (|| {
            let (losses, files) = self.write_planned(how, &plan, staged.file(), limits)?;
            self.mask_file(staged.file(), host)?;
            let converted = self.converted(how, &plan, losses)?;
            let is_replayed = matches!(plan.way, Way::Replay);
            let files = files.or_else(|| is_replayed.then(|| Files::without_original(self, staged.file())).flatten());
            let has_files = files.is_some();
            let sidecar = files.map(|files| files.publish(&plan.path, || (host.new_id)())).transpose()?.flatten();
            // The file comes last: once it exists, everything does. Only on a file system without hard links can a crash leave an
            // empty one, which is refused like any other existing file.
            staged.publish().inspect_err(|_| _ = has_files.then(|| original::remove(&plan.path)))?;
            Ok(Converted { sidecar, ..converted })
        })();
        let mut converted = written.inspect_err(|_| staged.clean_up())?;
        if let Target::Store(_) = how.target {
            let store = &plan.store;
            let described = store.describe(self, &converted.session, &converted.path, &project::of(&store.host.cwd));
            let warning = described.err().map(|error| format!("the metadata file was not written: {error}"));
            converted.remarks.extend(warning);
        }
        Ok(converted)
    }

    /// The id of the original that this session becomes again; `None` if the new session gets an id of its own.
    ///
    /// A caller with several stores checks it in all of them.
    pub fn restored_id(&self, how: &Conversion<'_>, host: &Host) -> Result<Option<SessionId>> {
        let plan = Plan::find(self, how, host, how.target)?;
        Ok(plan.way.original().is_some().then_some(plan.id))
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
        let written = self.write_planned(how, &plan, staged.file(), limits).and_then(|(losses, _)| {
            self.mask_file(staged.file(), host)?;
            Ok((self.converted(how, &plan, losses)?, regular_file::read(staged.file(), u64::MAX, Links::Refuse)?))
        });
        staged.clean_up();
        written
    }

    fn converted(&self, how: &Conversion<'_>, plan: &Plan, losses: Vec<LossRow>) -> Result<Converted> {
        // Files that stay where they are: this session's, and those of the original that it becomes again.
        let lines = if matches!(plan.way, Way::Copy) { Lines::Copied } else { Lines::Replayed };
        let of_original = plan.way.original().into_iter().flat_map(Original::skipped);
        let skipped = skipped::found(self, lines).into_iter().chain(of_original);
        let skipped = skipped.map(|(what, count)| self.session_loss(what, count));
        let mut rows = Vec::new();
        merge(&mut rows, losses.into_iter().chain(skipped).collect(), |a, b| a + b);
        let (remarks, renamed) = (plan.warning.iter().cloned().collect(), plan.renamed.clone());
        let branch = self.named_head(how.head)?.map(|head| self.branch(head));
        let messages = branch.as_ref().map_or(0, |branch| Conversation::new(branch).message_count());
        let calls = branch.iter().flat_map(|branch| &branch.records).map(|record| record.keys(KeyRole::Call).count());
        Ok(Converted {
            session: plan.id.clone(),
            path: plan.path.clone(),
            messages: messages as u64,
            tool_calls: calls.sum::<usize>() as u64,
            sidecar: None,
            losses: rows,
            other_files: skipped::other_files(self),
            remarks,
            renamed,
        })
    }

    /// A loss of the session, reported of its head.
    fn session_loss(&self, what: impl Into<Lost>, count: u64) -> LossRow {
        let record = self.head().map(|head| head.id().into_owned()).unwrap_or_default();
        LossRow { count, ..LossRow::new(&record, LossKind::Dropped, what) }
    }

    /// Writes the new file. Returns the losses, and the files that keep the original.
    fn write_planned(
        &self,
        how: &Conversion<'_>,
        plan: &Plan,
        file: &Path,
        limits: Limits,
    ) -> Result<(Vec<LossRow>, Option<Files>)> {
        let how = &Conversion { with: plan.with.as_deref(), ..*how };
        let from = plan.steps.last().map_or(self, |step| &step.session);
        let (replayed, losses) = from.write_as(how, plan, file)?;
        let mut losses = restore_chain::with_source_ids(&plan.steps, losses);
        let original = match &plan.way {
            // What is restored may have been converted, too, and can be restored further.
            Way::Restore(original) => original.before().map(Cow::Borrowed),
            Way::Copy => plan.other.as_ref().map(Cow::Borrowed),
            Way::Replay => Original::of(self, how.to, file, &replayed, plan.other.as_ref(), limits)?.map(Cow::Owned),
        };
        // A copy of the original would have the secrets in it.
        let files = original.filter(|_| self.mask.is_none()).and_then(|original| original.files(limits));
        if files.is_none() && matches!(plan.way, Way::Replay) && !self.is_rows() {
            losses.push(self.session_loss(Lost::Original, 1));
        }
        Ok((losses, files))
    }

    /// Masks a file that was copied or restored, if this session is masked: its bytes do not come from records.
    fn mask_file(&self, file: &Path, host: &Host) -> Result<()> {
        let Some(mask) = &self.mask else { return Ok(()) };
        let bytes = regular_file::read(file, u64::MAX, Links::Refuse)?;
        match mask.redactor().document(&bytes).bytes {
            Cow::Owned(masked) => replace(&Real, file, &(host.new_id)(), &masked, Durable::No),
            Cow::Borrowed(_) => Ok(()),
        }
    }

    /// Writes the new file in one step, reads it back and compares it.
    fn write_as(&self, how: &Conversion<'_>, plan: &Plan, file: &Path) -> Result<(Replayed, Vec<LossRow>)> {
        let (store, original) = (&plan.store, plan.way.original());
        let mut replayed = match &plan.way {
            Way::Copy => {
                let own = self
                    .files
                    .0
                    .first()
                    .map_or(Ok(()), |own| copy_bytes(&mut own.reader(0), &Real, (self.path(), file)));
                return own.map(|()| (Replayed::default(), Vec::new()));
            }
            Way::Restore(original) => replay::restore(self, original, store, &plan.id, file)?,
            Way::Replay => replay::all(self, how, store, &plan.id, file)?,
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
        let losses = sessions.report(self.named_head(how.head)?, &mut replayed)?;
        Ok((replayed, losses))
    }

    /// A session that is rows of a database has no file of its own.
    pub(crate) fn is_rows(&self) -> bool {
        matches!(self.source.layout.format, Format::Rows(_))
    }

    /// Whether its bytes can be copied: rows of a database are no file, and Codex begins a further one when a person goes back.
    pub(crate) fn is_one_file(&self) -> bool {
        !self.is_rows() && self.source.earlier.is_empty()
    }

    /// The head that was named, or the session's own.
    pub(super) fn named_head(&self, name: Option<&str>) -> Result<Option<RecordRef<'_>>> {
        let Some(name) = name else { return Ok(self.head()) };
        self.find(name).map(Some)
    }
}
