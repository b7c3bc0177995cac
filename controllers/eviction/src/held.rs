//! Requests that are not ended yet, because the removal of finished ones of their namespace is behind.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use drydock_runtime::ObjectKey;

/// Finished requests of a namespace that may wait for their removal before requests are held.
const BEHIND: usize = 100;

/// The names of held requests, by namespace. They are among those that the API server has a quota for.
#[derive(Debug, Default)]
pub(crate) struct Held(HashMap<Arc<str>, BTreeSet<Arc<str>>>);

impl Held {
    /// Holds a request if so many finished ones of its namespace wait for their removal; returns whether it does.
    pub(crate) fn hold(&mut self, key: &ObjectKey, behind: usize) -> bool {
        if behind > BEHIND {
            self.0.entry(key.namespace.clone()).or_default().insert(key.name.clone());
        }
        behind > BEHIND
    }

    /// Lets go as many requests of a namespace as may end before its removal is behind again; all when nothing is left to
    /// remove.
    pub(crate) fn release(&mut self, namespace: &Arc<str>, behind: usize) -> Vec<ObjectKey> {
        let Some(names) = self.0.get_mut(namespace).filter(|_| behind <= BEHIND) else { return Vec::new() };
        let most = if behind == 0 { names.len() } else { BEHIND + 1 - behind };
        let released = std::iter::from_fn(|| names.pop_first()).take(most);
        let released = released.map(|name| ObjectKey { namespace: namespace.clone(), name }).collect();
        if names.is_empty() {
            self.0.remove(namespace);
        }
        released
    }

    /// The request is gone.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        let Some(names) = self.0.get_mut(&key.namespace) else { return };
        names.remove(&key.name);
        if names.is_empty() {
            self.0.remove(&key.namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_held_while_the_removal_is_behind_and_let_go_as_it_catches_up() {
        let mut held = Held::default();
        let key = |name: usize| ObjectKey::new("ns", &name.to_string());
        assert!(!held.hold(&key(0), BEHIND));
        (0..300).for_each(|name| assert!(held.hold(&key(name), BEHIND + 1)));
        held.forget(&key(7));
        let mut release = |behind| held.release(&"ns".into(), behind).len();
        assert_eq!((release(BEHIND + 1), release(BEHIND), release(BEHIND - 1)), (0, 1, 2));
        assert_eq!((release(0), release(0)), (296, 0));
        assert!(held.0.is_empty());
    }
}
