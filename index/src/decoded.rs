//! Rows of the index that other threads decode while this one reads on: the database is read by one thread, and decoding takes longer.

use std::sync::{Mutex, PoisonError};

/// So many rows are handed over at once.
const BATCH: usize = 64;

/// Decodes all rows that `read` passes on, in any order. Those that are damaged are left out.
pub(crate) fn decoded<R: Send, T: Send, E>(
    read: impl FnOnce(&mut dyn FnMut(R)) -> Result<(), E>,
    decode: impl Fn(R) -> Option<T> + Sync,
) -> Result<Vec<T>, E> {
    let decoded = Mutex::new(Vec::new());
    let decode = |rows: Vec<R>| {
        let rows: Vec<T> = rows.into_iter().filter_map(&decode).collect();
        decoded.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
    };
    let decode = &decode;
    rayon::in_place_scope(|scope| {
        let mut batch = Vec::with_capacity(BATCH);
        read(&mut |row| {
            batch.push(row);
            if batch.len() == BATCH {
                let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                scope.spawn(move |_| decode(full));
            }
        })?;
        decode(batch);
        Ok(())
    })?;
    Ok(decoded.into_inner().unwrap_or_else(PoisonError::into_inner))
}
