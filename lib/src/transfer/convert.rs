//! A session becomes another dialect's file: what it says is recorded again, in the other format's words.
//!
//! ```text
//! records ─group─▶ answers ─replay─▶ Recorder of the other dialect ─▶ file, losses
//!                                    its clock and ids are the source's
//! ```
//!
//! What the other format cannot hold is reported record by record, and the original lines go into a file beside the new one,
//! so that the way back gives them again (`convert/kept.rs`).

mod answers;
mod compare;
mod damage;
mod kept;
mod left_behind;
mod pairing;
mod path;
mod place;
mod replay;
mod script;
mod steps;
mod unheld;

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use crate::dialect::Dialect;
use crate::dialect::layout::Format;
use crate::dialect::writer::Shape;
use crate::disk::replace::{delete, write_all};
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
use kept::{Kept, LIMITS, Limits};
use left_behind::Lines;
use place::Way;
use replay::Replayed;

/// A file that stays as it is is copied in pieces of this size: it may be larger than memory.
const COPIED_AT_ONCE_BYTES: usize = 1024 * 1024;

/// Where a converted session goes.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// Into this file. One that is there is refused.
    File(&'a Path),
    /// Into a store, where its dialect puts it.
    Store(&'a Path),
}

/// What to convert, and to what.
#[derive(Clone, Copy)]
pub struct Conversion<'a> {
    /// The other dialect.
    pub to: &'static dyn Dialect,
    /// Where the file goes.
    pub target: Target<'a>,
    /// The record whose branch is converted, where the format holds only one; the session's head where none is named.
    pub head: Option<&'a str>,
    /// Whom the session is with, where the format asks for it.
    pub with: Option<&'a str>,
}

/// A session that was converted.
#[derive(Debug, Serialize)]
pub struct Converted {
    /// What the new session is called.
    #[serde(skip)]
    pub session: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// The file beside it that keeps what it cannot hold.
    #[serde(skip)]
    pub sidecar: Option<PathBuf>,
    /// What it does not say as the source does, record by record.
    pub losses: Vec<LossRow>,
    /// What else somebody may want to know: a sidecar that was not believed.
    #[serde(skip)]
    pub remarks: Vec<String>,
}

/// Something of one record that the other format does not hold as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LossRow {
    /// The source's record.
    pub record: String,
    /// What.
    pub what: Lost,
    /// What became of it.
    pub kind: LossKind,
    /// How often in that record.
    pub count: u64,
    /// Of what stands under keys that no other format knows: the keys, of very many the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

impl Session {
    /// Writes this session as another dialect's file. The source is only read.
    ///
    /// The same dialect gives the same bytes; a session that was converted before gives back what its sidecar kept.
    pub fn convert(&self, how: &Conversion<'_>, host: &Host) -> Result<Converted> {
        self.convert_within(how, host, LIMITS)
    }

    fn convert_within(&self, how: &Conversion<'_>, host: &Host, limits: Limits) -> Result<Converted> {
        let way = Way::find(self, how, host, how.target)?;
        let staged = Staged::make(&Real, &way.path, &(host.new_id)())?;
        let written = (|| {
            let mut replayed = self.write_as(how, &way, staged.file())?;
            let kept = self.keep(how, &way, &mut replayed, staged.file(), limits)?;
            let sidecar = kept.map(|bytes| kept::publish(&bytes, &way.path, &(host.new_id)())).transpose()?;
            // The file comes last: where it is, all of it is. Only a file system without second names can be left with an empty one
            // by a crash, which is refused as any other that is there: nobody knows whose it is.
            staged.publish().inspect_err(|_| drop(sidecar.as_deref().map(|sidecar| delete(&Real, sidecar))))?;
            Ok((replayed, sidecar))
        })();
        let (replayed, sidecar) = written.inspect_err(|_| staged.clean_up())?;
        let mut converted = self.told(&way, replayed);
        converted.sidecar = sidecar;
        if let Target::Store(_) = how.target {
            let store = &way.store;
            let described = store.describe(self, &converted.session, &converted.path, &project::of(&store.host.cwd));
            converted
                .remarks
                .extend(described.err().map(|error| format!("the file beside it was not written: {error}")));
        }
        Ok(converted)
    }

    /// What [`Session::convert`] would write, and what it would tell; nothing is written but in `scratch`, a folder that is there.
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
        let way = Way::find(self, how, host, Target::Store(scratch))?;
        let path = scratch.join((host.new_id)());
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let written = (|| {
            let mut replayed = self.write_as(how, &way, staged.file())?;
            self.keep(how, &way, &mut replayed, staged.file(), limits)?;
            Ok((replayed, std::fs::read(staged.file()).at(&path)?))
        })();
        staged.clean_up();
        let (replayed, bytes) = written?;
        Ok((self.told(&way, replayed), bytes))
    }

    fn told(&self, way: &Way, replayed: Replayed) -> Converted {
        let mut losses = replayed.losses;
        losses.extend(self.left_behind(way));
        let remarks = way.remark.iter().cloned().collect();
        Converted { session: way.id.clone(), path: way.path.clone(), sidecar: None, losses: rows(losses), remarks }
    }

    /// What stays where it is of this session, and of the one that it becomes again.
    fn left_behind(&self, way: &Way) -> Vec<LossRow> {
        let lines = if way.is_new_kind || way.back.is_some() { Lines::SaidAgain } else { Lines::Copied };
        let own = left_behind::found(self, lines);
        let of_original = way.back.iter().flat_map(|kept| kept.left_behind());
        let all = own.into_iter().chain(of_original);
        all.map(|(what, count)| self.lost_beside(what, count)).collect()
    }

    /// Whether the bytes can stay as they are. Rows of a database have none.
    fn stays(&self, how: &Conversion<'_>) -> bool {
        how.to.name() == self.dialect().name() && !self.is_rows()
    }

    /// What goes into the file beside the new one; that nothing does is a loss, where something should.
    fn keep(
        &self,
        how: &Conversion<'_>,
        way: &Way,
        replayed: &mut Replayed,
        file: &Path,
        limits: Limits,
    ) -> Result<Option<Vec<u8>>> {
        let kept = match &way.back {
            // What came back was made of another one, and can go on to it.
            Some(back) => back.before().map(Cow::Borrowed),
            None if self.stays(how) => way.other.as_ref().map(Cow::Borrowed),
            None => Kept::of(self, how.to, file, replayed, way.other.as_ref(), limits)?.map(Cow::Owned),
        };
        let bytes = kept.and_then(|kept| kept.bytes(limits));
        if bytes.is_none() && way.is_new_kind && !self.is_rows() {
            replayed.losses.push(self.lost_beside(Lost::Original, 1));
        }
        Ok(bytes)
    }

    /// Something of no record in particular.
    fn lost_beside(&self, what: Lost, count: u64) -> LossRow {
        let record = self.head().map(|head| head.id().into_owned()).unwrap_or_default();
        LossRow { record, what, kind: LossKind::Dropped, count, fields: Vec::new() }
    }

    /// Writes the new file, and tells what it does not say as the source does.
    fn write_as(&self, how: &Conversion<'_>, way: &Way, file: &Path) -> Result<Replayed> {
        let how = &Conversion { with: way.with.as_deref(), ..*how };
        let Some(stepped) = &way.stepped else { return self.write_in_one_step(how, way, file) };
        let replayed = stepped.session.write_in_one_step(how, way, file)?;
        Ok(Replayed { losses: stepped.told(replayed.losses), ..replayed })
    }

    /// The same, from what the last step begins with: the file is read back, and compared.
    fn write_in_one_step(&self, how: &Conversion<'_>, way: &Way, file: &Path) -> Result<Replayed> {
        let (store, id, kept) = (&way.store, &way.id, way.back.as_ref());
        if self.stays(how) {
            return self.copy_to(file).map(|()| Replayed::default());
        }
        let head = self.head_called(how.head)?;
        let mut replayed = match kept {
            Some(kept) => replay::go_on(self, kept, store, id, file)?,
            None => replay::all(self, how, store, id, file)?,
        };
        if kept.is_none() && !replayed.has_said {
            return Err(Error::NothingToStore(how.to.name()));
        }
        let reading = ReadOptions::plain(self.updated().unwrap_or_else(|| (store.host.now)()));
        let converted = Session::open(&Source::file(how.to, file), &reading)?;
        let mut pairs: Vec<(RecordRef<'_>, RecordRef<'_>)> = head.into_iter().zip(converted.head()).collect();
        if store.writing.shape == Shape::Tree {
            let by_name: HashMap<_, _> = converted.records().map(|record| (record.id(), record)).collect();
            for other in self.heads().map(|other| other.record).filter(|other| Some(*other) != head) {
                let now = replayed.tips.get(&other.order()).and_then(|id| by_name.get(id.as_str()).copied());
                pairs.extend(now.map(|now| (other, now)));
            }
        }
        if kept.is_none() && self.parent_session().is_some() && converted.parent_session().is_none() {
            replayed.losses.push(self.lost_beside(Lost::ParentSession, 1));
        }
        let told_before = replayed.losses.len();
        compare::add_differences(&pairs, (self, &converted), &mut replayed)?;
        if let Some(kept) = kept {
            // What differs in the lines that came back was told on the way here.
            let newer: HashSet<String> = self
                .records()
                .filter(|record| kept.is_newer(*record))
                .map(|record| record.id().into_owned())
                .collect();
            let mut at = 0;
            replayed.losses.retain(|row| {
                at += 1;
                at <= told_before || newer.contains(&row.record)
            });
        }
        self.add_unsaid(how, way, &pairs, &converted, &mut replayed.losses)?;
        Ok(replayed)
    }

    /// Adds what is lost of the source though none of its messages says it.
    fn add_unsaid(
        &self,
        how: &Conversion<'_>,
        way: &Way,
        pairs: &[(RecordRef<'_>, RecordRef<'_>)],
        converted: &Session,
        losses: &mut Vec<LossRow>,
    ) -> Result<()> {
        let kept = way.back.as_ref();
        losses.extend(damage::places(self, kept));
        losses.extend(damage::ends(pairs, kept));
        if kept.is_none() {
            let is_described = matches!(how.target, Target::Store(_)) && way.store.writing.sidecar.is_some();
            let beside = is_described.then(|| way.store.host.cwd.to_string_lossy());
            losses.extend(damage::working_directory((self, converted), beside.as_deref(), losses));
        }
        let fields = unheld::rows(self, kept, losses)?;
        losses.extend(fields);
        Ok(())
    }

    /// A session that is rows of a database has no bytes of its own.
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
    fn head_called(&self, name: Option<&str>) -> Result<Option<RecordRef<'_>>> {
        name.map_or_else(|| Ok(self.head()), |name| self.find(name).map(Some))
    }
}

/// Losses of one record and one kind as one row, in the order of the records.
fn rows(losses: Vec<LossRow>) -> Vec<LossRow> {
    let mut at: HashMap<(String, Lost, LossKind), usize> = HashMap::new();
    let mut rows: Vec<LossRow> = Vec::new();
    for loss in losses {
        let known = *at.entry((loss.record.clone(), loss.what.clone(), loss.kind)).or_insert(rows.len());
        match rows.get_mut(known) {
            Some(row) => {
                row.count += loss.count;
                row.fields.extend(loss.fields);
            }
            None => rows.push(loss),
        }
    }
    rows
}
