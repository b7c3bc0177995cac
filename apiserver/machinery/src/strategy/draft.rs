//! An object that a strategy may change, as a struct.

use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::view;
use crate::field::ErrorList;
use crate::object::Object;

/// An object that is about to be written, with its view. It reads as the view.
#[derive(Debug)]
pub struct Draft<'o, T> {
    object: &'o mut Object,
    view: T,
}

impl<'o, T: Serialize + DeserializeOwned> Draft<'o, T> {
    /// Decodes the view.
    ///
    /// # Errors
    /// If the object is not of the view's form.
    pub fn decode(object: &'o mut Object) -> Result<Self, ErrorList> {
        let view = view::decode(object)?;
        Ok(Self { object, view })
    }

    /// Changes the view, and the object where the view changed. All else in the object stays as it was sent.
    pub fn edit(&mut self, change: impl FnOnce(&mut T)) {
        let before = as_fields(&self.view);
        change(&mut self.view);
        write_changes(&mut self.object.0, &before, &as_fields(&self.view));
    }

    /// Returns the view.
    pub fn into_view(self) -> T {
        self.view
    }
}

impl<T> Deref for Draft<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

/// The fields of a view. A struct with fields always is an object, and its keys are strings.
fn as_fields(view: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(view) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Makes those changes in `fields` that lead from `before` to `after`.
fn write_changes(fields: &mut Map<String, Value>, before: &Map<String, Value>, after: &Map<String, Value>) {
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(value)) {
        match fields.get_mut(name) {
            Some(present) => write_value(present, before.get(name), value),
            None => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        fields.remove(name);
    }
}

fn write_value(present: &mut Value, before: Option<&Value>, after: &Value) {
    match (present, before, after) {
        (Value::Object(fields), before, Value::Object(after)) => {
            let nothing = Map::new();
            write_changes(fields, before.and_then(Value::as_object).unwrap_or(&nothing), after);
        }
        (Value::Array(items), before, Value::Array(after)) => {
            let before = before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            write_items(items, before, after);
        }
        (present, _, after) => *present = after.clone(),
    }
}

/// Items that only follow those that are there leave them untouched; other changes replace the list.
fn write_items(items: &mut Vec<Value>, before: &[Value], after: &[Value]) {
    match after.strip_prefix(before) {
        Some(more) if items.len() == before.len() => items.extend(more.iter().cloned()),
        _ => *items = after.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::metav1::{ObjectMeta, is_default};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Thing {
        metadata: ObjectMeta,
        #[serde(skip_serializing_if = "is_default")]
        spec: Spec,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(skip_serializing_if = "String::is_empty")]
        color: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Spec>,
    }

    fn edited(given: &Value, change: impl FnOnce(&mut Thing)) -> Value {
        let mut object = Object::from(given.as_object().unwrap().clone());
        let mut draft = Draft::<Thing>::decode(&mut object).unwrap();
        draft.edit(change);
        let view = draft.into_view();
        assert_eq!(view, view::decode(&object).unwrap(), "the object is what the view says");
        Value::Object(object.0)
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_sent() {
        let given = json!({
            "metadata": {"name": "a", "labels": {}, "unknown": 1},
            "spec": {"color": "", "parts": [{"color": "red", "other": null}], "nothing": null},
        });
        assert_eq!(edited(&given, |_| ()), given);
        let appended = edited(&given, |thing| thing.spec.parts.push(Spec::default()));
        assert_eq!(appended["spec"]["parts"], json!([{"color": "red", "other": null}, {}]));
        let colored = edited(&given, |thing| thing.spec.color = "blue".into());
        assert_eq!(colored["spec"]["color"], "blue");
        assert_eq!(
            (&colored["metadata"], &colored["spec"]["parts"]),
            (&given["metadata"], &given["spec"]["parts"])
        );
    }

    #[test]
    fn fields_come_and_go_with_the_view() {
        let given = json!({"metadata": {"name": "a", "finalizers": null}});
        let held = edited(&given, |thing| thing.metadata.finalizers.push("x/y".into()));
        assert_eq!(held, json!({"metadata": {"name": "a", "finalizers": ["x/y"]}}));
        assert_eq!(
            edited(&held, |thing| thing.metadata.finalizers.clear()),
            json!({"metadata": {"name": "a"}})
        );
        let spec = |thing: &mut Thing| thing.spec.color = "red".into();
        for (given, wanted) in [
            (json!({"metadata": {}}), json!({"metadata": {}, "spec": {"color": "red"}})),
            (
                json!({"metadata": {}, "spec": {"x": 1}}),
                json!({"metadata": {}, "spec": {"x": 1, "color": "red"}}),
            ),
            (json!({"metadata": {}, "spec": null}), json!({"metadata": {}, "spec": {"color": "red"}})),
        ] {
            assert_eq!(edited(&given, spec), wanted);
        }
    }
}
