//! Deduplicates parts that many objects of one cache have in common, such as the labels of a workload's pods.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Weak};

use drydock_api::metav1::ManagedFieldsEntry;

use super::pod::OwnerRef;

/// The parts of the objects of one cache.
#[derive(Default)]
pub struct SharedParts {
    /// Labels and annotations.
    pub maps: SharedValues<BTreeMap<String, String>>,
    /// Who owns which field.
    pub managed_fields: SharedValues<[ManagedFieldsEntry]>,
    /// Controllers of pods.
    pub owners: SharedValues<OwnerRef>,
}

/// Values of which equal ones become one allocation. It keeps none of them alive: what a value holds is freed with the last
/// object that has it, however large it was.
pub struct SharedValues<T: ?Sized> {
    values: HashMap<u64, Weak<T>>,
    hashes: RandomState,
    prune_at: usize,
}

/// The table is not pruned below this size.
const PRUNE_FROM: usize = 1024;

impl<T: ?Sized> Default for SharedValues<T> {
    fn default() -> Self {
        Self { values: HashMap::new(), hashes: RandomState::new(), prune_at: PRUNE_FROM }
    }
}

impl<T: ?Sized + Eq + Hash> SharedValues<T> {
    /// Replaces a value by an equal one that an object has already.
    pub fn share(&mut self, value: &mut Arc<T>) {
        let hash = self.hashes.hash_one(&**value);
        if let Some(held) = self.values.get(&hash).and_then(Weak::upgrade).filter(|held| held == value) {
            *value = held;
            return;
        }
        if self.values.len() >= self.prune_at {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.prune_at = PRUNE_FROM.max(2 * self.values.len());
        }
        self.values.insert(hash, Arc::downgrade(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one() {
        let mut values = SharedValues::<str>::default();
        let (mut first, mut second, mut other): (Arc<str>, Arc<str>, Arc<str>) =
            ("app".into(), "app".into(), "tier".into());
        values.share(&mut first);
        values.share(&mut second);
        values.share(&mut other);
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!((&*second, &*other, values.values.len()), ("app", "tier", 2));
    }

    /// A tenant who changed the annotations of one request again and again filled the memory with those before.
    #[test]
    fn a_value_that_nobody_has_any_more_is_freed_at_once() {
        let mut values = SharedValues::<BTreeMap<String, String>>::default();
        for number in 0..10 {
            let mut value = Arc::new(BTreeMap::from([("example.com/notes".to_owned(), number.to_string())]));
            values.share(&mut value);
        }
        assert!(values.values.values().all(|value| value.strong_count() == 0));
    }

    #[test]
    fn the_table_is_not_larger_than_twice_what_objects_have() {
        let mut values = SharedValues::<str>::default();
        let kept: Vec<Arc<str>> = (0..10 * PRUNE_FROM)
            .filter_map(|number| {
                let mut value = number.to_string().into();
                values.share(&mut value);
                (number % 100 == 0).then_some(value)
            })
            .collect();
        assert!(values.values.len() <= PRUNE_FROM + kept.len(), "{} are left", values.values.len());
        for value in kept {
            let mut equal = (*value).into();
            values.share(&mut equal);
            assert!(Arc::ptr_eq(&equal, &value));
        }
    }
}
