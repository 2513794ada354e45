//! Converting back over several conversions: one original after the other is restored.

use hashbrown::HashMap;

use super::original::{Beside, Original};
use super::plan::Plan;
use super::{Conversion, LossRow, Target};
use crate::dialect::Dialect;
use crate::disk::Real;
use crate::model::error::Result;
use crate::model::host::Host;
use crate::model::regular_file::{self, Links};
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::fork::Staged;

/// An original on the way back, with what was added since it was converted.
pub(super) struct Step {
    pub(super) session: Session,
    /// What its format cannot store of what was added.
    losses: Vec<LossRow>,
    /// The ids of its records in the session before it, where these differ.
    ids: HashMap<String, String>,
}

impl Step {
    /// Restores the original of a session in memory; the temporary file is deleted again.
    fn restore(
        from: &Session,
        original: Original,
        to: &'static dyn Dialect,
        host: &Host,
        target: Target<'_>,
    ) -> Result<Step> {
        let path = target.root(host).join((host.new_id)());
        let how = Conversion { to, target: Target::File(&path), head: None, with: None };
        let mut ids: HashMap<String, String> =
            original.ids.iter().map(|(converted, original)| (original.clone(), converted.clone())).collect();
        let plan = Plan::new(from, &how, host, Beside { original: Some(original), ..Beside::default() })?;
        let how = Conversion { with: plan.with.as_deref(), ..how };
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let written = from
            .write_as(&how, &plan, staged.file())
            .and_then(|written| Ok((written, regular_file::read(staged.file(), u64::MAX, Links::Refuse)?)));
        staged.clean_up();
        let ((replayed, mut losses), bytes) = written?;
        ids.extend(replayed.ids);
        let skipped = plan.way.original().into_iter().flat_map(Original::skipped);
        losses.extend(skipped.map(|(what, count)| from.session_loss(what, count)));
        let now = from.updated().unwrap_or_else(|| (host.now)());
        Ok(Step { session: Session::from_bytes(to, bytes, &ReadOptions::plain(now)), losses, ids })
    }
}

/// The losses of all steps and of what follows them, with the ids of the session that is converted.
pub(super) fn with_source_ids(steps: &[Step], further: Vec<LossRow>) -> Vec<LossRow> {
    steps.iter().rev().fold(further, |further, step| {
        let renamed = further.into_iter().map(|row| {
            let record = step.ids.get(&row.record).unwrap_or(&row.record).clone();
            LossRow { record, ..row }
        });
        step.losses.iter().cloned().chain(renamed).collect()
    })
}

/// The original that a session becomes again, and the steps before the last one.
pub(super) fn find(
    session: &Session,
    how: &Conversion<'_>,
    host: &Host,
    scratch: Target<'_>,
) -> Result<(Beside, Vec<Step>)> {
    let mut beside = Original::beside(session, how.to);
    let first = beside.step.as_ref().map(|(original, _)| original.clone());
    let mut steps: Vec<Step> = Vec::new();
    while let Some((mut original, to)) = beside.step.take() {
        let before = original.before.take();
        let from = steps.last().map_or(session, |step| &step.session);
        let step = Step::restore(from, original, to, host, scratch)?;
        beside = before.map(|before| before.towards(&step.session, how.to)).unwrap_or_default();
        steps.push(step);
    }
    if !steps.is_empty() && beside.original.is_none() {
        return Ok((Beside { other: first, warning: beside.warning, ..Beside::default() }, Vec::new()));
    }
    Ok((beside, steps))
}
