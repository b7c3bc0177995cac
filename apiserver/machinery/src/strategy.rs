//! The strategy of a kind in terms of its Rust struct (k8s.io/apiserver pkg/registry/rest, RESTCreateStrategy,
//! RESTUpdateStrategy and their kin), and the [`Kind`] that the server makes of it.

mod draft;
pub mod view;

use std::fmt::{self, Debug};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use draft::Draft;

use crate::field::ErrorList;
use crate::kind::{Column, Kind, NAME_AND_AGE, Names, Now, Quota, keep, keep_all_but_status, reset_status};
use crate::names::{self, NameRule};
use crate::object::Object;
use crate::schema::enumeration::Enumerations;
use crate::schema::{ApiType, Schema};
use crate::table;

/// The rules of a kind whose objects are `Object`s of Rust. The default methods fit any simple kind with `spec` and
/// `status`. Methods named `validate*` return all errors.
///
/// An object is decoded at most once a write. The struct is a view: what a client sent, also an absent, empty or null
/// field, stays in the object as it was sent, except where the strategy changes it through a [`Draft`].
///
/// Before each of these methods, the server restores what a request may not change: the status in a write to the main
/// resource, the spec in a write to the status. It validates the enumerations of the schema.
pub trait Strategy: Send + Sync + Sized + 'static {
    /// The struct. Fields that it does not have are not read.
    type Object: ApiType + Serialize + DeserializeOwned + Default;
    /// Whether the rules on a status read the spec, labels or annotations. If not, these are not decoded for them.
    const STATUS_DEPENDS_ON_SPEC: bool = true;

    /// Returns names and scope.
    fn names(&self) -> &Names;
    /// Fills in defaults that the schema cannot; runs after decoding, before admission, and before managed fields are
    /// tracked. The object has not been validated.
    fn set_defaults(&self, _object: &mut Object) {}
    /// See [`Kind::record_user`].
    fn record_user(&self, _new: &mut Object, _old: Option<&Object>, _username: &str) {}
    /// See [`Kind::recorded_fields`].
    fn recorded_fields(&self) -> &[&'static str] {
        &[]
    }
    /// Changes a new object before it is validated. Its status is empty.
    fn prepare_for_create(&self, _new: &mut Draft<'_, Self::Object>) {}
    /// Returns the errors of a new object, except those of its metadata.
    fn validate(&self, _new: &Self::Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Changes an object before its update is validated.
    fn prepare_for_update(&self, _new: &mut Draft<'_, Self::Object>, _old: &Self::Object) {}
    /// Returns the errors of an update of the main resource, except those of its metadata.
    fn validate_update(&self, new: &Self::Object, _old: &Self::Object, now: Now) -> ErrorList {
        self.validate(new, now)
    }
    /// Changes an object before a write to its status is validated.
    fn prepare_for_status_update(&self, _new: &mut Object, _old: &Object) {}
    /// Returns the errors of an update of the status.
    fn validate_status_update(&self, _new: &Self::Object, _old: &Self::Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Changes an object before it is marked for deletion (`deletionTimestamp` set, finalizers pending).
    fn prepare_for_delete(&self, _object: &mut Draft<'_, Self::Object>) {}
    /// See [`Kind::note_creator`].
    fn note_creator(&self, _object: &mut Object, _creator: &str) {}
    /// Returns warnings for the client of a create, or of an update of `old`. The objects are as they will be stored.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }
    /// See [`Kind::counts_generation`].
    fn counts_generation(&self) -> bool {
        true
    }
    /// See [`Kind::status_keeps_metadata`].
    fn status_keeps_metadata(&self) -> bool {
        true
    }
    /// See [`Kind::name_rule`].
    fn name_rule(&self) -> NameRule {
        names::name_is_dns_subdomain
    }
    /// See [`Kind::allows_generate_name`].
    fn allows_generate_name(&self) -> bool {
        true
    }
    /// See [`Kind::allows_create_on_update`].
    fn allows_create_on_update(&self) -> bool {
        false
    }
    /// See [`Kind::allows_unconditional_update`].
    fn allows_unconditional_update(&self) -> bool {
        true
    }
    /// See [`Kind::max_bytes_without_status`].
    fn max_bytes_without_status(&self) -> Option<usize> {
        None
    }
    /// See [`Kind::quota`].
    fn quota(&self) -> Option<Quota> {
        None
    }
    /// See [`Kind::is_needed_status`].
    fn is_needed_status(&self, _new: &Object, _old: &Object) -> bool {
        false
    }
    /// See [`Kind::is_needed_update`].
    fn is_needed_update(&self, _new: &Object, _old: &Object) -> bool {
        false
    }
    /// See [`Kind::max_bytes_of_status_managers`].
    fn max_bytes_of_status_managers(&self) -> Option<usize> {
        None
    }
    /// See [`Kind::selectable_fields`].
    fn selectable_fields(&self) -> &[&'static str] {
        &[]
    }
    /// Returns the printer columns; the first one is the name.
    fn columns(&self) -> &[Column] {
        &NAME_AND_AGE
    }
    /// Returns the cells of an object, one for each column. `None` for those of [`NAME_AND_AGE`].
    fn cells(&self, _object: &Self::Object, _now: Now) -> Option<Vec<Value>> {
        None
    }

    /// Returns the kind with this strategy, for the server.
    fn into_kind(self) -> TypedKind<Self> {
        let schema = Self::Object::schema();
        let enumerations = Enumerations::of(&schema);
        TypedKind { strategy: self, schema, enumerations }
    }
}

/// A kind with a typed strategy.
pub struct TypedKind<S> {
    strategy: S,
    schema: Schema,
    enumerations: Enumerations,
}

impl<S: Strategy> From<TypedKind<S>> for Arc<dyn Kind> {
    fn from(kind: TypedKind<S>) -> Self {
        Arc::new(kind)
    }
}

impl<S> Debug for TypedKind<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedKind").finish_non_exhaustive()
    }
}

impl<S: Strategy> TypedKind<S> {
    fn create_errors(&self, object: &Object, new: &S::Object, now: Now) -> ErrorList {
        let mut errors = self.enumerations.validate(object, false);
        errors.extend(self.strategy.validate(new, now));
        object.number_as_sent(errors)
    }

    fn update_errors(&self, object: &Object, new: &S::Object, old: &S::Object, now: Now) -> ErrorList {
        let mut errors = self.enumerations.validate(object, false);
        errors.extend(self.strategy.validate_update(new, old, now));
        object.number_as_sent(errors)
    }
}

/// Returns the value, or the errors from the calling method.
macro_rules! decoded {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(errors) => return errors,
        }
    };
}

impl<S: Strategy> Kind for TypedKind<S> {
    fn names(&self) -> &Names {
        self.strategy.names()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn set_defaults(&self, object: &mut Object) {
        self.strategy.set_defaults(object);
    }

    fn record_user(&self, new: &mut Object, old: Option<&Object>, username: &str) {
        self.strategy.record_user(new, old, username);
    }

    fn recorded_fields(&self) -> &[&'static str] {
        self.strategy.recorded_fields()
    }

    fn prepare_for_create(&self, object: &mut Object) {
        if self.has_status() {
            reset_status(object);
        }
        if let Ok(mut draft) = Draft::decode(object) {
            self.strategy.prepare_for_create(&mut draft);
        }
    }

    fn validate_create(&self, object: &Object, now: Now) -> ErrorList {
        self.create_errors(object, &decoded!(view::decode(object)), now)
    }

    fn before_create(&self, object: &mut Object, now: Now) -> ErrorList {
        if self.has_status() {
            reset_status(object);
        }
        let mut draft = decoded!(Draft::decode(object));
        self.strategy.prepare_for_create(&mut draft);
        let new = draft.into_view();
        self.create_errors(object, &new, now)
    }

    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        keep(new, old, "status");
        if let (Ok(mut draft), Ok(old)) = (Draft::decode(new), view::decode(old)) {
            self.strategy.prepare_for_update(&mut draft, &old);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList {
        let (view, old) = (decoded!(view::decode(new)), decoded!(view::decode(old)));
        self.update_errors(new, &view, &old, now)
    }

    fn before_update(&self, new: &mut Object, old: &Object, now: Now) -> ErrorList {
        keep(new, old, "status");
        let (mut draft, old) = (decoded!(Draft::decode(new)), decoded!(view::decode(old)));
        self.strategy.prepare_for_update(&mut draft, &old);
        let view = draft.into_view();
        self.update_errors(new, &view, &old, now)
    }

    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        keep_all_but_status(new, old);
        self.strategy.prepare_for_status_update(new, old);
    }

    fn validate_status_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList {
        let decode = if S::STATUS_DEPENDS_ON_SPEC { view::decode } else { view::decode_status };
        let (view, old) = (decoded!(decode(new)), decoded!(decode(old)));
        let mut errors = self.enumerations.validate(new, true);
        errors.extend(self.strategy.validate_status_update(&view, &old, now));
        errors
    }

    fn prepare_for_delete(&self, object: &mut Object) {
        if let Ok(mut draft) = Draft::decode(object) {
            self.strategy.prepare_for_delete(&mut draft);
        }
    }

    fn note_creator(&self, object: &mut Object, creator: &str) {
        self.strategy.note_creator(object, creator);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        self.strategy.warnings(new, old)
    }

    fn counts_generation(&self) -> bool {
        self.strategy.counts_generation()
    }

    fn status_keeps_metadata(&self) -> bool {
        self.strategy.status_keeps_metadata()
    }

    fn name_rule(&self) -> NameRule {
        self.strategy.name_rule()
    }

    fn allows_generate_name(&self) -> bool {
        self.strategy.allows_generate_name()
    }

    fn allows_create_on_update(&self) -> bool {
        self.strategy.allows_create_on_update()
    }

    fn allows_unconditional_update(&self) -> bool {
        self.strategy.allows_unconditional_update()
    }

    fn max_bytes_without_status(&self) -> Option<usize> {
        self.strategy.max_bytes_without_status()
    }

    fn quota(&self) -> Option<Quota> {
        self.strategy.quota()
    }

    fn is_needed_status(&self, new: &Object, old: &Object) -> bool {
        self.strategy.is_needed_status(new, old)
    }

    fn is_needed_update(&self, new: &Object, old: &Object) -> bool {
        self.strategy.is_needed_update(new, old)
    }

    fn max_bytes_of_status_managers(&self) -> Option<usize> {
        self.strategy.max_bytes_of_status_managers()
    }

    fn selectable_fields(&self) -> &[&'static str] {
        self.strategy.selectable_fields()
    }

    fn columns(&self) -> &[Column] {
        self.strategy.columns()
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        let typed = self.strategy.cells(&view::decode(object).unwrap_or_default(), now);
        typed.unwrap_or_else(|| vec![object.name().into(), table::age(object, now).into()])
    }
}

#[cfg(test)]
#[path = "strategy_tests.rs"]
mod tests;
