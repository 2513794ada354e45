//! The way back over several conversions: one original after the other, as if each had been asked for.

use hashbrown::HashMap;

use super::original::{Beside, Original};
use super::plan::Plan;
use super::{Conversion, LossRow, Target};
use crate::dialect::Dialect;
use crate::disk::Real;
use crate::model::error::{At, Result};
use crate::model::host::Host;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::fork::Staged;

/// An original on the way back, with what was added since it was converted.
pub(super) struct Step {
    pub(super) session: Session,
    /// What its format does not hold of what was added.
    losses: Vec<LossRow>,
    /// Ids of its records in the session that is converted, where these differ.
    ids: HashMap<String, String>,
}

impl Step {
    /// Restores the original of a session in memory; the file that it takes is deleted again.
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
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let mut losses = Vec::new();
        let written = from
            .write_planned(&how, &plan, staged.file(), &mut losses)
            .and_then(|replayed| Ok((replayed, std::fs::read(staged.file()).at(staged.file())?)));
        staged.clean_up();
        let (replayed, bytes) = written?;
        ids.extend(replayed.ids);
        let skipped = plan.original.iter().flat_map(Original::skipped);
        losses.extend(skipped.map(|(what, count)| from.session_loss(what, count)));
        let now = from.updated().unwrap_or_else(|| (host.now)());
        Ok(Step { session: Session::from_bytes(to, bytes, &ReadOptions::plain(now)), losses, ids })
    }

    /// The losses of this step and of what follows it, with the ids of the session that is converted.
    pub(super) fn renamed(&self, further: Vec<LossRow>) -> Vec<LossRow> {
        let renamed = further.into_iter().map(|row| {
            let record = self.ids.get(&row.record).cloned().unwrap_or_else(|| row.record.clone());
            LossRow { record, ..row }
        });
        self.losses.iter().cloned().chain(renamed).collect()
    }

    /// This step behind an earlier one.
    fn after(mut self, earlier: Option<Step>) -> Step {
        let Some(earlier) = earlier else { return self };
        self.losses = earlier.renamed(self.losses);
        for id in self.ids.values_mut() {
            id.clone_from(earlier.ids.get(id.as_str()).unwrap_or(&id.clone()));
        }
        for (id, first) in earlier.ids {
            self.ids.entry(id).or_insert(first);
        }
        self
    }
}

/// The original that a session becomes again, and the steps before the last one.
pub(super) fn find(
    session: &Session,
    how: &Conversion<'_>,
    host: &Host,
    scratch: Target<'_>,
) -> Result<(Beside, Option<Step>)> {
    let mut beside = Original::beside(session, how.to);
    let first = beside.step.as_ref().map(|(original, _)| original.clone());
    let mut done: Option<Step> = None;
    while let Some((mut original, to)) = beside.step.take() {
        let before = original.take_before();
        let from = done.as_ref().map_or(session, |step| &step.session);
        let step = Step::restore(from, original, to, host, scratch)?;
        beside = before.map(|before| before.towards(&step.session, how.to)).unwrap_or_default();
        done = Some(step.after(done));
    }
    if done.is_some() && beside.original.is_none() {
        return Ok((Beside { other: first, warning: beside.warning, ..Beside::default() }, None));
    }
    Ok((beside, done))
}
