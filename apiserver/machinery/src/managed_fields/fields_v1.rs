//! FieldsV1: a set of paths as JSON (structured-merge-diff fieldpath serialization).
//!
//! ```text
//! {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:list":{"k:{\"name\":\"x\"}":{".":{}}}}
//! ```

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::element::{parse, serialize, write_string};
use super::path::PathElement;
use super::set::Set;
use crate::object::FieldsV1;
use crate::object::canonical as text;

/// Maximum number of levels that are read. Deeper ones could be stored within an object, but not be read again.
const MAX_DEPTH: usize = 123;

impl Set {
    /// Parses FieldsV1. Elements of unknown types are dropped.
    ///
    /// # Errors
    /// If the text is not FieldsV1: a description.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let fields = serde_json::from_slice::<FieldsV1>(text).map_err(|error| error.to_string())?;
        Self::read(fields.as_str()).map(|(set, _)| set)
    }

    /// As [`Self::from_json`], for text without duplicate keys. Also returns whether the set is written as exactly
    /// this text.
    pub(crate) fn read(text: &str) -> Result<(Self, bool), String> {
        let mut state = ReadState { why: None, exact: true, levels: MAX_DEPTH };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = FieldsV1Reader { state: &mut state }.deserialize(&mut deserializer);
        match read.and_then(|read| deserializer.end().map(|()| read)) {
            // The root is not written as a member (`.`).
            Ok((set, member)) => {
                let exact = state.exact && member == set.is_empty();
                Ok((set, exact))
            }
            Err(error) => Err(state.why.unwrap_or_else(|| match error.classify() {
                Category::Data => "expected an object".to_owned(),
                _ => error.to_string(),
            })),
        }
    }

    /// Returns FieldsV1 as text, sorted like an object's JSON, which is not always the order of
    /// structured-merge-diff.
    pub(crate) fn to_sorted_json(&self) -> String {
        let mut out = String::with_capacity(256);
        self.write_sorted(false, &mut out);
        out
    }

    /// Returns FieldsV1 as text, byte for byte as structured-merge-diff writes it.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(256);
        self.write_json(false, &mut out);
        out
    }

    fn write_sorted(&self, include_self: bool, out: &mut String) {
        out.push('{');
        if include_self {
            out.push_str("\".\":{}");
        }
        // Fields come first, sorted by name; some of the other elements sort by value.
        let mut others = Vec::new();
        self.entries(|element, member, child| match element {
            PathElement::Field(_) => write_entry(&serialize(element), member, child, out),
            _ => others.push((serialize(element), member, child)),
        });
        others.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        others.into_iter().for_each(|(key, member, child)| write_entry(&key, member, child, out));
        out.push('}');
    }

    fn write_json(&self, include_self: bool, out: &mut String) {
        out.push('{');
        if include_self {
            out.push_str("\".\":{}");
        }
        self.entries(|element, member, child| {
            if !out.ends_with('{') {
                out.push(',');
            }
            write_string(&serialize(element), false, out);
            out.push(':');
            match child {
                Some(set) => set.write_json(member, out),
                None => out.push_str("{}"),
            }
        });
        out.push('}');
    }

    /// Calls `f` for all members and children in one order: with the element, whether it is a member, and the set
    /// below it.
    fn entries<'a>(&'a self, mut f: impl FnMut(&'a PathElement, bool, Option<&'a Set>)) {
        let mut members = self.members.iter().peekable();
        for (element, set) in &self.children {
            while let Some(member) = members.next_if(|m| *m < element) {
                f(member, true, None);
            }
            f(element, members.next_if_eq(&element).is_some(), Some(set));
        }
        members.for_each(|member| f(member, true, None));
    }
}

fn write_entry(key: &str, member: bool, child: Option<&Set>, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    text::write_string(key, out);
    out.push(':');
    match child {
        Some(set) => set.write_sorted(member, out),
        None => out.push_str("{}"),
    }
}

/// Reads the paths below a value, and whether the value itself is a member.
struct FieldsV1Reader<'t> {
    state: &'t mut ReadState,
}

/// What reading has found.
struct ReadState {
    /// The first error.
    why: Option<String>,
    /// Whether the whole set would be written as the text that was read.
    exact: bool,
    /// How many more levels are allowed.
    levels: usize,
}

impl ReadState {
    fn fail<E: Error>(&mut self, why: String) -> E {
        let error = E::custom(&why);
        self.why.get_or_insert(why);
        error
    }
}

impl FieldsV1Reader<'_> {
    /// Parses a key; `None` for an element type that is dropped.
    fn element<E: Error>(&mut self, key: &str) -> Result<Option<PathElement>, E> {
        let element = parse(key).map_err(|why| self.state.fail(why))?;
        self.state.exact &= match &element {
            Some(PathElement::Field(_)) => true,
            Some(other) => serialize(other) == key,
            None => false,
        };
        Ok(element)
    }
}

impl<'de> DeserializeSeed<'de> for FieldsV1Reader<'_> {
    type Value = (Set, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(Set, bool), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsV1Reader<'_> {
    type Value = (Set, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(Set, bool), E> {
        self.state.exact = false;
        Ok((Set::default(), true))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(Set, bool), A::Error> {
        let (mut members, mut children, mut member) = (Vec::new(), Vec::new(), false);
        let Some(levels) = self.state.levels.checked_sub(1) else {
            return Err(self.state.fail("nested too deep".to_owned()));
        };
        self.state.levels = levels;
        while let Some(KeyText(key)) = map.next_key()? {
            if key == "." {
                member = true;
                self.state.exact &= map.next_value::<Value>()?.as_object().is_some_and(Map::is_empty);
                continue;
            }
            let Some(element) = self.element(&key)? else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (child, is_member) = map.next_value_seed(FieldsV1Reader { state: self.state })?;
            match (child.is_empty(), is_member) {
                (true, true) => members.push(element),
                (true, false) => {}
                (false, false) => children.push((element, child)),
                (false, true) => {
                    members.push(element.clone());
                    children.push((element, child));
                }
            }
        }
        self.state.levels += 1;
        let set = Set::from_unsorted(members, children);
        // A leaf is a member by itself.
        let leaf = set.members.is_empty() && set.children.is_empty();
        self.state.exact &= !(leaf && member);
        Ok((set, member || leaf))
    }
}

/// A text that borrows from the body if it has no escapes.
#[derive(serde::Deserialize)]
struct KeyText<'t>(#[serde(borrow)] Cow<'t, str>);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::object::Object;

    /// FieldsV1 in any order, with unknown elements and redundant members.
    fn fields() -> impl Strategy<Value = Value> {
        const KEYS: [&str; 16] = [
            ".",
            "f:a",
            "f:",
            "f:\"",
            "f:b!",
            "i:2",
            "i:10",
            "i:+2",
            "v:9",
            "v:10",
            "v:9.0",
            "v:\"a\"",
            r#"k:{"n":"a"}"#,
            r#"k:{"n":"a!"}"#,
            r#"k:{"n": "a"}"#,
            "x:a",
        ];
        let leaf = prop_oneof![9 => Just(Value::Object(Map::new())), 1 => Just(Value::Null)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let pairs = prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..4);
            pairs.prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        })
    }

    proptest! {
        #[test]
        fn a_text_is_exact_if_its_set_is_written_so(fields in fields()) {
            let text = fields.to_string();
            let (set, exact) = Set::read(&text).unwrap();
            prop_assert_eq!(exact, set.to_sorted_json() == text);
        }

        #[test]
        fn what_is_written_is_sorted_and_read_again(fields in fields()) {
            let set = Set::read(&fields.to_string()).unwrap().0;
            let text = set.to_sorted_json();
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap().to_string(), text.as_str());
            prop_assert_eq!(Set::read(&text).unwrap(), (set, true));
        }
    }

    /// Regression: a patch can put one deep value into another; the result was stored, and could not be read again.
    #[test]
    fn what_is_read_can_be_read_in_an_object() {
        let nested =
            |levels: usize| format!("{}{}", r#"{"f:a":"#.repeat(levels - 1) + "{", "}".repeat(levels));
        assert!(Set::read(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(Set::read(&nested(MAX_DEPTH + 1)), Err("nested too deep".to_owned()));
        let object =
            |levels| format!(r#"{{"metadata":{{"managedFields":[{{"fieldsV1":{}}}]}}}}"#, nested(levels));
        assert!(Object::from_json(object(MAX_DEPTH).as_bytes()).is_ok());
        assert!(Object::from_json(object(MAX_DEPTH + 1).as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_fields_says_why() {
        for (text, why) in [
            (r#"{"f:a":1}"#, "expected an object"),
            ("[]", "expected an object"),
            (r#"{"f:a":{"b":{}}}"#, "key must be 2 characters long:"),
            (r#"{"f:a":{},"fb":{}}"#, "missing colon: fb"),
            (r#"{"i:x":{"f:a":1}}"#, "invalid index: x"),
        ] {
            assert_eq!(Set::read(text), Err(why.to_owned()), "{text}");
        }
    }
}
