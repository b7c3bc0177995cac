//! The trait of kinds that are watched and stored, and the key of an object.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::shared_parts::SharedParts;

/// An object as a cache holds it, decoded straight from the wire into the fields that are used.
pub trait Cacheable: DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static {
    /// API group; empty for core.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Resource.
    const PLURAL: &'static str;
    /// Whether the host is asked for the metadata of the objects alone.
    const IS_METADATA: bool = false;

    /// `metadata.name`
    fn name(&self) -> &str;
    /// `metadata.namespace`, empty if cluster-scoped.
    fn namespace(&self) -> &str;
    /// `metadata.uid`
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`
    fn resource_version(&self) -> &str;
    /// The node that the object is bound to, empty while it is not bound; none if the kind is not indexed by node.
    fn node(&self) -> Option<&str> {
        None
    }
    /// Who created the object, as the API server has noted it; empty if it notes nobody.
    fn creator(&self) -> &str {
        ""
    }
    /// Whether the object comes before others of its creator, where there is no room for all.
    fn comes_first(&self) -> bool {
        false
    }
    /// Drops what is large and read by no decision, as soon as the object is decoded: a page of a list holds many.
    fn trim(&mut self) {}
    /// Drops what no decision reads, and takes from `parts` what equals a part of another object, before a cache takes
    /// the object.
    fn compact(&mut self, _parts: &mut SharedParts) {}
    /// Key of the object.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }
}

/// Namespace and name of an object; the namespace of cluster-scoped objects is empty.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace, or empty.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key of these two.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
