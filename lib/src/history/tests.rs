//! What each view makes of a history.
