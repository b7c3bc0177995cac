//! A kind that is served in several versions and stored in one of them.
//!
//! ```text
//!   v1beta1 ──Conversion──┐
//!                         ├── the storage version
//!   v2      ──Conversion──┘
//! ```
//!
//! The storage version is what k8s.io/apiserver calls the hub: two other versions are converted into each other by way
//! of it (k8s.io/apimachinery pkg/util/managedfields/internal/versionconverter.go).

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::kind::{Kind, Names};
use crate::object::Object;

/// Converts objects of a kind between the storage version and another one.
///
/// A conversion changes the fields of the object that the versions have in different form. It leaves `metadata` as it
/// is, except for annotations, and `apiVersion`, `kind` and the managed fields are not its concern: [`Versions`] sets
/// them.
///
/// The round trip is the contract: an object that is converted from one version to the other and back is the same
/// object, and so is one in which fields are absent. What one version cannot express has to be kept, for example in an
/// annotation. Otherwise a client that reads and writes in this version loses it for everyone.
pub trait Conversion: Send + Sync + 'static {
    /// Converts an object of the storage version to the other one.
    ///
    /// # Errors
    /// If the object cannot be expressed in the other version: reads of it fail.
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError>;

    /// Converts an object of the other version to the storage version.
    ///
    /// # Errors
    /// If the object cannot be expressed in the storage version: the write is refused. The validation of the other
    /// version should have refused it first, with the path of the field.
    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError>;
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(String);

impl ConversionError {
    /// `why` names the field, and what of it the other version cannot express.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Why a kind cannot be served as a version of another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionsError {
    /// The names differ in more than the version.
    #[error("{served} is not a version of {stored}: group, kind, plural and scope must be the same")]
    OtherKind {
        /// The kind that was to be added.
        served: String,
        /// The kind in its storage version.
        stored: String,
    },
    /// The version is there already.
    #[error("{0} is there already")]
    Duplicate(String),
}

/// All versions of one kind: the storage version, and those that are served beside it. A kind in one version is made
/// into it.
pub struct Versions {
    storage_version: Arc<dyn Kind>,
    others: Vec<OtherVersion>,
}

struct OtherVersion {
    kind: Arc<dyn Kind>,
    conversion: Arc<dyn Conversion>,
}

impl Versions {
    /// A kind that is stored and served in the version of `kind`.
    pub fn new(kind: impl Into<Arc<dyn Kind>>) -> Self {
        Self { storage_version: kind.into(), others: Vec::new() }
    }

    /// Serves the kind in another version too.
    ///
    /// # Errors
    /// If `kind` differs from the storage version in more than the version, or if this version is there already.
    pub fn with_version(
        mut self,
        kind: impl Into<Arc<dyn Kind>>,
        conversion: impl Conversion,
    ) -> Result<Self, VersionsError> {
        let kind = kind.into();
        let (names, stored) = (kind.names(), self.storage_version.names());
        let identity = |names: &Names| (names.group, names.kind, names.plural, names.namespaced);
        if identity(names) != identity(stored) {
            return Err(VersionsError::OtherKind { served: type_text(names), stored: type_text(stored) });
        }
        if self.kind(&names.api_version()).is_some() {
            return Err(VersionsError::Duplicate(type_text(names)));
        }
        self.others.push(OtherVersion { kind, conversion: Arc::new(conversion) });
        Ok(self)
    }

    /// The kind in its storage version.
    pub fn storage_version(&self) -> &Arc<dyn Kind> {
        &self.storage_version
    }

    /// The kind in the versions that are not stored.
    pub fn others(&self) -> impl Iterator<Item = &Arc<dyn Kind>> {
        self.others.iter().map(|other| &other.kind)
    }

    /// The kind in all versions, the storage version first.
    pub fn kinds(&self) -> impl Iterator<Item = &dyn Kind> {
        std::iter::once(&self.storage_version).chain(self.others()).map(|kind| &**kind)
    }

    /// The kind in the version `group/version`; `None` if it is not served in it.
    pub fn kind(&self, api_version: &str) -> Option<&dyn Kind> {
        if is_version(self.storage_version.names(), api_version) {
            return Some(&*self.storage_version);
        }
        self.other(api_version).map(|other| &*other.kind)
    }

    /// Converts an object from one version (`group/version`) to another one. Its managed fields stay as they are,
    /// because each of their entries has a version of its own.
    ///
    /// # Errors
    /// If the kind is not served in one of the versions, or if its conversion fails.
    pub fn convert(&self, mut object: Object, from: &str, to: &str) -> Result<Object, ConversionError> {
        if from == to {
            return Ok(object);
        }
        let managed = object.take_managed_fields();
        let converted = self.convert_fields(&mut object, from, to);
        object.set_managed_fields(managed);
        object.0.insert("apiVersion".to_owned(), Value::from(to));
        object.0.insert("kind".to_owned(), Value::from(self.storage_version.names().kind));
        converted.map(|()| object).map_err(|why| {
            ConversionError(format!(
                "cannot convert {} from {from} to {to}: {why}",
                self.storage_version.names().kind
            ))
        })
    }

    fn convert_fields(&self, object: &mut Object, from: &str, to: &str) -> Result<(), ConversionError> {
        if let Some(conversion) = self.conversion(from)? {
            conversion.convert_to_storage(object)?;
        }
        match self.conversion(to)? {
            Some(conversion) => conversion.convert_from_storage(object),
            None => Ok(()),
        }
    }

    /// Returns the conversion of a version; `None` for the storage version.
    fn conversion(&self, api_version: &str) -> Result<Option<&dyn Conversion>, ConversionError> {
        if is_version(self.storage_version.names(), api_version) {
            return Ok(None);
        }
        let other = self.other(api_version);
        let unknown = || ConversionError::new(format!("the kind is not served in {api_version}"));
        other.map(|other| Some(&*other.conversion)).ok_or_else(unknown)
    }

    fn other(&self, api_version: &str) -> Option<&OtherVersion> {
        self.others.iter().find(|other| is_version(other.kind.names(), api_version))
    }
}

impl<K: Into<Arc<dyn Kind>>> From<K> for Versions {
    fn from(kind: K) -> Self {
        Self::new(kind)
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds().map(|kind| type_text(kind.names()))).finish()
    }
}

fn is_version(names: &Names, api_version: &str) -> bool {
    api_version.split_once('/') == Some((names.group, names.version))
}

fn type_text(names: &Names) -> String {
    format!("{}, Kind={}", names.api_version(), names.kind)
}

/// Orders versions by priority, the highest first: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then names of any
/// other form in alphabetical order (k8s.io/apimachinery pkg/version, CompareKubeAwareVersionStrings).
pub fn by_priority(a: &str, b: &str) -> Ordering {
    match (priority(a), priority(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Returns stability, major and minor number; `None` if the version has another form.
fn priority(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    for (stability, word) in ["alpha", "beta"].into_iter().enumerate() {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((u8::try_from(stability).ok()?, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

fn number(digits: &str) -> Option<u64> {
    // A sign is no digit, but would be parsed.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
