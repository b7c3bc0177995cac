//! What it takes to add a field to a kind: its lines in the struct, and nothing else. The .proto file, OpenAPI, the
//! reference and the tags follow.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod after;
#[allow(dead_code)]
mod before;

use std::collections::BTreeSet;

use drydock_machinery::generate::{Tags, field_reference, proto_file};
use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::openapi::v2_document;
use drydock_machinery::schema::{ApiType, Schema};

/// A kind that is nothing but its schema.
struct Shelves(Schema);

const NAMES: Names = Names::namespaced("example.com", "v1", "Shelf", "shelves", "shelf");

impl Kind for Shelves {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn a_field_is_added_by_its_own_lines_and_everything_else_is_generated() {
    let (old, new) = (include_str!("before.rs"), include_str!("after.rs"));
    let written: Vec<_> = lines(new).difference(&lines(old)).copied().collect();
    assert_eq!(
        written,
        ["#[schema(tag = 2, default = \"\\\"Oak\\\"\")]", "/// Wood of the boards.", "pub wood: String,"],
        "one field: its text, its attributes and its type"
    );
    assert_eq!(new.lines().count() - old.lines().count(), 3);

    let (old, new) = (Shelves(before::Shelf::schema()), Shelves(after::Shelf::schema()));
    let generated = |kind: &Shelves| {
        let kinds: &[&dyn Kind] = &[kind];
        let openapi = serde_json::to_string_pretty(&v2_document(kinds, "Shelves", "v1")).unwrap();
        [
            proto_file(kinds, "Shelves.", &Tags::default()),
            openapi,
            field_reference(kinds, "Fields"),
            Tags::of(kinds).to_string(),
        ]
    };
    let (before, after) = (generated(&old), generated(&new));
    for (before, after) in before.iter().zip(&after) {
        let gone: Vec<_> = lines(before).difference(&lines(after)).copied().collect();
        assert_eq!(gone, Vec::<&str>::new(), "a new field changes nothing else");
    }
    let added: Vec<Vec<_>> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| lines(after).difference(&lines(before)).copied().collect())
        .collect();
    assert_eq!(added[0], ["// Wood of the boards.", "optional string wood = 2;"]);
    assert!(
        added[1].contains(&"\"default\": \"Oak\",") && added[1].contains(&"\"wood\": {"),
        "{:?}",
        added[1]
    );
    assert_eq!(added[2], ["- **`wood`** (string, tag 2, default `\"Oak\"`): Wood of the boards."]);
    assert_eq!(added[3], ["Shelf 2 wood"]);
}
