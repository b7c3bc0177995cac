//! Which kind a body says it is, before it is decoded as ours.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::{Format, cannot_be_handled, read};
use crate::error::ApiError;
use crate::kind::Names;
use crate::quote::go_quote;

/// How much of a body an error shows.
const SHOWN: usize = 30;

/// An error unless the body is of this kind or says nothing of its kind.
pub(super) fn check(
    body: &[u8],
    format: Format,
    names: &Names,
    unrecognized: impl Fn(String) -> ApiError,
) -> Result<(), ApiError> {
    let identity = read(body, format, IdentitySeed)
        .map_err(|why| unrecognized(format!("couldn't get version/kind; json parse error: {why}")))?;
    let (api_version, kind) = (identity.api_version.as_str(), identity.kind.as_str());
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(format!("unexpected GroupVersion string: {api_version}")));
    }
    let expected = names.api_version();
    if !kind.is_empty() && kind != names.kind {
        let given = if api_version.is_empty() { &expected } else { api_version };
        let why = format!("no kind {} is registered for version {}", go_quote(kind), go_quote(given));
        return Err(cannot_be_handled(names, kind, given.rsplit('/').next().unwrap_or_default(), &why));
    }
    if !api_version.is_empty() && api_version != expected {
        let message = "the API version in the data";
        return Err(ApiError::bad_request(format!(
            "{message} ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

/// The beginning of a body: as text if it looks like JSON, else in hexadecimal.
pub(super) fn summary(body: &[u8]) -> String {
    let (start, rest) = body.split_at(SHOWN.min(body.len()));
    let text = match start.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|b| format!("{b:02x}")).collect(),
    };
    if rest.is_empty() { text } else { format!("{text} ...") }
}

#[derive(Default)]
struct Identity {
    api_version: String,
    kind: String,
}

struct IdentitySeed;

impl<'de> DeserializeSeed<'de> for IdentitySeed {
    type Value = Identity;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Identity, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IdentitySeed {
    type Value = Identity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Identity, A::Error> {
        let mut identity = Identity::default();
        while let Some(key) = map.next_key_seed(super::key::Key)? {
            match key.as_str() {
                "apiVersion" => identity.api_version = map.next_value::<Text>()?.0,
                "kind" => identity.kind = map.next_value::<Text>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(identity)
    }
}

/// A string or null.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Self(text.unwrap_or_default()))
    }
}
