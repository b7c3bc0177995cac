//! The protobuf tags that clients rely on.

use std::collections::BTreeMap;
use std::fmt;

use crate::kind::Kind;
use crate::schema::{ObjectShape, Schema, Shape};

/// The name in the list of a tag whose field was removed: the tag is never used again.
const RESERVED: &str = "reserved";

/// The protobuf tags of all structs of kinds, by struct and tag. As text, a line for each: `STRUCT TAG FIELD`, or
/// `STRUCT TAG reserved` for a tag whose field was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(BTreeMap<(String, u32), String>);

impl Tags {
    /// The tags of these kinds as they are defined now.
    pub fn of(kinds: &[&dyn Kind]) -> Self {
        let structs = own_structs(kinds).into_iter();
        let tags = structs.flat_map(|shape| {
            let name = split(shape.definition).1;
            let fields = shape.fields.iter().filter(|field| field.number > 0);
            fields.map(move |field| ((name.to_owned(), field.number), field.name.to_owned()))
        });
        Self(tags.collect())
    }

    /// Reads a committed list. Lines that are not of its form are left out, so that their tags are missing in it.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let key = (words.next()?.to_owned(), words.next()?.parse().ok()?);
            Some((key, words.next()?.to_owned()))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Compares the committed list, which is `self`, with the tags as they are `now`. Returns what would break clients:
    /// a tag that is used for another field, and a field that is gone without its tag being reserved.
    pub fn breaks(&self, now: &Self) -> Vec<String> {
        let of_tag = |(key, before): (&(String, u32), &String)| {
            let (name, tag) = key;
            match now.0.get(key) {
                Some(field) if field == before => None,
                Some(field) if before == RESERVED => Some(format!(
                    "{name}: tag {tag} is reserved, and {field} uses it: take the next free tag"
                )),
                Some(field) => {
                    Some(format!("{name}: tag {tag} was {before}'s and is {field}'s: take the next free tag"))
                }
                None if before == RESERVED => None,
                None => Some(format!(
                    "{name}: {before} with tag {tag} is gone: if it is meant, write `{name} {tag} {RESERVED}`"
                )),
            }
        };
        self.0.iter().filter_map(of_tag).collect()
    }

    /// The committed list with the tags that are new `now`.
    #[must_use]
    pub fn with(mut self, now: Self) -> Self {
        for (key, field) in now.0 {
            self.0.entry(key).or_insert(field);
        }
        self
    }

    /// The tags of a struct whose fields were removed.
    pub fn reserved(&self, name: &str) -> impl Iterator<Item = u32> {
        let of_struct = self.0.iter().filter(move |((of, _), field)| of == name && *field == RESERVED);
        of_struct.map(|((_, tag), _)| *tag)
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|((name, tag), field)| writeln!(f, "{name} {tag} {field}"))
    }
}

/// The structs of these kinds that belong to the kinds' own packages, each once, in the order in which they are met.
pub(super) fn own_structs<'k>(kinds: &[&'k dyn Kind]) -> Vec<&'k ObjectShape> {
    let mut found = Vec::new();
    for kind in kinds {
        collect(kind.schema(), package(kind.schema()), &mut found);
    }
    found
}

fn collect<'s>(schema: &'s Schema, own: &str, found: &mut Vec<&'s ObjectShape>) {
    match &schema.shape {
        Shape::Object(shape) if split(shape.definition).0 == own => {
            if found.iter().all(|known| known.definition != shape.definition) {
                found.push(shape);
            }
            shape.fields.iter().for_each(|field| collect(&field.schema, own, found));
        }
        Shape::List(items, _) | Shape::Map(items) => collect(items, own, found),
        _ => {}
    }
}

/// The package of a kind's definition.
pub(super) fn package(schema: &Schema) -> &'static str {
    match &schema.shape {
        Shape::Object(shape) => split(shape.definition).0,
        _ => "",
    }
}

/// The package and the name of a definition.
pub(super) fn split(definition: &'static str) -> (&'static str, &'static str) {
    definition.rsplit_once('.').unwrap_or(("", definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_neither_changed_nor_used_again() {
        let committed = Tags::parse("Spec 1 size\nSpec 2 reserved\nSpec 3 color\n");
        let breaks = |now: &str| committed.breaks(&Tags::parse(now));
        assert_eq!(breaks("Spec 1 size\nSpec 3 color\nSpec 4 shape\n"), Vec::<String>::new());
        assert!(breaks("Spec 1 size\n")[0].contains("color with tag 3 is gone"));
        assert!(breaks("Spec 1 size\nSpec 2 shape\nSpec 3 color\n")[0].contains("tag 2 is reserved"));
        assert!(breaks("Spec 1 color\nSpec 3 color\n")[0].contains("tag 1 was size's and is color's"));
        let more = committed.with(Tags::parse("Spec 1 size\nSpec 4 shape\n"));
        assert_eq!(more.to_string(), "Spec 1 size\nSpec 2 reserved\nSpec 3 color\nSpec 4 shape\n");
        assert_eq!(more.reserved("Spec").collect::<Vec<_>>(), [2]);
    }
}
