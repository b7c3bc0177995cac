//! A watch delivers every change of its keys above its start, in order, once, and nothing else.

use std::ops::Bound;

use super::FoundFaults;
use super::model::{Version, WriteModel};
use crate::record::{
    DeliveredEvent, DeliveredItem, DeliveredKind, History, Moment, Pair, RecordedWatch, Rev, WatchStart,
};

pub fn check(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    for stream in &history.streams {
        let before = faults.0.len();
        initial(stream, model, faults);
        changes(history, stream, model, faults);
        expiry(history, stream, faults);
        for fault in &mut faults.0[before..] {
            *fault = format!("{}, watch of {:?} from {:?}: {fault}", stream.by, stream.keys, stream.from);
        }
    }
}

/// The present objects are the state at the revision that ends them, which is as new as was asked for.
fn initial(stream: &RecordedWatch, model: &WriteModel, faults: &mut FoundFaults) {
    let (WatchStart::Initial(least), Some(at)) = (stream.from, stream.base()) else { return };
    if at < least {
        faults.add(format!("it began at {at}, and {least} was asked for"));
    }
    let delivered: Vec<&Pair> = stream.items.iter().filter_map(|(_, item)| present(item)).collect();
    let state = model.state(&stream.keys, at);
    let expected: Vec<_> = state.into_iter().filter(|(_, version)| selects(stream, version)).collect();
    let equal = delivered.len() == expected.len()
        && delivered
            .iter()
            .zip(&expected)
            .all(|(pair, (key, v))| pair.key == *key && pair.modified == v.modified);
    if !equal {
        faults.add(format!(
            "it began with {} objects at {at} instead of {}",
            delivered.len(),
            expected.len()
        ));
    }
}

fn changes(history: &History, stream: &RecordedWatch, model: &WriteModel, faults: &mut FoundFaults) {
    let Some(base) = stream.base() else { return };
    let mut upto = base;
    let mut delivered: Vec<(Moment, &DeliveredEvent)> = Vec::new();
    for (stamp, item) in &stream.items {
        match item {
            DeliveredItem::Event(event) => {
                if event.revision <= upto {
                    faults.add(format!("{event:?} came after everything up to {upto} had been delivered"));
                    return;
                }
                upto = event.revision;
                delivered.push((*stamp, event));
            }
            // A watch that starts in the future may have delivered nothing yet.
            DeliveredItem::Progress(at) => upto = upto.max(*at),
            _ => {}
        }
    }
    let mut expected = expected(stream, model, base, upto);
    for (stamp, event) in delivered {
        match expected.next() {
            Some(due) if agrees(history, stream, stamp, event, &due) => {}
            due => return faults.add(format!("{event:?} was delivered where {due:?} was due")),
        }
    }
    if let Some(due) = expected.next() {
        faults.add(format!("everything up to {upto} was delivered but {due:?}"));
    }
}

/// The changes that a watcher must get.
fn expected<'t>(
    stream: &'t RecordedWatch,
    model: &'t WriteModel,
    base: Rev,
    upto: Rev,
) -> impl Iterator<Item = DeliveredEvent> + 't {
    let span = (Bound::Excluded(base), Bound::Included(upto));
    let entries = model.log.range(span).filter(|(_, entry)| stream.keys.contains(&entry.key));
    entries.filter_map(move |(at, entry)| {
        let seen = |revision| model.at(&entry.key, revision).filter(|version| selects(stream, version));
        let (before, now) = (seen(at - 1), seen(*at));
        let kind = match (before, now) {
            (None, None) => return None,
            (None, Some(_)) => DeliveredKind::Added,
            (Some(_), Some(_)) => DeliveredKind::Modified,
            (Some(_), None) => DeliveredKind::Deleted,
        };
        let value = now.or(before).map(|version| version.value);
        let previous = before.map(|version| Pair {
            key: entry.key.clone(),
            value: version.value,
            modified: version.modified,
            created: Some(version.created),
        });
        Some(DeliveredEvent { revision: *at, key: entry.key.clone(), kind, value, previous })
    })
}

/// The state before need not be delivered when it was compacted meanwhile.
fn agrees(
    history: &History,
    stream: &RecordedWatch,
    stamp: Moment,
    delivered: &DeliveredEvent,
    due: &DeliveredEvent,
) -> bool {
    let compacted = || history.compactions.iter().any(|c| c.called < stamp && c.at >= delivered.revision);
    let previous = match (&delivered.previous, &due.previous) {
        (Some(delivered), Some(due)) => delivered == due,
        (Some(_), None) => false,
        (None, Some(_)) => !stream.tells_previous || compacted(),
        (None, None) => true,
    };
    let value = delivered.value == due.value || (delivered.value.is_none() && compacted());
    previous
        && value
        && (delivered.revision, &delivered.key, delivered.kind) == (due.revision, &due.key, due.kind)
}

/// A watch ends for lack of history only where history was compacted. A watch that selects by an object's
/// previous state needs the state before the next change too, which a compaction at that change removes.
fn expiry(history: &History, stream: &RecordedWatch, faults: &mut FoundFaults) {
    let ahead = u64::from(stream.tells_previous);
    let mut upto = stream.base().unwrap_or_default();
    for (stamp, item) in &stream.items {
        match item {
            DeliveredItem::Event(event) => upto = event.revision,
            DeliveredItem::Progress(at) => upto = upto.max(*at),
            DeliveredItem::Expired => {
                let mut before = history.compactions.iter().filter(|c| c.called < *stamp);
                if !before.any(|compaction| compaction.at > upto + ahead) {
                    faults.add(format!("it expired at {upto}, which was never compacted"));
                }
            }
            _ => {}
        }
    }
}

fn present(item: &DeliveredItem) -> Option<&Pair> {
    match item {
        DeliveredItem::Present(pair) => Some(pair),
        _ => None,
    }
}

fn selects(stream: &RecordedWatch, version: &Version) -> bool {
    !stream.even || version.value.is_multiple_of(2)
}
