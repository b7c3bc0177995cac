//! In-flight limits: reading and mutating requests apart, long-running ones uncounted
//! (k8s.io/apiserver pkg/server/filters/maxinflight.go).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits on requests that are being answered at one time.
#[derive(Clone, Debug)]
pub struct InFlight {
    reading: Arc<Semaphore>,
    mutating: Arc<Semaphore>,
    limits: (usize, usize),
}

impl InFlight {
    /// At most `reading` and `mutating` requests at a time; 0 is no limit.
    pub fn new(reading: usize, mutating: usize) -> Self {
        let [reading, mutating] = [reading, mutating].map(|limit| match limit {
            0 => Semaphore::MAX_PERMITS,
            limit => limit.min(Semaphore::MAX_PERMITS),
        });
        Self {
            reading: Arc::new(Semaphore::new(reading)),
            mutating: Arc::new(Semaphore::new(mutating)),
            limits: (reading, mutating),
        }
    }

    /// A place that is held until it is dropped, or `None` when all are taken.
    pub fn enter(&self, mutating: bool) -> Option<OwnedSemaphorePermit> {
        let places = if mutating { &self.mutating } else { &self.reading };
        places.clone().try_acquire_owned().ok()
    }

    /// How many places are taken: reading, mutating.
    pub fn taken(&self) -> (usize, usize) {
        let (reading, mutating) = self.limits;
        (reading - self.reading.available_permits(), mutating - self.mutating.available_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_and_mutating_have_places_of_their_own() {
        let limits = InFlight::new(1, 1);
        let reading = limits.enter(false);
        assert!(reading.is_some() && limits.enter(false).is_none());
        assert!(limits.enter(true).is_some());
        drop(reading);
        assert!(limits.enter(false).is_some());
    }

    #[test]
    fn nought_and_more_than_there_can_be_are_no_limit() {
        for limit in [0, usize::MAX] {
            let limits = InFlight::new(limit, limit);
            let place = limits.enter(true);
            assert!(place.is_some() && limits.enter(true).is_some());
            assert_eq!(limits.taken(), (0, 1));
        }
    }
}
