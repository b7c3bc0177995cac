//! Labels and annotations as caches keep them: bounded while they are decoded, whatever an object has.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use drydock_api::eviction_request::pod_labels;
use drydock_api::text::cut_bytes;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Most bytes of the value of an essential pair.
const MAX_ESSENTIAL: usize = 1024;

/// What takes in the pairs of a map, one after the other.
pub(super) trait TakePairs: Default {
    /// Whether a pair with this key is read by anything.
    fn is_wanted(key: &str) -> bool;
    /// Takes in a wanted pair.
    fn take(&mut self, key: String, value: String);
    /// Called after the last pair.
    fn end(&mut self) {}
}

/// Reads a map of strings, or null, without keeping what is not wanted.
pub(super) fn read_pairs<'de, T: TakePairs, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_option(PairsVisitor(PhantomData))
}

/// Which pairs of a map are kept.
pub(super) trait WantedPairs {
    /// Most pairs that are kept.
    const MAX_PAIRS: usize = pod_labels::MAX_LABELS;
    /// Most bytes of keys and values that are kept, beside the [essential](WantedPairs::is_essential) ones.
    const MAX_BYTES: usize = pod_labels::MAX_BYTES;

    /// Whether a pair with this key is read by anything.
    fn is_wanted(key: &str) -> bool;
    /// Whether a pair with this key is kept whatever else there is. There may be a few such keys.
    fn is_essential(key: &str) -> bool;
}

/// The wanted pairs of a map: all of them, or the essential ones and the first others in the order of their keys.
pub(super) struct BoundedMap<W> {
    pub(super) pairs: BTreeMap<String, String>,
    /// The first key, in their order, of the wanted pairs that were left out: no pair from there on is kept, except essential
    /// ones.
    pub(super) cut_from: Option<Box<str>>,
    /// The essential ones, until all are there.
    essential: BTreeMap<String, String>,
    bytes: usize,
    wanted: PhantomData<W>,
}

impl<W> Default for BoundedMap<W> {
    fn default() -> Self {
        Self {
            pairs: BTreeMap::new(),
            cut_from: None,
            essential: BTreeMap::new(),
            bytes: 0,
            wanted: PhantomData,
        }
    }
}

impl<W: WantedPairs> BoundedMap<W> {
    /// What is kept of these pairs.
    pub(super) fn of(pairs: BTreeMap<String, String>) -> Self {
        let mut kept = Self::default();
        pairs.into_iter().filter(|(key, _)| W::is_wanted(key)).for_each(|(key, value)| kept.take(key, value));
        kept.end();
        kept
    }

    /// Whether a map with so many bytes of keys and values is kept whole.
    pub(super) fn fits(pairs: &BTreeMap<String, String>) -> bool {
        let bytes: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        pairs.len() <= W::MAX_PAIRS && bytes <= W::MAX_BYTES
    }
}

impl<W: WantedPairs> TakePairs for BoundedMap<W> {
    fn is_wanted(key: &str) -> bool {
        W::is_wanted(key)
    }

    fn take(&mut self, key: String, mut value: String) {
        let kept = if W::is_essential(&key) {
            value = cut_bytes(&value, MAX_ESSENTIAL);
            &mut self.essential
        } else if self.cut_from.as_deref().is_some_and(|from| *key >= *from) {
            return;
        } else {
            &mut self.pairs
        };
        self.bytes += key.len() + value.len();
        if let Some(before) = kept.get(&key) {
            self.bytes -= key.len() + before.len();
        }
        kept.insert(key, value);
        while self.pairs.len() + self.essential.len() > W::MAX_PAIRS || self.bytes > W::MAX_BYTES {
            let Some(removed) = self.pairs.pop_last() else { return };
            self.bytes -= removed.0.len() + removed.1.len();
            self.cut_from = Some(removed.0.into());
        }
    }

    fn end(&mut self) {
        self.pairs.append(&mut self.essential);
    }
}

impl<'de, W: WantedPairs> Deserialize<'de> for BoundedMap<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_pairs(deserializer)
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: TakePairs> Visitor<'de> for PairsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(T::default())
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(T::default())
    }
    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kept = T::default();
        while let Some(key) = map.next_key::<String>()? {
            if T::is_wanted(&key) {
                kept.take(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        kept.end();
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Map, Value};

    use super::*;

    const MAX_PAIRS: usize = pod_labels::MAX_LABELS;
    const MAX_BYTES: usize = pod_labels::MAX_BYTES;

    struct All;
    impl WantedPairs for All {
        fn is_wanted(key: &str) -> bool {
            key != "unwanted"
        }
        fn is_essential(key: &str) -> bool {
            key == "zz"
        }
    }

    fn read(pairs: impl IntoIterator<Item = (String, String)>) -> BoundedMap<All> {
        let map: Map<_, _> = pairs.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
        serde_json::from_value(Value::Object(map)).unwrap()
    }

    #[test]
    fn a_map_within_the_bounds_is_kept_whole() {
        let pairs = (0..MAX_PAIRS).map(|at| (format!("k{at}"), "v".to_owned()));
        let kept = read(pairs.chain([("unwanted".to_owned(), "x".repeat(1 << 20))]));
        assert_eq!((kept.pairs.len(), kept.cut_from), (MAX_PAIRS, None));
    }

    /// A pod with 70,000 labels, which a host takes, took 10 MiB.
    #[test]
    fn of_the_largest_map_the_first_pairs_and_the_essential_ones_are_kept_in_whatever_order_they_come() {
        let text = |keys: &mut dyn Iterator<Item = usize>| {
            let all = keys.map(|at| format!("\"k{at:05}\":\"\"")).collect::<Vec<_>>().join(",");
            format!("{{\"zz\":\"e\",{all}}}")
        };
        let forwards: BoundedMap<All> = serde_json::from_str(&text(&mut (0..70_000))).unwrap();
        let backwards: BoundedMap<All> = serde_json::from_str(&text(&mut (0..70_000).rev())).unwrap();
        assert_eq!((forwards.cut_from.as_deref(), &forwards.pairs), (Some("k00255"), &backwards.pairs));
        assert_eq!(forwards.cut_from, backwards.cut_from);
        assert_eq!(forwards.pairs.len(), MAX_PAIRS);
        assert!(forwards.pairs.contains_key("zz") && forwards.pairs.contains_key("k00254"));
    }

    #[test]
    fn long_values_are_bounded_by_their_bytes() {
        let kept = read((0..100).map(|at| (format!("k{at:03}"), "v".repeat(1000))));
        let bytes: usize = kept.pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(kept.cut_from.is_some() && bytes <= MAX_BYTES && bytes > MAX_BYTES - 2000, "{bytes}");
    }

    /// A short pair that came after a long one which did not fit was kept, so that it mattered in which order they came: what is
    /// absent above the cut is not known to be absent, and all below it is there.
    #[test]
    fn no_pair_is_kept_from_the_first_on_that_is_left_out() {
        let (long, short) = ("v".repeat(MAX_BYTES), String::new());
        let [a, b, c, e] = ["a", "b", "c", "zz"].map(|key| (key.to_owned(), short.clone()));
        let b = (b.0, long);
        let all = [a, b, c, e];
        for first in 0..4 {
            let order = (0..4).map(|at| all[(first + at) % 4].clone());
            let text: Vec<_> = order.map(|(key, value)| format!("\"{key}\":\"{value}\"")).collect();
            let kept: BoundedMap<All> = serde_json::from_str(&format!("{{{}}}", text.join(","))).unwrap();
            let keys: Vec<_> = kept.pairs.keys().map(String::as_str).collect();
            assert_eq!((keys.as_slice(), kept.cut_from.as_deref()), (&["a", "zz"][..], Some("b")), "{first}");
        }
    }

    #[test]
    fn null_and_a_repeated_key_are_read() {
        assert!(serde_json::from_str::<BoundedMap<All>>("null").unwrap().pairs.is_empty());
        let kept: BoundedMap<All> = serde_json::from_str(r#"{"a": "1", "a": "22"}"#).unwrap();
        assert_eq!((kept.pairs.len(), kept.bytes, kept.cut_from), (1, 3, None));
    }
}
