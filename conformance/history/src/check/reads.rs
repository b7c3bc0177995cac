//! A read shows exactly what stood at the revision that it names.

use super::FoundFaults;
use super::model::{Version, WriteModel};
use crate::record::{History, Op, Pair, RecordedOperation, Rev, UnansweredRead};

pub fn check(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    unanswered(history, faults);
    for op in &history.ops {
        match &op.what {
            RecordedOperation::Get { key, found, revision: Some(at) } => {
                same(op, *at, found.as_slice(), model.at(key, *at).map(|v| (key.as_str(), v)), faults);
            }
            RecordedOperation::Range { keys, found, revision, least, whole, .. } => {
                if revision < least {
                    faults.add(format!("{}: a list at {revision}, though {least} was asked for", op.by));
                }
                // Of a page that is not the last, only the shown items can be wrong.
                let state = model.state(keys, *revision);
                let upto = found.last().map_or("", |pair| pair.key.as_str());
                let state = state.into_iter().filter(|(key, _)| *whole || *key <= upto);
                same(op, *revision, found, state, faults);
            }
            RecordedOperation::NotOlder { key, found, least } => {
                not_older(op, key, found.as_ref(), *least, model, faults)
            }
            RecordedOperation::Expired { asked } => {
                let mut before = history.compactions.iter().filter(|c| Some(c.called) < op.returned);
                if !before.any(|compaction| compaction.at > *asked) {
                    faults.add(format!("{}: revision {asked} is expired, and was never compacted", op.by));
                }
            }
            _ => {}
        }
    }
}

/// With most members alive every read is answered; on a machine that is not busy, before its deadline.
fn unanswered(history: &History, faults: &mut FoundFaults) {
    let Some(outages) = &history.outages else { return };
    let judged = |read: &&UnansweredRead| history.judges_deadlines || !read.had_its_time;
    for read in history.unanswered.iter().filter(judged) {
        if !outages.iter().any(|(from, upto)| read.called < *upto && *from < read.returned) {
            faults.add(format!("{}: a read failed though most members lived: {}", read.by, read.why));
        }
    }
}

fn same<'t>(
    op: &Op,
    at: Rev,
    found: &[Pair],
    expected: impl IntoIterator<Item = (&'t str, Version)>,
    faults: &mut FoundFaults,
) {
    let expected: Vec<(&str, Version)> = expected.into_iter().collect();
    let equal = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(pair, (key, version))| pair.key == *key && is(pair, version));
    if !equal {
        let different =
            found.iter().find(|pair| !expected.iter().any(|(k, v)| *k == pair.key && is(pair, v)));
        let missing = expected.iter().find(|(k, v)| !found.iter().any(|pair| *k == pair.key && is(pair, v)));
        faults.add(format!(
            "{}: a read at {at} found {} keys instead of {}: {different:?} instead of {missing:?}",
            op.by,
            found.len(),
            expected.len(),
        ));
    }
}

fn not_older(
    op: &Op,
    key: &str,
    found: Option<&Pair>,
    least: Rev,
    model: &WriteModel,
    faults: &mut FoundFaults,
) {
    let mut states = model.since(key, least).into_iter();
    let is_one = states.any(|version| match (found, version) {
        (None, None) => true,
        (Some(pair), Some(version)) => is(pair, &version),
        _ => false,
    });
    if !is_one {
        faults.add(format!("{}: {key} was never {found:?} from {least} on", op.by));
    }
}

fn is(pair: &Pair, version: &Version) -> bool {
    pair.value == version.value
        && pair.modified == version.modified
        && pair.created.is_none_or(|created| created == version.created)
}
