//! A write in the version of its kind that a rule names (k8s.io/apiserver pkg/admission/plugin/webhook/generic,
//! VersionedAttributes and conversion.go).

use drydock_machinery::kind::Kind;
use drydock_machinery::{ApiError, Object};

use super::AdmissionAttributes;

/// The objects of a write in one version of the kind. Nothing is copied for the version of the request.
pub struct VersionedWrite<'a>(Option<ConvertedObjects<'a>>);

struct ConvertedObjects<'a> {
    kind: &'a dyn Kind,
    old: Option<Object>,
    new: Option<Object>,
}

impl<'a> AdmissionAttributes<'a> {
    /// Converts the objects to the version of `kind`, which is one of [`Self::versions`] or the request's own.
    ///
    /// # Errors
    /// 500 if an object cannot be converted.
    pub fn convert(&self, kind: &'a dyn Kind) -> Result<VersionedWrite<'a>, ApiError> {
        if kind.names().version == self.names.version {
            return Ok(VersionedWrite(None));
        }
        let convert = |object: Option<&Object>| {
            object.map(|object| self.converted(object.clone(), self.kind, kind)).transpose()
        };
        Ok(VersionedWrite(Some(ConvertedObjects { kind, old: convert(self.old)?, new: convert(self.new)? })))
    }

    /// The write with the objects of `write`. The version of the request remains known.
    pub fn in_version<'b>(&'b self, write: &'b VersionedWrite<'_>) -> AdmissionAttributes<'b> {
        match &write.0 {
            None => *self,
            Some(ConvertedObjects { kind, old, new }) => AdmissionAttributes {
                kind: *kind,
                names: kind.names(),
                old: old.as_ref(),
                new: new.as_ref(),
                ..*self
            },
        }
    }

    /// Converts an object of the version of `write` back to that of `self`.
    ///
    /// # Errors
    /// 500 if it cannot be converted.
    pub fn convert_back(&self, object: Object, write: &VersionedWrite<'_>) -> Result<Object, ApiError> {
        match &write.0 {
            None => Ok(object),
            Some(converted) => self.converted(object, converted.kind, self.kind),
        }
    }

    fn converted(&self, object: Object, from: &dyn Kind, to: &dyn Kind) -> Result<Object, ApiError> {
        let (from, to) = (from.names().api_version(), to.names().api_version());
        match self.versions {
            None => Ok(object),
            Some(versions) => versions.convert(object, &from, &to).map_err(ApiError::internal),
        }
    }
}
