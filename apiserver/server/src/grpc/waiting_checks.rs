//! Health checks whose message has not come yet. Any client may send them, and they take no seats: when there are too
//! many, the one that has waited longest is refused, so that a client that sends its message at once is always served.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Health checks that may wait for their message.
const MAX_WAITING: usize = 1024;

/// The health checks that wait, oldest first.
#[derive(Default)]
pub(super) struct WaitingChecks(Mutex<ChecksByAge>);

#[derive(Default)]
struct ChecksByAge {
    by_age: BTreeMap<u64, CancellationToken>,
    newest: u64,
}

/// A health check that waits, until this is dropped.
pub(super) struct WaitingCheck {
    checks: Arc<WaitingChecks>,
    number: u64,
    displaced: CancellationToken,
}

impl WaitingChecks {
    /// Adds a check that waits, and displaces the oldest one if there are too many.
    pub(super) fn wait(self: &Arc<Self>) -> WaitingCheck {
        let displaced = CancellationToken::new();
        let (number, oldest) = {
            let waiting = &mut *self.0.lock();
            waiting.newest += 1;
            waiting.by_age.insert(waiting.newest, displaced.clone());
            let is_full = waiting.by_age.len() > MAX_WAITING;
            (waiting.newest, is_full.then(|| waiting.by_age.pop_first()).flatten())
        };
        oldest.into_iter().for_each(|(_, oldest)| oldest.cancel());
        WaitingCheck { checks: self.clone(), number, displaced }
    }
}

impl WaitingCheck {
    /// Waits until this one is displaced.
    pub(super) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }
}

impl Drop for WaitingCheck {
    fn drop(&mut self) {
        self.checks.0.lock().by_age.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_check_makes_room_for_the_newest() {
        let checks = Arc::<WaitingChecks>::default();
        let mut waiting: Vec<_> = (0..=MAX_WAITING).map(|_| checks.wait()).collect();
        let displaced: Vec<bool> = waiting.iter().map(|check| check.displaced.is_cancelled()).collect();
        assert!(displaced[0] && displaced[1..].iter().all(|displaced| !displaced));
        waiting.pop();
        let _one_more = checks.wait();
        assert!(!waiting[1].displaced.is_cancelled(), "there was room again");
        drop(waiting);
        assert_eq!(checks.0.lock().by_age.len(), 1);
    }
}
