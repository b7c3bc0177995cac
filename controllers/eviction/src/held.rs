//! Requests that are not ended yet, because the removal of finished ones of their namespace is behind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use drydock_runtime::ObjectKey;

/// Finished requests of a namespace that may wait for their removal before requests are held.
const BEHIND: usize = 100;

/// Held requests, by namespace. They are among those that the API server has a quota for.
#[derive(Debug, Default)]
pub(crate) struct HeldRequests {
    namespaces: HashMap<Arc<str>, HeldNames>,
    /// How many have been held, ever.
    count: u64,
}

/// The names of a namespace. They leave in the order in which they came, and not in that of the names, which are a tenant's
/// choice: later ones could keep one from ever leaving.
#[derive(Debug, Default)]
struct HeldNames {
    by_age: BTreeMap<u64, Arc<str>>,
    ages: HashMap<Arc<str>, u64>,
}

impl HeldRequests {
    /// Holds a request if so many finished ones of its namespace wait for their removal; returns whether it does.
    pub(crate) fn hold(&mut self, key: &ObjectKey, behind: usize) -> bool {
        if behind <= BEHIND {
            return false;
        }
        let names = self.namespaces.entry(key.namespace.clone()).or_default();
        if !names.ages.contains_key(&key.name) {
            self.count += 1;
            names.by_age.insert(self.count, key.name.clone());
            names.ages.insert(key.name.clone(), self.count);
        }
        true
    }

    /// Lets go as many requests of a namespace as may end before its removal is behind again; all when nothing is left to
    /// remove.
    pub(crate) fn release(&mut self, namespace: &Arc<str>, behind: usize) -> Vec<ObjectKey> {
        let Some(names) = self.namespaces.get_mut(namespace).filter(|_| behind <= BEHIND) else {
            return Vec::new();
        };
        let most = if behind == 0 { names.ages.len() } else { BEHIND + 1 - behind };
        let released: Vec<Arc<str>> = std::iter::from_fn(|| names.pop_oldest()).take(most).collect();
        if names.ages.is_empty() {
            self.namespaces.remove(namespace);
        }
        released.into_iter().map(|name| ObjectKey { namespace: namespace.clone(), name }).collect()
    }

    /// The request is gone.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        let Some(names) = self.namespaces.get_mut(&key.namespace) else { return };
        if let Some(age) = names.ages.remove(&key.name) {
            names.by_age.remove(&age);
        }
        if names.ages.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
    }
}

impl HeldNames {
    fn pop_oldest(&mut self) -> Option<Arc<str>> {
        let (_, name) = self.by_age.pop_first()?;
        self.ages.remove(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_held_while_the_removal_is_behind_and_let_go_as_it_catches_up() {
        let mut held = HeldRequests::default();
        let key = |name: usize| ObjectKey::new("ns", &name.to_string());
        assert!(!held.hold(&key(0), BEHIND));
        (0..300).for_each(|name| assert!(held.hold(&key(name), BEHIND + 1)));
        held.forget(&key(7));
        let mut release = |behind| held.release(&"ns".into(), behind).len();
        assert_eq!((release(BEHIND + 1), release(BEHIND), release(BEHIND - 1)), (0, 1, 2));
        assert_eq!((release(0), release(0)), (296, 0));
        assert!(held.namespaces.is_empty());
    }

    /// A tenant who made requests whose names come first kept the others from ending.
    #[test]
    fn requests_are_let_go_in_the_order_in_which_they_came() {
        let mut held = HeldRequests::default();
        let key = |name: &str| ObjectKey::new("ns", name);
        for name in ["z", "a", "z", "b"] {
            held.hold(&key(name), BEHIND + 1);
        }
        let mut release = |behind| held.release(&"ns".into(), behind);
        assert_eq!((release(BEHIND), release(BEHIND)), (vec![key("z")], vec![key("a")]));
        assert_eq!(release(0), [key("b")]);
    }
}
