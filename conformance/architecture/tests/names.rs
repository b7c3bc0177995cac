//! One name has one meaning: a type name stands in one file of the tree, but for the names listed here.

use std::collections::{BTreeMap, BTreeSet};

use drydock_architecture::{none, source};

/// Names that are idiomatic within a module: the path says which one is meant.
const IDIOMATIC: &[&str] = &[
    "Arguments",
    "CommandLine",
    "Config",
    "Error",
    "Flags",
    "Metrics",
    "Options",
    "Result",
    "Shared",
    "State",
    "Store",
];

/// Names that mean several things still. This list is only to shrink.
const NOT_YET_RENAMED: &[&str] = &["Caller", "LabelSelector", "ListOptions"];

/// Maximum length of the list above. Lower it with each rename.
const MOST_NOT_YET_RENAMED: usize = 3;

#[test]
fn a_type_name_has_one_meaning() {
    let found: Vec<String> = in_several_files()
        .into_iter()
        .filter(|(name, _)| !listed().any(|listed| listed == name))
        .map(|(name, files)| format!("{name}: {}", files.into_iter().collect::<Vec<_>>().join(", ")))
        .collect();
    none(&found, "give one of them the name that says what it is here");
}

#[test]
fn a_listed_name_stands_in_several_files() {
    let several = in_several_files();
    let found: Vec<String> =
        listed().filter(|name| !several.contains_key(*name)).map(str::to_owned).collect();
    none(&found, "has one meaning now: take it off the list");
    assert!(
        NOT_YET_RENAMED.len() <= MOST_NOT_YET_RENAMED,
        "{} names, of at most {MOST_NOT_YET_RENAMED}: give the new one another name",
        NOT_YET_RENAMED.len()
    );
}

fn listed() -> impl Iterator<Item = &'static str> {
    IDIOMATIC.iter().chain(NOT_YET_RENAMED).copied()
}

/// Names of types that several files outside tests declare, with these files.
fn in_several_files() -> BTreeMap<String, BTreeSet<String>> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in source::all().iter().filter(|file| !source::is_test(file)) {
        for name in source::types(&source::code(file)) {
            files.entry(name).or_default().insert(file.path.clone());
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}
