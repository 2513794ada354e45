//! A history as the model messages of the AI SDK.

use super::{History, Out};
use crate::error::Result;

pub(super) fn write(_history: &History<'_>, _out: &mut Out<'_>) -> Result<()> {
    Ok(())
}
