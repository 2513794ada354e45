//! An open file of the simulated disk.

use std::io;
use std::path::Path;
use std::sync::Mutex;

use super::super::{Appended, Locked, OpenLog, PathTarget};
use super::{Power, Random, Sim};

pub(super) struct SimLog {
    pub(super) sim: Sim,
    pub(super) node: usize,
    pub(super) id: usize,
    /// How many failures of `sync` were reported to this handle.
    pub(super) reported: Mutex<usize>,
}

impl OpenLog for SimLog {
    fn len(&self) -> io::Result<u64> {
        let (state, _) = self.sim.step()?;
        Ok(state.nodes[self.node].cache.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (state, short) = self.sim.step()?;
        let rest = state.nodes[self.node].cache.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len()).min(short.unwrap_or(usize::MAX).max(1));
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<Appended> {
        let (mut state, short) = self.sim.step()?;
        let used: u64 = state.nodes.iter().map(|node| node.cache.len() as u64).sum();
        let room = state.space.map_or(usize::MAX, |space| space.saturating_sub(used) as usize);
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(room).min(short.unwrap_or(usize::MAX));
        let node = &mut state.nodes[self.node];
        node.append(&bytes[..taken], self.id);
        Ok(Appended { taken, end: node.cache.len() as u64 })
    }

    fn truncate_if_last(&self, start: u64, end: u64) -> io::Result<bool> {
        let (mut state, _) = self.sim.step()?;
        let node = &mut state.nodes[self.node];
        if node.cache.len() as u64 != end {
            return Ok(false);
        }
        let is_ours = start == end || node.last_write.is_some_and(|(who, from)| who == self.id && from as u64 <= start);
        node.cut(start as usize);
        if !is_ours {
            state.broken.push(format!("bytes of others were cut off at {start}"));
        }
        Ok(true)
    }

    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut state, _) = self.sim.step()?;
        if state.file(path) != Some(self.node) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let node = &mut state.nodes[self.node];
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if node.cache.get(start..end) == Some(bytes) {
            node.touch(start, end);
        } else {
            state.broken.push(format!("earlier bytes were changed at {offset}"));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let step = self.sim.step();
        let fails = step.as_ref().err().map(io::Error::kind);
        drop(step);
        let mut state = self.sim.state();
        if state.power == Power::Off {
            return Err(io::Error::other("the power is off"));
        }
        let mut random = Random(state.random.next());
        let node = &mut state.nodes[self.node];
        let mut reported = self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(kind) = fails {
            node.lose(&mut random);
            *reported = node.failures;
            return Err(kind.into());
        }
        node.carry();
        if std::mem::replace(&mut *reported, node.failures) < node.failures {
            return Err(io::Error::other("another handle's sync failed"));
        }
        Ok(())
    }

    fn lock(&self) -> io::Result<Locked> {
        let (mut state, _) = self.sim.step()?;
        if state.has_no_locks {
            return Ok(Locked::Unsupported);
        }
        if state.held > 0 {
            state.held -= 1;
            return Ok(Locked::Busy);
        }
        let owner = &mut state.nodes[self.node].locked_by;
        if owner.is_some_and(|owner| owner != self.id) {
            return Ok(Locked::Busy);
        }
        *owner = Some(self.id);
        Ok(Locked::Yes)
    }

    fn unlock(&self) -> io::Result<()> {
        let (mut state, _) = self.sim.step()?;
        state.nodes[self.node].locked_by.take_if(|owner| *owner == self.id);
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<PathTarget> {
        let (state, _) = self.sim.step()?;
        Ok(match state.names.get(path) {
            Some(Some(node)) if *node == self.node => {
                PathTarget::ThisFile { length: state.nodes[self.node].cache.len() as u64 }
            }
            Some(_) => PathTarget::AnotherFile,
            None => PathTarget::Nothing,
        })
    }
}

impl Drop for SimLog {
    fn drop(&mut self) {
        self.sim.state().nodes[self.node].locked_by.take_if(|owner| *owner == self.id);
    }
}
