//! Parts of objects that many objects have alike: the pods of a workload have its labels, and so have their requests.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use drydock_api::metav1::ManagedFieldsEntry;

use super::pod::OwnerRef;

/// The parts of all objects of a cache, each of them once.
#[derive(Default)]
pub struct SharedParts {
    /// Labels and annotations.
    pub maps: SharedValues<BTreeMap<String, String>>,
    /// Who owns which field.
    pub managed_fields: SharedValues<[ManagedFieldsEntry]>,
    /// Controllers of pods.
    pub owners: SharedValues<OwnerRef>,
}

/// Values that are held once, however many objects have them. Those that no object has any more are dropped when as many
/// have come as there were.
pub struct SharedValues<T: ?Sized> {
    values: HashSet<Arc<T>>,
    swept_at: usize,
}

/// So many values are kept without a look at who still has them.
const SWEPT_AT_LEAST: usize = 1024;

impl<T: ?Sized> Default for SharedValues<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), swept_at: SWEPT_AT_LEAST }
    }
}

impl<T: ?Sized + Eq + Hash> SharedValues<T> {
    /// Replaces a value by an equal one that is held already.
    pub fn share(&mut self, value: &mut Arc<T>) {
        if let Some(held) = self.values.get(&**value) {
            *value = held.clone();
            return;
        }
        if self.values.len() >= self.swept_at {
            self.values.retain(|held| Arc::strong_count(held) > 1);
            self.swept_at = SWEPT_AT_LEAST.max(2 * self.values.len());
        }
        self.values.insert(value.clone());
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

    #[test]
    fn values_that_nobody_has_any_more_are_dropped() {
        let mut values = SharedValues::<str>::default();
        let kept: Vec<Arc<str>> = (0..10 * SWEPT_AT_LEAST)
            .filter_map(|number| {
                let mut value = number.to_string().into();
                values.share(&mut value);
                (number % 100 == 0).then_some(value)
            })
            .collect();
        assert!(values.values.len() <= SWEPT_AT_LEAST + kept.len(), "{} are left", values.values.len());
        assert!(kept.iter().all(|value| values.values.contains(value)));
    }
}
