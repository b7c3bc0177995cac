//! Requests that are not ended yet, because the removal of finished ones of their namespace is behind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use drydock_runtime::ObjectKey;

/// How many finished requests of a namespace may wait for their removal before other requests are held.
const MAX_WAITING_REMOVALS: usize = 100;

/// Held requests, by namespace. The API server's quota for requests bounds their number.
#[derive(Debug, Default)]
pub(crate) struct HeldRequests {
    namespaces: HashMap<Arc<str>, HeldNames>,
    /// How many have been held, ever.
    count: u64,
}

/// The held requests of a namespace. They leave in the order in which they came, and not by name: a tenant
/// chooses names, and could keep a request from ever leaving with later ones that sort before it.
#[derive(Debug, Default)]
struct HeldNames {
    by_age: BTreeMap<u64, Arc<str>>,
    ages: HashMap<Arc<str>, u64>,
}

impl HeldRequests {
    /// Holds a request if `behind`, the number of finished requests of its namespace that wait for their
    /// removal, is above [`MAX_WAITING_REMOVALS`]; returns whether the request is held.
    pub(crate) fn hold(&mut self, key: &ObjectKey, behind: usize) -> bool {
        if behind <= MAX_WAITING_REMOVALS {
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

    /// Releases as many requests of a namespace as may end before the removal of finished ones is behind
    /// again; all of them when nothing is left to remove.
    pub(crate) fn release(&mut self, namespace: &Arc<str>, behind: usize) -> Vec<ObjectKey> {
        let Some(names) = self.namespaces.get_mut(namespace).filter(|_| behind <= MAX_WAITING_REMOVALS)
        else {
            return Vec::new();
        };
        let most = if behind == 0 { names.ages.len() } else { MAX_WAITING_REMOVALS + 1 - behind };
        let released: Vec<Arc<str>> = std::iter::from_fn(|| names.pop_oldest()).take(most).collect();
        if names.ages.is_empty() {
            self.namespaces.remove(namespace);
        }
        released.into_iter().map(|name| ObjectKey { namespace: namespace.clone(), name }).collect()
    }

    /// Forgets a request that is gone.
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
        assert!(!held.hold(&key(0), MAX_WAITING_REMOVALS));
        (0..300).for_each(|name| assert!(held.hold(&key(name), MAX_WAITING_REMOVALS + 1)));
        held.forget(&key(7));
        let mut release = |behind| held.release(&"ns".into(), behind).len();
        assert_eq!(
            (
                release(MAX_WAITING_REMOVALS + 1),
                release(MAX_WAITING_REMOVALS),
                release(MAX_WAITING_REMOVALS - 1)
            ),
            (0, 1, 2)
        );
        assert_eq!((release(0), release(0)), (296, 0));
        assert!(held.namespaces.is_empty());
    }

    /// A tenant who made requests whose names come first kept the others from ending.
    #[test]
    fn requests_are_let_go_in_the_order_in_which_they_came() {
        let mut held = HeldRequests::default();
        let key = |name: &str| ObjectKey::new("ns", name);
        for name in ["z", "a", "z", "b"] {
            held.hold(&key(name), MAX_WAITING_REMOVALS + 1);
        }
        let mut release = |behind| held.release(&"ns".into(), behind);
        assert_eq!(
            (release(MAX_WAITING_REMOVALS), release(MAX_WAITING_REMOVALS)),
            (vec![key("z")], vec![key("a")])
        );
        assert_eq!(release(0), [key("b")]);
    }
}
