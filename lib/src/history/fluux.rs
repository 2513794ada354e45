//! A history as what Fluux Agent sends to its model.

use super::{History, Out};
use crate::error::Result;

pub(super) fn write(_history: &History<'_>, _out: &mut Out<'_>) -> Result<()> {
    Ok(())
}
