//! What a subscriber's cursor finds in the log of its view. Pure.

use std::sync::Arc;

use crate::log::{Entry, Log};
use crate::token::Position;

/// What the view has for a cursor.
pub enum Next {
    /// The next entry.
    Entry(Arc<Entry>),
    /// What comes next belongs to the next batch.
    Later,
    /// The cursor is at the end.
    Nothing,
    /// Removals were dropped that the reader has not seen.
    FellBehind,
}

/// What comes after a cursor. Removals up to `removals_after` are passed over; with a `batch`, what comes after it
/// is [`Next::Later`].
pub fn next(log: &Log, cursor: Position, removals_after: Position, batch: Option<Position>) -> Next {
    if log.horizon() > cursor.max(removals_after) {
        return Next::FellBehind;
    }
    let is_wanted = |entry: &&Arc<Entry>| !entry.is_removal || entry.position > removals_after;
    match log.after(cursor).find(is_wanted) {
        Some(entry) if batch.is_some_and(|end| entry.position > end) => Next::Later,
        Some(entry) => Next::Entry(entry.clone()),
        None => Next::Nothing,
    }
}
