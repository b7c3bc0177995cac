//! Filters: which entities a Watch selects.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::Arc;

use drydock_machinery::selector::LabelRequirements;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The kinds of entities in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// By name.
    Maintenance,
    /// By name.
    Node,
    /// By `namespace/name`.
    Eviction,
}

impl Entity {
    /// All of them, in the order of their indexes.
    pub const ALL: [Self; 3] = [Self::Maintenance, Self::Node, Self::Eviction];

    /// Its index in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// The attributes that filters match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityAttributes {
    /// The entity's nodes, sorted.
    pub nodes: Vec<String>,
    /// Maintenances that the entity belongs to.
    pub maintenances: Vec<String>,
    /// Labels of the object.
    pub labels: Option<Map<String, Value>>,
    /// Whether something blocks.
    pub is_blocked: bool,
}

/// Conditions that must all hold; an empty string is no condition.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The kind.
    pub entity: Entity,
    /// Namespace of an eviction.
    pub namespace: String,
    /// Name of a maintenance or a node: its whole key.
    pub name: String,
    /// Node of an eviction or a maintenance.
    pub node: String,
    /// Maintenance of a node or an eviction.
    pub maintenance: String,
    /// Labels.
    pub labels: LabelRequirements,
    /// Whether it selects only blocked entities.
    pub only_blocked: bool,
}

/// A set of entities by which views are found for a change. Each view has one anchor, which covers all entities that it
/// may select.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// Every entity of a kind.
    All(Entity),
    /// One key.
    Key(Entity, Arc<str>),
    /// The evictions of a namespace.
    Namespace(Arc<str>),
    /// The evictions of pods on a node.
    EvictionsOn(Arc<str>),
}

impl Filter {
    /// Creates a filter that selects all entities of a kind.
    pub fn all(entity: Entity) -> Self {
        Self {
            entity,
            namespace: String::new(),
            name: String::new(),
            node: String::new(),
            maintenance: String::new(),
            labels: LabelRequirements::default(),
            only_blocked: false,
        }
    }

    /// Whether an entity with this key, which never changes, can be selected. Removals of other entities are not sent.
    pub fn admits(&self, key: &str) -> bool {
        let is_named = self.name.is_empty() || self.name == key;
        let in_namespace = self.namespace.is_empty()
            || key.split_once('/').is_some_and(|(found, _)| found == self.namespace);
        is_named && in_namespace
    }

    /// Returns the range of keys that contains all keys that it [admits](Self::admits), and few others.
    pub fn keys(&self) -> (Bound<String>, Bound<String>) {
        if !self.name.is_empty() {
            return (Included(self.name.clone()), Included(self.name.clone()));
        }
        if !self.namespace.is_empty() {
            // `0` comes after `/`.
            return (Included(format!("{}/", self.namespace)), Excluded(format!("{}0", self.namespace)));
        }
        (Unbounded, Unbounded)
    }

    /// Whether an entity is selected now.
    pub fn selects(&self, key: &str, entity: &EntityAttributes) -> bool {
        let has = |list: &[String], wanted: &String| wanted.is_empty() || list.contains(wanted);
        self.admits(key)
            && (!self.only_blocked || entity.is_blocked)
            && (self.node.is_empty() || entity.nodes.binary_search(&self.node).is_ok())
            && has(&entity.maintenances, &self.maintenance)
            && (self.labels.is_empty() || self.labels.matches_labels(entity.labels.as_ref()))
    }

    /// Returns the number of label requirements: each takes time for each change.
    pub fn terms(&self) -> usize {
        self.labels.requirements().len()
    }

    /// Returns the narrowest anchor for its view.
    pub fn anchor(&self) -> Anchor {
        match self.entity {
            entity if !self.name.is_empty() => Anchor::Key(entity, self.name.as_str().into()),
            Entity::Eviction if !self.node.is_empty() => Anchor::EvictionsOn(self.node.as_str().into()),
            Entity::Eviction if !self.namespace.is_empty() => {
                Anchor::Namespace(self.namespace.as_str().into())
            }
            entity => Anchor::All(entity),
        }
    }

    /// Returns a string that is the same for all equal filters.
    pub fn canonical(&self) -> String {
        let Self { entity, namespace, name, node, maintenance, labels, only_blocked } = self;
        format!("{entity:?}\n{namespace}\n{name}\n{node}\n{maintenance}\n{labels}\n{only_blocked}")
    }

    /// Returns the digest of the filter in tokens, which is the same on every replica.
    pub fn digest(&self) -> u64 {
        let hash = Sha256::digest(self.canonical());
        hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

/// Returns the anchors that cover an entity with these attributes.
pub fn anchors<'a>(
    entity: Entity,
    key: &'a Arc<str>,
    attributes: impl Iterator<Item = &'a EntityAttributes>,
) -> Vec<Anchor> {
    let mut anchors = vec![Anchor::All(entity), Anchor::Key(entity, key.clone())];
    if entity == Entity::Eviction {
        anchors.extend(key.split_once('/').map(|(namespace, _)| Anchor::Namespace(namespace.into())));
        for node in attributes.flat_map(|attributes| &attributes.nodes) {
            let anchor = Anchor::EvictionsOn(node.as_str().into());
            if !anchors.contains(&anchor) {
                anchors.push(anchor);
            }
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn blocked_eviction() -> EntityAttributes {
        EntityAttributes {
            nodes: vec!["n1".to_owned()],
            maintenances: vec!["m1".to_owned(), "m2".to_owned()],
            labels: json!({"team": "web"}).as_object().cloned(),
            is_blocked: true,
        }
    }

    fn with(change: impl FnOnce(&mut Filter)) -> Filter {
        let mut filter = Filter::all(Entity::Eviction);
        change(&mut filter);
        filter
    }

    #[test]
    fn every_condition_must_hold() {
        let labels = |text: &str| LabelRequirements::parse(text).unwrap();
        let (key, entity) = ("shop/uid", blocked_eviction());
        let held = [
            with(|_| {}),
            with(|f| f.namespace = "shop".into()),
            with(|f| (f.node, f.maintenance) = ("n1".into(), "m2".into())),
            with(|f| (f.labels, f.only_blocked) = (labels("team in (web),tier!=test"), true)),
        ];
        let not = [
            with(|f| f.namespace = "sho".into()),
            with(|f| f.node = "n2".into()),
            with(|f| f.maintenance = "m3".into()),
            with(|f| f.labels = labels("team=db")),
        ];
        assert!(held.iter().all(|filter| filter.selects(key, &entity)));
        assert!(!not.iter().any(|filter| filter.selects(key, &entity)));
        assert!(!with(|f| f.only_blocked = true).selects(key, &EntityAttributes::default()));
    }

    #[test]
    fn the_keys_of_a_filter_are_those_that_it_admits() {
        let keys = ["shop", "shop-2/uid", "shop/", "shop/uid", "shop/uid-2", "shop0", "shop1/uid"];
        for filter in [
            with(|_| {}),
            with(|f| f.namespace = "shop".into()),
            with(|f| f.name = "shop/uid".into()),
            with(|f| (f.namespace, f.name) = ("shop".into(), "shop/uid".into())),
        ] {
            for key in keys {
                let is_in_range = std::ops::RangeBounds::contains(&filter.keys(), &key.to_owned());
                assert_eq!(is_in_range, filter.admits(key), "{filter:?} {key}");
            }
        }
    }

    #[test]
    fn a_view_is_found_by_the_anchors_of_whatever_it_selects() {
        let (key, entity) = ("shop/uid".into(), blocked_eviction());
        let found = anchors(Entity::Eviction, &key, [&entity].into_iter());
        for filter in [
            with(|_| {}),
            with(|f| f.namespace = "shop".into()),
            with(|f| (f.namespace, f.node) = ("shop".into(), "n1".into())),
            with(|f| f.maintenance = "m1".into()),
        ] {
            assert!(filter.selects(&key, &entity) && found.contains(&filter.anchor()), "{filter:?}");
        }
    }

    #[test]
    fn equal_filters_have_one_digest_and_others_another() {
        let labels = |text: &str| with(|f| f.labels = LabelRequirements::parse(text).unwrap());
        assert_eq!(labels("a=1,b in (y,x)").digest(), labels("b in (x, y), a=1").digest());
        let different = [
            with(|_| {}),
            labels("a=1"),
            with(|f| f.node = "a".into()),
            with(|f| f.maintenance = "a".into()),
        ];
        let digests: std::collections::HashSet<u64> = different.iter().map(Filter::digest).collect();
        assert_eq!(digests.len(), different.len());
    }
}
