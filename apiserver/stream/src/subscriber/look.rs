//! What a subscriber's cursor finds in the log of its view. Pure.

use std::sync::Arc;

use crate::log::{Entry, Log};
use crate::token::Position;

/// What the view has for a cursor.
pub enum Look {
    /// The next entry.
    Entry(Arc<Entry>),
    /// What comes next belongs to the next batch.
    Later,
    /// The cursor is at the end.
    Nothing,
    /// Removals were dropped that the reader has not seen.
    FellBehind,
}

/// Looks for what comes after a cursor. Removals up to `removals_after` are passed over; with a `batch`, what comes after it
/// is [`Look::Later`].
pub fn look(log: &Log, cursor: Position, removals_after: Position, batch: Option<Position>) -> Look {
    if log.horizon() > cursor.max(removals_after) {
        return Look::FellBehind;
    }
    let is_wanted = |entry: &&Arc<Entry>| !entry.is_removal || entry.position > removals_after;
    match log.after(cursor).find(is_wanted) {
        Some(entry) if batch.is_some_and(|end| entry.position > end) => Look::Later,
        Some(entry) => Look::Entry(entry.clone()),
        None => Look::Nothing,
    }
}
