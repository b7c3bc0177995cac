//! The parameters that one binding refers to, as JSON. A tenant may write those of a namespace, so their bytes are bounded:
//! of a namespace that has more, none is kept, and a policy fails there by its failurePolicy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum bytes that are kept of the parameters of a namespace: four objects of the largest size.
const MAX_NAMESPACE_BYTES: usize = 6 << 20;
/// Maximum bytes that are kept of the parameters of all namespaces.
const MAX_BYTES: usize = 64 << 20;

/// An object as JSON.
pub type ParamJson = Arc<[u8]>;

/// The objects. The namespace of objects that are in none is empty.
#[derive(Debug, Default)]
pub struct ParamStore {
    namespaces: BTreeMap<String, NamespaceParams>,
    /// Namespaces whose objects are not kept.
    dropped: BTreeSet<String>,
    /// Bytes of the objects that are kept.
    kept: usize,
}

#[derive(Debug, Default)]
struct NamespaceParams {
    /// By name, with the size. Without JSON if the namespace is not kept.
    objects: BTreeMap<String, (usize, Option<ParamJson>)>,
    bytes: usize,
}

impl ParamStore {
    /// Returns the objects of a namespace, by name.
    ///
    /// # Errors
    /// They are not kept, because they are too many bytes.
    pub fn of(&self, namespace: &str) -> Result<Vec<ParamJson>, String> {
        let Some(found) = self.namespaces.get(namespace) else { return Ok(Vec::new()) };
        if self.dropped.contains(namespace) {
            let bytes = found.bytes;
            return Err(format!(
                "the params in namespace {namespace:?} are {bytes} bytes, and at most {MAX_NAMESPACE_BYTES} of a namespace and \
                 {MAX_BYTES} in all are kept for a policy binding"
            ));
        }
        Ok(found.objects.values().filter_map(|(_, json)| json.clone()).collect())
    }

    /// Adds an object, or replaces it.
    pub fn put(&mut self, namespace: &str, name: &str, json: ParamJson) {
        self.remove(namespace, name);
        let is_dropped = self.dropped.contains(namespace);
        let found = self.namespaces.entry(namespace.to_owned()).or_default();
        let size = json.len() + name.len();
        found.bytes += size;
        found.objects.insert(name.to_owned(), (size, (!is_dropped).then_some(json)));
        if is_dropped {
            return;
        }
        let bytes = found.bytes;
        self.kept += size;
        if bytes > MAX_NAMESPACE_BYTES {
            self.drop_json_of(namespace);
        }
        // Whoever has the most gives way, whoever wrote last.
        while self.kept > MAX_BYTES
            && let Some(largest) = self.largest()
        {
            self.drop_json_of(&largest);
        }
    }

    fn largest(&self) -> Option<String> {
        let kept = self.namespaces.iter().filter(|(name, _)| !self.dropped.contains(*name));
        kept.max_by_key(|(_, found)| found.bytes).map(|(name, _)| name.clone())
    }

    fn drop_json_of(&mut self, namespace: &str) {
        let Some(found) = self.namespaces.get_mut(namespace) else { return };
        found.objects.values_mut().for_each(|(_, json)| *json = None);
        self.kept -= found.bytes;
        self.dropped.insert(namespace.to_owned());
    }

    /// Removes an object.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let Some(found) = self.namespaces.get_mut(namespace) else { return };
        let Some((size, json)) = found.objects.remove(name) else { return };
        found.bytes -= size;
        if json.is_some() {
            self.kept -= size;
        }
        if found.objects.is_empty() {
            self.namespaces.remove(namespace);
            self.dropped.remove(namespace);
        }
    }

    /// Returns a namespace whose objects are not kept although there is room for them again, and some more. They have to be
    /// read, and to be given to [`ParamStore::refill`].
    pub fn to_refill(&self) -> Option<String> {
        let fits = |namespace: &&String| {
            let bytes = self.namespaces.get(*namespace).map_or(0, |found| found.bytes);
            bytes <= MAX_NAMESPACE_BYTES / 4 * 3 && self.kept + bytes <= MAX_BYTES / 4 * 3
        };
        self.dropped.iter().find(fits).cloned()
    }

    /// Whether objects are more than is kept of a namespace.
    pub fn is_too_much(objects: &[(String, ParamJson)]) -> bool {
        objects.iter().map(|(name, json)| name.len() + json.len()).sum::<usize>() > MAX_NAMESPACE_BYTES
    }

    /// Replaces the objects of a namespace that were not kept.
    pub fn refill(&mut self, namespace: &str, objects: impl IntoIterator<Item = (String, ParamJson)>) {
        if !self.dropped.remove(namespace) {
            return;
        }
        self.namespaces.remove(namespace);
        for (name, json) in objects {
            self.put(namespace, &name, json);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: usize) -> ParamJson {
        vec![b'x'; bytes].into()
    }

    const MIB: usize = 1 << 20;

    fn sizes(store: &ParamStore, namespace: &str) -> Option<Vec<usize>> {
        Some(store.of(namespace).ok()?.iter().map(|json| json.len()).collect())
    }

    #[test]
    fn objects_are_by_namespace_and_in_the_order_of_their_names() {
        let mut store = ParamStore::default();
        for (namespace, name, bytes) in [("a", "y", 1), ("a", "x", 2), ("b", "x", 3), ("a", "y", 4)] {
            store.put(namespace, name, json(bytes));
        }
        assert_eq!(
            ["a", "b", "c"].map(|it| sizes(&store, it)),
            [Some(vec![2, 4]), Some(vec![3]), Some(vec![])]
        );
        store.remove("a", "x");
        store.remove("a", "z");
        store.remove("b", "x");
        assert_eq!(["a", "b"].map(|it| sizes(&store, it)), [Some(vec![4]), Some(vec![])]);
        assert_eq!((store.kept, store.namespaces.len()), (5, 1));
    }

    /// A tenant's ConfigMaps filled the memory of the API server.
    #[test]
    fn a_namespace_with_too_many_bytes_is_not_kept_and_others_are() {
        let mut store = ParamStore::default();
        store.put("other", "x", json(3));
        for n in 0..100 {
            store.put("tenant", &n.to_string(), json(MIB));
        }
        assert!(store.of("tenant").is_err_and(|why| why.contains("in namespace \"tenant\" are 1048")));
        assert_eq!((sizes(&store, "other"), store.kept), (Some(vec![3]), 4));
        for n in 4..100 {
            assert_eq!(store.to_refill(), None);
            store.remove("tenant", &n.to_string());
        }
        assert_eq!(store.to_refill().as_deref(), Some("tenant"));
        store.refill("tenant", [("a".to_owned(), json(MIB)), ("b".to_owned(), json(7))]);
        assert_eq!((sizes(&store, "tenant"), store.to_refill()), (Some(vec![MIB, 7]), None));
        assert_eq!(store.kept, 4 + MIB + 1 + 8);
    }

    #[test]
    fn a_namespace_that_is_emptied_begins_anew() {
        let mut store = ParamStore::default();
        for name in ["a", "b"] {
            store.put("tenant", name, json(4 * MIB));
        }
        for name in ["a", "b"] {
            store.remove("tenant", name);
        }
        assert_eq!((store.to_refill(), sizes(&store, "tenant"), store.kept), (None, Some(vec![]), 0));
    }

    /// A tenant of many namespaces used up what is kept of all, and the next one who wrote lost his params.
    #[test]
    fn no_number_of_namespaces_goes_beyond_the_bound_of_all_and_the_largest_gives_way() {
        let mut store = ParamStore::default();
        for n in 0..50 {
            store.put(&n.to_string(), "x", json(4 * MIB));
        }
        store.put("small", "x", json(MIB));
        assert!(store.kept <= MAX_BYTES && store.kept > MAX_BYTES - 5 * MIB);
        assert_eq!((store.dropped.len(), sizes(&store, "small")), (50 - 15, Some(vec![MIB])));
        let kept: Vec<_> = (0..50).map(|n| n.to_string()).filter(|it| !store.dropped.contains(it)).collect();
        assert_eq!(store.to_refill(), None);
        for namespace in &kept[..5] {
            store.remove(namespace, "x");
        }
        let refilled = store.to_refill().unwrap_or_default();
        store.refill(&refilled, [("x".to_owned(), json(4 * MIB))]);
        assert_eq!((sizes(&store, &refilled), store.to_refill()), (Some(vec![4 * MIB]), None));
    }
}
