//! Finds the finished requests that exceed what a namespace keeps: the oldest.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use drydock_runtime::ObjectKey;
use jiff::Timestamp;

/// The finished requests of all namespaces, by when they ended. A change costs the logarithm of their number.
#[derive(Debug)]
pub(crate) struct SurplusRequests {
    most: usize,
    namespaces: HashMap<Arc<str>, FinishedOfNamespace>,
    ended: HashMap<ObjectKey, Timestamp>,
}

/// The finished requests of one namespace. Each in `surplus` ended before each in `kept`; `surplus` is empty
/// unless `kept` is full.
#[derive(Debug, Default)]
struct FinishedOfNamespace {
    kept: BTreeSet<EndedRequest>,
    surplus: BTreeSet<EndedRequest>,
}

type EndedRequest = (Timestamp, Arc<str>);

impl SurplusRequests {
    /// Returns an empty index; each namespace keeps `most` requests.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, namespaces: HashMap::new(), ended: HashMap::new() }
    }

    /// Takes in when a request ended; `None` for one that has not ended or is gone. Returns the request that
    /// exceeds the limit because of this change, if there is one.
    pub(crate) fn note(&mut self, key: &ObjectKey, ended: Option<Timestamp>) -> Option<ObjectKey> {
        if self.ended.get(key).copied() == ended {
            return None;
        }
        let finished = self.namespaces.entry(key.namespace.clone()).or_default();
        if let Some(before) = self.ended.remove(key) {
            finished.remove(&(before, key.name.clone()), self.most);
        }
        let mut surplus = None;
        if let Some(at) = ended {
            self.ended.insert(key.clone(), at);
            surplus = finished.insert((at, key.name.clone()), self.most);
        }
        if finished.kept.is_empty() && finished.surplus.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        surplus.map(|(_, name)| ObjectKey { namespace: key.namespace.clone(), name })
    }

    /// How many requests of a namespace are to be removed because it has too many finished ones.
    pub(crate) fn count(&self, namespace: &str) -> usize {
        self.namespaces.get(namespace).map_or(0, |finished| finished.surplus.len())
    }

    /// Whether a request is to be removed because its namespace has too many finished ones.
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        let Some(at) = self.ended.get(key) else { return false };
        let of_namespace = self.namespaces.get(&key.namespace);
        of_namespace.is_some_and(|finished| finished.surplus.contains(&(*at, key.name.clone())))
    }
}

impl FinishedOfNamespace {
    fn insert(&mut self, ended: EndedRequest, most: usize) -> Option<EndedRequest> {
        self.kept.insert(ended);
        let oldest = if self.kept.len() > most { self.kept.pop_first() } else { None };
        self.surplus.extend(oldest.clone());
        oldest
    }

    fn remove(&mut self, ended: &EndedRequest, most: usize) {
        if !self.surplus.remove(ended) {
            self.kept.remove(ended);
        }
        if self.kept.len() < most {
            self.kept.extend(self.surplus.pop_last());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn key(namespace: u8, name: u8) -> ObjectKey {
        ObjectKey::new(&format!("ns{namespace}"), &format!("{name:03}"))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_oldest_beyond_the_limit_is_reported_and_another_namespace_is_not_touched() {
        let mut surplus = SurplusRequests::new(2);
        for name in 1..=2 {
            assert_eq!(surplus.note(&key(0, name), Some(at(i64::from(name)))), None);
            assert_eq!(surplus.note(&key(1, name), Some(at(0))), None);
        }
        assert_eq!(surplus.note(&key(0, 3), Some(at(3))), Some(key(0, 1)));
        assert_eq!(surplus.note(&key(0, 3), Some(at(3))), None, "it is told once");
        assert!(surplus.contains(&key(0, 1)) && !surplus.contains(&key(1, 1)));
        assert_eq!(surplus.note(&key(0, 4), Some(at(0))), Some(key(0, 4)), "the newcomer may be the oldest");
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut surplus = SurplusRequests::new(1);
        (1..=3).for_each(|name| drop(surplus.note(&key(0, name), Some(at(i64::from(name))))));
        (1..=3).for_each(|name| assert_eq!(surplus.note(&key(0, name), None), None));
        assert!(surplus.namespaces.is_empty() && surplus.ended.is_empty());
    }

    proptest! {
        /// Whatever comes and goes, in any order, exactly the oldest beyond the limit are surplus.
        #[test]
        fn exactly_the_oldest_are_surplus(
            most in 0usize..6,
            changes in prop::collection::vec((0u8..2, 0u8..12, prop::option::of(0i64..20)), 0..80),
        ) {
            let mut surplus = SurplusRequests::new(most);
            let mut model = HashMap::new();
            for (namespace, name, ended) in changes {
                surplus.note(&key(namespace, name), ended.map(at));
                match ended {
                    Some(ended) => model.insert((namespace, name), ended),
                    None => model.remove(&(namespace, name)),
                };
                for namespace in 0..2 {
                    let mut all: Vec<_> =
                        model.iter().filter(|((of, _), _)| *of == namespace).map(|((_, n), at)| (*at, *n)).collect();
                    all.sort_unstable();
                    let beyond = all.len().saturating_sub(most);
                    for (place, (_, name)) in all.into_iter().enumerate() {
                        prop_assert_eq!(surplus.contains(&key(namespace, name)), place < beyond);
                    }
                }
            }
        }
    }
}
