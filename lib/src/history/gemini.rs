//! A history as the `contents` of the Gemini API.

use super::{History, Out};
use crate::error::Result;

pub(super) fn write(_history: &History<'_>, _out: &mut Out<'_>) -> Result<()> {
    Ok(())
}
