//! One name has one meaning: a type name stands in one file of the tree, but for the names listed here.

use std::collections::{BTreeMap, BTreeSet};

use drydock_architecture::{none, source};

/// Names that are idiomatic within a module: which one is meant, its path says.
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

#[test]
fn a_type_name_has_one_meaning() {
    let found: Vec<String> = in_several_files()
        .into_iter()
        .filter(|(name, _)| !IDIOMATIC.contains(&name.as_str()))
        .map(|(name, files)| format!("{name}: {}", files.into_iter().collect::<Vec<_>>().join(", ")))
        .collect();
    none(&found, "give one of them the name that says what it is here");
}

#[test]
fn a_listed_name_stands_in_several_files() {
    let several = in_several_files();
    let is_alone = |name: &&&str| !several.contains_key(**name);
    let found: Vec<String> = IDIOMATIC.iter().filter(is_alone).map(|name| (*name).to_owned()).collect();
    none(&found, "has one meaning now: take it off the list");
}

/// Names of types that several files outside tests declare, with these files. A kind has the same names in each of its
/// versions: files that are named for a version do not count.
fn in_several_files() -> BTreeMap<String, BTreeSet<String>> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in source::all().iter().filter(|file| !source::is_test(file) && !is_of_version(&file.path)) {
        for name in source::types(&source::code(file)) {
            files.entry(name).or_default().insert(file.path.clone());
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}

/// Whether the file is named for a version of an API, as `v1beta1.rs` is.
fn is_of_version(path: &str) -> bool {
    let name = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = name.strip_prefix('v').unwrap_or_default();
    let (major, minor) =
        number.split_once("alpha").or_else(|| number.split_once("beta")).unwrap_or((number, "0"));
    is_part(major) && is_part(minor)
}
