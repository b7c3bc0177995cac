//! Reads the `apiVersion` and `kind` of a body before it is decoded as ours.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Format, cannot_be_handled, read};
use serde_json::Value;

use crate::error::ApiError;
use crate::go_json;
use crate::kind::Names;
use crate::quote::go_quote;

/// Maximum number of bytes of a body that an error shows.
const SHOWN: usize = 30;

/// Whether a decoded body is of this kind, or names no kind.
pub(super) fn is_of(body: Option<&Value>, names: &Names) -> bool {
    let says =
        |field: &str| body.and_then(|body| body.get(field)).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (says("apiVersion"), says("kind"));
    (kind.is_empty() || kind == names.kind) && (api_version.is_empty() || api_version == names.api_version())
}

/// Fails if the body names another kind.
pub(super) fn check(
    body: &[u8],
    format: Format,
    names: &Names,
    unrecognized: impl Fn(String) -> ApiError,
) -> Result<(), ApiError> {
    let type_meta = read(body, format, TypeMetaSeed).map_err(|why| {
        let why = if format == Format::Yaml {
            why.replacen("error converting YAML to JSON: ", "", 1)
        } else {
            format!("couldn't get version/kind; json parse error: {why}")
        };
        unrecognized(why)
    })?;
    let (api_version, kind) = (type_meta.api_version.as_str(), type_meta.kind.as_str());
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(format!("unexpected GroupVersion string: {api_version}")));
    }
    let expected = names.api_version();
    if !kind.is_empty() && kind != names.kind {
        let given = if api_version.is_empty() { &expected } else { api_version };
        return Err(cannot_be_handled(names, kind, version_of(given), &not_registered(kind, given)));
    }
    if !api_version.is_empty() && api_version != expected {
        let why = not_registered(names.kind, api_version);
        return Err(cannot_be_handled(names, names.kind, version_of(api_version), &why));
    }
    Ok(())
}

/// The error for an unknown kind. Kubernetes names its scheme by the source line that creates it; this is such a
/// name.
pub fn not_registered(kind: &str, api_version: &str) -> String {
    let (kind, version) = (go_quote(kind), go_quote(api_version));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Returns the beginning of a body: as text if it looks like JSON, otherwise in hexadecimal.
pub fn summary(body: &[u8]) -> String {
    let (start, rest) = body.split_at(SHOWN.min(body.len()));
    let text = match start.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|b| format!("{b:02x}")).collect(),
    };
    if rest.is_empty() { text } else { format!("{text} ...") }
}

#[derive(Default)]
struct TypeMeta {
    api_version: String,
    kind: String,
}

struct TypeMetaSeed;

impl<'de> DeserializeSeed<'de> for TypeMetaSeed {
    type Value = TypeMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TypeMeta, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TypeMetaSeed {
    type Value = TypeMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    /// A body of null names no kind.
    fn visit_unit<E: Error>(self) -> Result<TypeMeta, E> {
        Ok(TypeMeta::default())
    }

    fn visit_none<E: Error>(self) -> Result<TypeMeta, E> {
        Ok(TypeMeta::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<TypeMeta, E> {
        Err(no_object("bool"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<TypeMeta, E> {
        Err(no_object("number"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<TypeMeta, E> {
        Err(no_object("number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<TypeMeta, E> {
        Err(no_object("number"))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<TypeMeta, E> {
        Err(no_object("string"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<TypeMeta, A::Error> {
        Err(no_object("array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TypeMeta, A::Error> {
        let mut type_meta = TypeMeta::default();
        while let Some(key) = map.next_key_seed(super::seed::KeySeed)? {
            match key.as_str() {
                "apiVersion" => type_meta.api_version = text(&key, map.next_value()?)?,
                "kind" => type_meta.kind = text(&key, map.next_value()?)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(type_meta)
    }
}

/// The message of Go's decoder for the struct that Kubernetes reads `apiVersion` and `kind` into.
fn no_object<E: Error>(what: &str) -> E {
    E::custom(format!(
        "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
         Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    ))
}

/// Reads `apiVersion` or `kind`: text, or null for none.
fn text<E: Error>(name: &str, value: Value) -> Result<String, E> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(String::new()),
        other => {
            let what = go_json::kind_of(&other);
            Err(E::custom(format!(
                "json: cannot unmarshal {what} into Go struct field .{name} of type string"
            )))
        }
    }
}
