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
use crate::kind::{Column, Kind, NAME_AND_AGE, Names, Now, Quota, keep, reset_status};
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
    fn default(&self, _object: &mut Object) {}
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
    /// Returns the errors of an update of the status.
    fn validate_status_update(&self, _new: &Self::Object, _old: &Self::Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Changes an object before it is marked for deletion (`deletionTimestamp` set, finalizers pending).
    fn prepare_for_delete(&self, _object: &mut Draft<'_, Self::Object>) {}
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

    fn default(&self, object: &mut Object) {
        self.strategy.default(object);
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer};
    use serde_json::json;

    use super::*;
    use crate::field::{Error, Path};
    use crate::metav1::ObjectMeta;

    thread_local! {
        static DECODED: Cell<u32> = const { Cell::new(0) };
    }

    /// A Widget has a color.
    #[derive(Debug, Default, Serialize, Deserialize, ApiType)]
    #[serde(rename_all = "camelCase", default)]
    #[schema(package = "com.example.v1")]
    struct Widget {
        /// Metadata.
        #[schema(tag = 1, always)]
        metadata: ObjectMeta,
        /// Spec.
        #[serde(deserialize_with = "counted")]
        #[schema(tag = 2, required)]
        spec: WidgetSpec,
        /// Status.
        #[schema(tag = 3)]
        status: WidgetStatus,
        /// Base color.
        #[schema(tag = 4)]
        base: Color,
    }

    /// The spec of a Widget.
    #[derive(Debug, Default, Serialize, Deserialize, ApiType)]
    #[serde(rename_all = "camelCase", default)]
    #[schema(package = "com.example.v1")]
    struct WidgetSpec {
        /// Color.
        #[schema(tag = 1)]
        color: Color,
        /// Number of changes.
        #[schema(tag = 2)]
        changes: i32,
        /// Colors of the rooms.
        #[schema(tag = 3)]
        rooms: BTreeMap<String, Color>,
    }

    /// Colors.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
    enum Color {
        #[default]
        Red,
        Blue,
        #[serde(other)]
        Unknown,
    }

    /// The status of a Widget.
    #[derive(Debug, Default, Serialize, Deserialize, ApiType)]
    #[serde(rename_all = "camelCase", default)]
    #[schema(package = "com.example.v1")]
    struct WidgetStatus {
        /// Shade.
        #[schema(tag = 1)]
        shade: Color,
    }

    fn counted<'de, D: Deserializer<'de>>(from: D) -> Result<WidgetSpec, D::Error> {
        DECODED.set(DECODED.get() + 1);
        WidgetSpec::deserialize(from)
    }

    struct WidgetStrategy;

    const NAMES: Names = Names::namespaced("example.com", "v1", "Widget", "widgets", "widget");

    impl Strategy for WidgetStrategy {
        type Object = Widget;

        fn names(&self) -> &Names {
            &NAMES
        }

        fn prepare_for_update(&self, new: &mut Draft<'_, Widget>, old: &Widget) {
            if new.spec.color != old.spec.color {
                new.edit(|new| new.spec.changes = old.spec.changes + 1);
            }
        }

        fn validate_update(&self, new: &Widget, old: &Widget, _now: Now) -> ErrorList {
            let grew = new.spec.changes - old.spec.changes <= 1;
            let path = Path::new("spec").child("changes");
            if grew {
                ErrorList::new()
            } else {
                vec![Error::invalid(path, new.spec.changes, "too many at once")]
            }
        }
    }

    fn object(value: &Value) -> Object {
        Object::from(value.as_object().unwrap().clone())
    }

    #[test]
    fn an_update_decodes_each_object_once_and_its_rules_see_what_was_prepared() {
        let kind = WidgetStrategy.into_kind();
        let old = object(&json!({"spec": {"color": "Red", "changes": 1}, "status": {"shade": "Blue"}}));
        let mut new = object(&json!({"spec": {"color": "Blue", "other": null}, "status": {"shade": "Red"}}));
        DECODED.set(0);
        assert_eq!(kind.before_update(&mut new, &old, Now::UNIX_EPOCH), ErrorList::new());
        assert_eq!(DECODED.get(), 2, "the new and the old object");
        let wanted =
            json!({"spec": {"color": "Blue", "other": null, "changes": 2}, "status": {"shade": "Blue"}});
        assert_eq!(Value::Object(new.0), wanted);
        DECODED.set(0);
        kind.before_create(&mut object(&json!({"spec": {}})), Now::UNIX_EPOCH);
        assert_eq!(DECODED.get(), 1);
    }

    #[test]
    fn an_unsupported_value_is_an_error_with_what_was_sent() {
        let kind = WidgetStrategy.into_kind();
        let errors = |errors: ErrorList| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut new = object(&json!({"spec": {"color": "green"}, "status": {"shade": "gray"}}));
        let status = kind.validate_status_update(&new, &object(&json!({})), Now::UNIX_EPOCH);
        assert!(errors(status)[0].starts_with("status.shade: Unsupported value: \"gray\""));
        let spec = errors(kind.before_create(&mut new, Now::UNIX_EPOCH));
        assert_eq!(spec, ["spec.color: Unsupported value: \"green\": supported values: \"Red\", \"Blue\""]);
        assert_eq!(new.0["status"], json!({}), "a new object has no status");
        let elsewhere = object(&json!({"spec": {"rooms": {"hall": "gray"}}, "base": "pink"}));
        let all = errors(kind.validate_create(&elsewhere, Now::UNIX_EPOCH)).join("\n");
        assert!(all.contains("spec.rooms[hall]: Unsupported") && all.contains("base: Unsupported"), "{all}");
    }

    #[test]
    fn a_write_of_the_status_changes_the_status_alone() {
        let kind = WidgetStrategy.into_kind();
        let old = object(&json!({"spec": {"color": "Red"}, "base": "Blue", "status": {}}));
        let mut new = object(&json!({"base": "Red", "status": {"shade": "Blue"}, "more": 1}));
        assert_eq!(kind.before_status_update(&mut new, &old, Now::UNIX_EPOCH), ErrorList::new());
        let wanted = json!({"spec": {"color": "Red"}, "base": "Blue", "status": {"shade": "Blue"}});
        assert_eq!(Value::Object(new.0), wanted);
    }
}
