//! The conversions of the newest events: made for the first watcher that sends one, and shared by the others, which
//! share its frames in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use drydock_machinery::ApiError;
use parking_lot::Mutex;

use crate::storage::Stored;

/// Maximum number of conversions that are kept.
const KEPT: usize = 16;
/// A larger object is not kept, in bytes of its JSON.
const LARGE: usize = 64 * 1024;

/// Recent conversions to one version, by the stored state.
#[derive(Default)]
pub(super) struct RecentConversions(Mutex<VecDeque<ConvertedState>>);

struct ConvertedState {
    /// Held, so that no other state can have its address.
    stored: Arc<Stored>,
    served: Arc<Stored>,
}

impl RecentConversions {
    /// Returns the known conversion of a state, or else the one that `convert` makes. Two callers at once may both
    /// make it.
    ///
    /// # Errors
    /// Those of `convert`.
    pub fn of(
        &self,
        stored: &Arc<Stored>,
        convert: impl FnOnce() -> Result<Arc<Stored>, ApiError>,
    ) -> Result<Arc<Stored>, ApiError> {
        if let Some(known) = self.known(stored) {
            return Ok(known);
        }
        let served = convert()?;
        if stored.json_len().max(served.json_len()) > LARGE {
            return Ok(served);
        }
        let mut kept = self.0.lock();
        let oldest = if kept.len() == KEPT { kept.pop_front() } else { None };
        kept.push_back(ConvertedState { stored: stored.clone(), served: served.clone() });
        drop(kept);
        drop(oldest);
        Ok(served)
    }

    fn known(&self, stored: &Arc<Stored>) -> Option<Arc<Stored>> {
        let kept = self.0.lock();
        let known = kept.iter().rev().find(|known| Arc::ptr_eq(&known.stored, stored));
        known.map(|known| known.served.clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_machinery::Object;

    use super::*;
    use crate::backend::Revision;

    fn state(text: usize) -> Arc<Stored> {
        let object = serde_json::json!({"spec": {"text": "x".repeat(text)}});
        let object = Object::from_json(object.to_string().as_bytes()).unwrap();
        Arc::new(Stored::new("a".to_owned(), object, Revision(1)))
    }

    fn is_shared(recent: &RecentConversions, stored: &Arc<Stored>) -> bool {
        let first = recent.of(stored, || Ok(state(1))).unwrap();
        Arc::ptr_eq(&first, &recent.of(stored, || Ok(state(1))).unwrap())
    }

    #[test]
    fn a_state_is_converted_once_and_an_equal_one_is_another_state() {
        let (recent, stored) = (RecentConversions::default(), state(1));
        assert!(is_shared(&recent, &stored));
        let first = recent.of(&stored, || Err(ApiError::internal("made anew"))).unwrap();
        assert!(!Arc::ptr_eq(&first, &recent.of(&state(1), || Ok(state(1))).unwrap()));
    }

    #[test]
    fn a_few_are_kept_and_no_large_ones() {
        let recent = RecentConversions::default();
        assert!(!is_shared(&recent, &state(LARGE)));
        let oldest = state(1);
        assert!(is_shared(&recent, &oldest));
        (0..KEPT).for_each(|_| assert!(is_shared(&recent, &state(1))));
        assert_eq!(recent.0.lock().len(), KEPT);
        assert!(recent.known(&oldest).is_none());
    }
}
