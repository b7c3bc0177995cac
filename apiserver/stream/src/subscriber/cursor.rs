//! Finds what follows a subscriber's cursor in the log of its view. Does no I/O.

use std::sync::Arc;

use crate::log::{Entry, Log};
use crate::token::Position;

/// What follows a cursor in a view.
pub enum Next {
    /// The next entry.
    Entry(Arc<Entry>),
    /// The next entry belongs to the next batch.
    Later,
    /// The cursor is at the end.
    Nothing,
    /// Removals were dropped that the client was not sent.
    FellBehind,
}

/// Returns what follows a cursor. Removals up to `removals_after` are skipped. An entry after the end of the `batch`,
/// if there is one, is [`Next::Later`].
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
