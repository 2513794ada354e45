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
mod kept;
mod left_behind;
mod pairing;
mod replay;
mod script;

use std::path::{Component, Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use serde::Serialize;

use crate::dialect::Dialect;
use crate::disk::{Disk, Real};
use crate::error::{At, Error, Result};
use crate::fork::Staged;
use crate::host::Host;
use crate::layout::Format;
use crate::project;
use crate::reading::Reading;
use crate::record::SessionId;
use crate::replace::{take_away, write_all};
use crate::session::{NotFound, RecordRef, Session};
use crate::source::Source;
use crate::store::{FILE_NAME_LIMIT_BYTES, NewSession, Store};
use crate::writing::{LossKind, Shape};
use kept::{Beside, Kept};
use replay::Replayed;

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
    pub what: String,
    /// What became of it.
    pub kind: LossKind,
    /// How often in that record.
    pub count: u64,
}

impl Session {
    /// Writes this session as another dialect's file. The source is only read.
    ///
    /// The same dialect gives the same bytes; a session that was converted before gives back what its sidecar kept.
    pub fn convert(&self, how: &Conversion<'_>, host: &Host) -> Result<Converted> {
        if !self.whole() {
            let what = "a session that was read in part".to_owned();
            return Err(Error::CannotHold { dialect: how.to.name(), what });
        }
        let Beside { back, other, remark } = Kept::beside(self, how.to);
        self.check_head(how, back.as_ref())?;
        let id = self.id_for(how, back.as_ref());
        let store = self.store_for(how, host)?;
        let path = self.path_for(how, &store, &id, back.as_ref())?;
        // Where a session is called after its place, it is called so from the beginning.
        let is_new_kind = back.is_none() && !self.stays(how);
        let is_placed = is_new_kind && matches!(how.target, Target::Store(_));
        let id = how.to.session_of(&path).filter(|_| is_placed).map_or(id, SessionId);
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let (replayed, sidecar) = (|| {
            let replayed = self.write_as(how, &store, &id, back.as_ref(), staged.file())?;
            let kept = self.kept_for(how, back, other, &replayed, staged.file())?;
            let sidecar = kept.map(|kept| publish_beside(&kept, &path, &(host.new_id)())).transpose()?;
            // The file comes last: where it is, all of it is.
            staged
                .publish()
                .inspect_err(|_| drop(sidecar.as_deref().map(|sidecar| take_away(&Real, sidecar))))?;
            Ok((replayed, sidecar))
        })()
        .inspect_err(|_| staged.clean_up())?;
        let mut remarks: Vec<String> = remark.into_iter().collect();
        if sidecar.is_none() && is_new_kind {
            remarks.push("the original is too large, or no file of its own, to be kept beside it".to_owned());
        }
        let mut losses = replayed.losses;
        losses.extend(left_behind::rows(self, is_new_kind));
        if let Target::Store(_) = how.target {
            let described = store.describe(self, &id, &path, &project::of(&store.host.cwd));
            remarks.extend(described.err().map(|error| format!("the file beside it was not written: {error}")));
        }
        Ok(Converted { session: id, path, sidecar, losses: rows(losses), remarks })
    }

    /// Whether this session was made of one of `to`, and can become that one again.
    pub fn comes_from(&self, to: &'static dyn Dialect) -> bool {
        Kept::beside(self, to).back.is_some()
    }

    /// The bytes that [`Session::convert`] would write, and what they do not say; `scratch` is a folder for files on the way.
    pub fn converted_bytes(
        &self,
        how: &Conversion<'_>,
        host: &Host,
        scratch: &Path,
    ) -> Result<(Vec<u8>, Vec<LossRow>)> {
        let how = Conversion { target: Target::Store(scratch), ..*how };
        let Beside { back, .. } = Kept::beside(self, how.to);
        self.check_head(&how, back.as_ref())?;
        let id = self.id_for(&how, back.as_ref());
        let store = self.store_for(&how, host)?;
        let path = scratch.join((host.new_id)());
        let staged = Staged::make(&Real, &path, &(host.new_id)())?;
        let written = self.write_as(&how, &store, &id, back.as_ref(), staged.file());
        let is_new_kind = back.is_none() && !self.stays(&how);
        let bytes = written.and_then(|mut replayed| {
            replayed.losses.extend(left_behind::rows(self, is_new_kind));
            Ok((std::fs::read(staged.file()).at(&path)?, rows(replayed.losses)))
        });
        staged.clean_up();
        bytes
    }

    /// Lines that are copied are copied with all their branches.
    fn check_head(&self, how: &Conversion<'_>, back: Option<&Kept>) -> Result<()> {
        match how.head {
            Some(_) if back.is_some() || self.stays(how) => Err(Error::CopiedWhole),
            Some(_) | None => Ok(()),
        }
    }

    /// What the new session is called: as it was called before, or always the same for the same source.
    fn id_for(&self, how: &Conversion<'_>, back: Option<&Kept>) -> SessionId {
        match back {
            Some(kept) => kept.session(),
            None if self.stays(how) => self.id(),
            None => script::derived_id(self.id().as_str(), how.to.name()),
        }
    }

    /// Whether the bytes can stay as they are. Rows of a database have none.
    fn stays(&self, how: &Conversion<'_>) -> bool {
        how.to.name() == self.dialect().name() && !self.is_rows()
    }

    /// What goes into the file beside the new one.
    fn kept_for(
        &self,
        how: &Conversion<'_>,
        back: Option<Kept>,
        other: Option<Kept>,
        replayed: &Replayed,
        file: &Path,
    ) -> Result<Option<Kept>> {
        match back {
            // What came back was made of another one, and can go on to it.
            Some(mut back) => Ok(back.take_before()),
            None if self.stays(how) => Ok(other),
            None => Kept::of(self, how.to, file, replayed, other),
        }
    }

    /// Writes the new file, reads it back, and tells what it does not say as the source does.
    fn write_as(
        &self,
        how: &Conversion<'_>,
        store: &Store,
        id: &SessionId,
        kept: Option<&Kept>,
        file: &Path,
    ) -> Result<Replayed> {
        if self.stays(how) {
            return self.copy_to(file).map(|()| Replayed::default());
        }
        let head = self.head_called(how.head)?;
        let mut replayed = match kept {
            Some(kept) => replay::go_on(self, kept, store, id, file)?,
            None => replay::all(self, how, store, id, file)?,
        };
        if kept.is_none() && !replayed.has_said {
            return Err(Error::Nothing(how.to.name()));
        }
        let reading = Reading::plain(self.updated().unwrap_or_else(|| (store.host.now)()));
        let converted = Session::open(&Source::file(how.to, file), &reading)?;
        let mut pairs: Vec<(RecordRef<'_>, RecordRef<'_>)> = head.into_iter().zip(converted.head()).collect();
        if store.writing.shape == Shape::Tree {
            let by_name: HashMap<_, _> = converted.records().map(|record| (record.id(), record)).collect();
            for other in self.heads().map(|other| other.record).filter(|other| Some(*other) != head) {
                let now = replayed.tips.get(&other.order()).and_then(|id| by_name.get(id.as_str()).copied());
                pairs.extend(now.map(|now| (other, now)));
            }
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
        Ok(replayed)
    }

    /// A session that is rows of a database has no bytes of its own.
    pub(crate) fn is_rows(&self) -> bool {
        matches!(self.source.layout.format, Format::Rows(_))
    }

    /// What the new session would be called, and its file. One that is there is refused.
    pub fn destination(&self, how: &Conversion<'_>, host: &Host) -> Result<(SessionId, PathBuf)> {
        let same = how.to.name() == self.dialect().name();
        let id = if same { self.id() } else { script::derived_id(self.id().as_str(), how.to.name()) };
        let path = self.path_for(how, &self.store_for(how, host)?, &id, None)?;
        Ok((id, path))
    }

    /// The store that the new file is made for: it works where and when the source did.
    fn store_for(&self, how: &Conversion<'_>, host: &Host) -> Result<Store> {
        let is_a_place = |cwd: &PathBuf| cwd.is_absolute() && !cwd.as_os_str().as_encoded_bytes().contains(&0);
        let cwd = self.cwd().map(PathBuf::from).filter(is_a_place).unwrap_or_else(|| host.cwd.clone());
        // Another program's version is none of this one's.
        let own_version = self.agent_version().filter(|_| how.to.name() == self.dialect().name());
        let version = own_version.map_or_else(|| host.version.clone(), str::to_owned);
        let root = match how.target {
            Target::Store(root) => host.cwd.join(root),
            Target::File(file) => host.cwd.join(file).parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        let started = self.started();
        let now = host.now.clone();
        let now = std::sync::Arc::new(move || started.unwrap_or_else(|| now()));
        Store::open(how.to, &root, Host { now, cwd, version, ..host.clone() })
    }

    fn path_for(&self, how: &Conversion<'_>, store: &Store, id: &SessionId, back: Option<&Kept>) -> Result<PathBuf> {
        let path = match how.target {
            Target::File(file) => store.root.join(file.file_name().unwrap_or_default()),
            Target::Store(_) => {
                let project = project::of(&store.host.cwd);
                let with = how.with.map(str::to_owned).or_else(|| self.with_before(how, back));
                let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
                let place = |id: &SessionId| store.path_of(&store.beginning(id, &new, self.git_branch())?);
                // What another file calls itself may be no name for one.
                let fresh = script::derived_id(self.id().as_str(), how.to.name());
                let path = place(id).or_else(|_| place(&fresh))?;
                let is_known = back.is_some() || self.stays(how);
                let ended = is_known.then(|| ended_place(store, &path, id)).flatten();
                let path = ended.unwrap_or(path);
                // Where the place tells the instant and the source does not, it was another one the last time.
                if self.started().is_none()
                    && let Ok(known) = store.source(id.as_str())
                {
                    return Err(Error::Exists(known.path));
                }
                store.check_folder(&path, &project)?;
                path
            }
        };
        let name = kept::path(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.len() > FILE_NAME_LIMIT_BYTES {
            let why = format!("with the file beside it, {} bytes are too long for a name", name.len());
            return Err(Error::BadName { name: path.file_name().unwrap_or_default().to_string_lossy().into(), why });
        }
        let taken = [path.clone(), kept::path(&path)].into_iter().find(|path| store.disk.exists(path));
        taken.map_or(Ok(path), |taken| Err(Error::Exists(taken)))
    }

    /// Whom a session was with that becomes what it is or was.
    fn with_before(&self, how: &Conversion<'_>, back: Option<&Kept>) -> Option<String> {
        match back {
            Some(kept) => {
                let before = Session::from_bytes(how.to, kept.original(), &Reading::plain(Timestamp::UNIX_EPOCH));
                Some(before.with().unwrap_or(kept.called()).to_owned())
            }
            None if self.stays(how) => self.with().map(str::to_owned),
            None => None,
        }
    }

    fn copy_to(&self, file: &Path) -> Result<()> {
        let Some(own) = self.files.0.first() else { return Ok(()) };
        let mut copy = std::fs::File::create(file).at(file)?;
        std::io::copy(&mut own.reader(0)?, &mut copy).at(file)?;
        copy.sync_all().at(file)
    }

    /// The head that was named, or the session's own.
    fn head_called(&self, name: Option<&str>) -> Result<Option<RecordRef<'_>>> {
        let Some(name) = name else { return Ok(self.head()) };
        self.find(name).map(Some).map_err(|reason| match reason {
            NotFound::Nothing | NotFound::Several(_) => Error::NoRecord { record: name.to_owned() },
        })
    }
}

/// Where a session that was ended lies, if its name says so: not where the one lies that goes on.
fn ended_place(store: &Store, going_on: &Path, id: &SessionId) -> Option<PathBuf> {
    let current = store.dialect.session_of(going_on).filter(|current| current != id.as_str())?;
    let name = id.as_str().strip_prefix(current.as_str())?.strip_prefix(':')?;
    let mut parts = Path::new(name).components();
    let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let ended = (store.writing.archive?)(going_on, Timestamp::UNIX_EPOCH).filter(|_| is_plain)?;
    let place = ended.with_file_name(format!("{name}.{}", ended.extension()?.to_string_lossy()));
    (store.dialect.session_of(&place).as_deref() == Some(id.as_str())).then_some(place)
}

/// Writes the file beside a converted one. One that is there is refused.
fn publish_beside(kept: &Kept, path: &Path, new_id: &str) -> Result<PathBuf> {
    let sidecar = kept::path(path);
    let staged = Staged::make(&Real, &sidecar, new_id)?;
    let written = (|| {
        let file = Real.create(staged.file()).at(staged.file())?;
        write_all(&*file, &kept.to_bytes(), staged.file())?;
        file.sync().at(staged.file())?;
        staged.publish()
    })();
    written.inspect_err(|_| staged.clean_up())?;
    Ok(sidecar)
}

/// Losses of one record and one kind as one row, in the order of the records.
fn rows(losses: Vec<LossRow>) -> Vec<LossRow> {
    let mut at: HashMap<(String, String, LossKind), usize> = HashMap::new();
    let mut rows: Vec<LossRow> = Vec::new();
    for loss in losses {
        let known = *at.entry((loss.record.clone(), loss.what.clone(), loss.kind)).or_insert(rows.len());
        match rows.get_mut(known) {
            Some(row) => row.count += loss.count,
            None => rows.push(loss),
        }
    }
    rows
}
