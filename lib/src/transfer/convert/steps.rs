//! The way back over several conversions: one step after the other, each as if somebody had asked for it.

use hashbrown::HashMap;

use super::kept::{Beside, Kept};
use super::place::Way;
use super::{Conversion, LossRow, Target};
use crate::dialect::Dialect;
use crate::disk::Real;
use crate::model::error::{At, Result};
use crate::model::host::Host;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::write::fork::Staged;

/// A session on its way back: what one of the conversions was made of, with what was added since.
pub(super) struct Stepped {
    pub(super) session: Session,
    /// What its format does not hold of what was added.
    losses: Vec<LossRow>,
    /// What its records are called in the session that the way begins with, where that differs.
    names: HashMap<String, String>,
}

impl Stepped {
    /// Goes back from a session to the one that it was made of; what is written on the way is taken away again.
    fn back(from: &Session, kept: Kept, to: &'static dyn Dialect, host: &Host, target: Target<'_>) -> Result<Stepped> {
        let folder = target.root(host);
        let path = folder.join((host.new_id)());
        let how = Conversion { to, target: Target::File(&path), head: None, with: None };
        let mut names: HashMap<String, String> = kept.renamed().collect();
        let way = Way::along(from, &how, host, Beside { back: Some(kept), ..Beside::default() })?;
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let written = from
            .write_as(&how, &way, staged.file())
            .and_then(|replayed| Ok((replayed, std::fs::read(staged.file()).at(staged.file())?)));
        staged.clean_up();
        let (replayed, bytes) = written?;
        names.extend(replayed.ids);
        let mut losses = replayed.losses;
        losses.extend(way.back.iter().flat_map(Kept::left_behind).map(|(what, count)| from.lost_beside(what, count)));
        let now = from.updated().unwrap_or_else(|| (host.now)());
        Ok(Stepped { session: Session::from_bytes(to, bytes, &ReadOptions::plain(now)), losses, names })
    }

    /// Losses of this session and of what it becomes, by the names that the way begins with.
    pub(super) fn told(&self, further: Vec<LossRow>) -> Vec<LossRow> {
        let renamed = further.into_iter().map(|row| {
            let record = self.names.get(&row.record).cloned().unwrap_or_else(|| row.record.clone());
            LossRow { record, ..row }
        });
        self.losses.iter().cloned().chain(renamed).collect()
    }

    /// This session, reached from another one that the way led over.
    fn after(mut self, earlier: Option<Stepped>) -> Stepped {
        let Some(earlier) = earlier else { return self };
        self.losses = earlier.told(self.losses);
        for name in self.names.values_mut() {
            name.clone_from(earlier.names.get(name.as_str()).unwrap_or(&name.clone()));
        }
        for (name, first) in earlier.names {
            self.names.entry(name).or_insert(first);
        }
        self
    }
}

/// What lies beside a session that is about to become another, and the session that the last step begins with, where it takes several.
pub(super) fn find(
    session: &Session,
    how: &Conversion<'_>,
    host: &Host,
    scratch: Target<'_>,
) -> Result<(Beside, Option<Stepped>)> {
    let mut beside = Kept::beside(session, how.to);
    let first = beside.step.as_ref().map(|(kept, _)| kept.clone());
    let mut stepped: Option<Stepped> = None;
    while let Some((mut kept, to)) = beside.step.take() {
        let before = kept.take_before();
        let from = stepped.as_ref().map_or(session, |stepped| &stepped.session);
        let step = Stepped::back(from, kept, to, host, scratch)?;
        beside = match before {
            Some(before) => before.towards(&step.session, how.to),
            None => Beside::default(),
        };
        stepped = Some(step.after(stepped));
    }
    if stepped.is_some() && beside.back.is_none() {
        return Ok((Beside { other: first, remark: beside.remark, ..Beside::default() }, None));
    }
    Ok((beside, stepped))
}
