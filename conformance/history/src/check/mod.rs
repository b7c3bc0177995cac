//! Whether what was seen could have been seen of one store that keeps its promises.

mod linear;
mod order;
mod reads;
mod truth;
mod watches;
mod writes;

use crate::record::{History, Item, What, Written};
use truth::Truth;

/// What was found wrong.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<String>);

impl Faults {
    pub fn add(&mut self, fault: String) {
        self.0.push(fault);
    }
}

/// Checks a history.
pub fn check(history: &History) -> Faults {
    let mut faults = Faults::default();
    let truth = Truth::of(history, &mut faults);
    writes::check(history, &truth, &mut faults);
    order::check(history, &truth, &mut faults);
    reads::check(history, &truth, &mut faults);
    watches::check(history, &truth, &mut faults);
    linear::check(history, &truth, &mut faults);
    faults
}

/// How much was checked, in words.
pub fn summary(history: &History) -> String {
    let is_unknown = |what: &What| matches!(what, What::Write(write) if write.outcome == Written::Unknown);
    let writes = history.ops.iter().filter(|op| matches!(op.what, What::Write(_))).count();
    let unknown = history.ops.iter().filter(|op| is_unknown(&op.what)).count();
    let items = || history.streams.iter().flat_map(|stream| &stream.items).map(|(_, item)| item);
    let events = items().filter(|item| matches!(item, Item::Event(_) | Item::Present(_))).count();
    let bookmarks = items().filter(|item| matches!(item, Item::Progress(_) | Item::InitialEnd(_))).count();
    let counts: Vec<String> = history.counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
    format!(
        "{} operations ({writes} writes, {unknown} of unknown outcome), {} watches, {events} events, {bookmarks} bookmarks, {} compactions; {}",
        history.ops.len(),
        history.streams.len(),
        history.compactions.len(),
        counts.join(", "),
    )
}

#[cfg(test)]
mod tests;
