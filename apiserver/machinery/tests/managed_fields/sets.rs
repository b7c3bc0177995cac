//! FieldsV1 as structured-merge-diff reads, sorts and writes it: each line of `sets.jsonl` has a text and the
//! expected result.

use std::sync::Arc;

use drydock_machinery::managed_fields::Set;
use drydock_machinery::object::FieldsV1;
use serde_json::Value;

const SETS: &str = include_str!("../data/managed_fields/sets.jsonl");

fn vectors() -> impl Iterator<Item = Value> {
    SETS.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn sets_are_written_byte_for_byte_as_the_host_writes_them() {
    for vector in vectors().filter(|v| v.get("out").is_some()) {
        let set = Set::from_json(vector["in"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(set.to_json(), vector["out"].as_str().unwrap());
        // An object's JSON is sorted at all levels.
        let tree: Value = serde_json::from_str(&set.to_json()).unwrap();
        assert_eq!(FieldsV1::from(Arc::new(set)).as_str(), tree.to_string());
    }
}

#[test]
fn paths_are_printed_as_the_host_prints_them() {
    for vector in vectors().filter(|v| v.get("out").is_some()) {
        let set = Set::from_json(vector["in"].as_str().unwrap().as_bytes()).unwrap();
        let mut paths = Vec::new();
        set.for_each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect::<String>()));
        assert_eq!(paths.join("\n"), vector["paths"].as_str().unwrap());
    }
}

#[test]
fn what_the_host_cannot_read_is_not_read() {
    for vector in vectors().filter(|v| v.get("error").is_some()) {
        let text = vector["in"].as_str().unwrap();
        assert!(Set::from_json(text.as_bytes()).is_err(), "{text}");
    }
}
