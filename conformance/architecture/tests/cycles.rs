//! Modules of a crate are layers: no module uses, over others, one that uses it.

use std::collections::{BTreeMap, BTreeSet};

use drydock_architecture::{none, source};

/// Folders whose modules have no cycles: crates, and modules of crates.
const LAYERED: &[&str] = &[
    "apiserver/server/src/",
    "apiserver/server/src/audit/",
    "apiserver/server/src/handlers/",
    "apiserver/storage/src/cache/",
    "apiserver/storage/src/store/",
    "apiserver/storage/src/",
    "apiserver/storage-etcd/src/",
    "apiserver/storage-sqlite/src/",
    "apiserver/server/src/request/",
    "apiserver/server/src/wire/",
    "apiserver/serving/src/",
    "apiserver/serving/src/auth/",
    "apiserver/serving/src/auth/authn/",
    "apiserver/serving/src/auth/review/",
    "apiserver/serving/src/serve/",
    "apiserver/serving/src/wire/",
    "controllers/eviction/src/",
    "controllers/interceptors/src/",
    "controllers/interceptors/src/daemonset/",
    "controllers/interceptors/src/imperative/",
    "controllers/interceptors/src/report/",
    "controllers/maintenance/src/",
    "controllers/maintenance/src/blockers/",
    "controllers/maintenance/src/io/",
    "controllers/maintenance/src/nodes/",
    "controllers/maintenance/src/status/",
    "controllers/plan/src/",
    "controllers/runtime/src/",
    "controllers/runtime/src/events/",
    "controllers/surge/src/",
];

#[test]
fn modules_of_layered_folders_use_each_other_one_way() {
    let mut found = Vec::new();
    for &folder in LAYERED {
        let mut uses = uses(folder);
        assert!(uses.len() > 3, "{folder} has no modules: take it off the list, or right its path");
        // A module that uses none of those that are left is a layer; the modules that remain at the end
        // are in cycles.
        while let Some(lowest) = uses.iter().find(|(_, used)| used.is_empty()).map(|(name, _)| name.clone()) {
            uses.remove(&lowest);
            uses.values_mut().for_each(|used| used.retain(|name| *name != lowest));
        }
        found.extend(uses.into_iter().map(|(module, used)| format!("{folder}{module} uses {used:?}")));
    }
    none(&found, "move what both sides need below them; some of these are in a cycle, the others use one");
}

/// Each module of a folder, and the others that its files name as `crate::module`, or as `super::module`
/// within a module. What lists the modules of the folder, and comments, do not count.
fn uses(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files: Vec<_> = source::all();
    let files = files.iter().filter(|file| file.path.starts_with(folder) && !source::is_test(file));
    let within = folder.split_once("src/").map_or("", |(_, within)| within);
    let from_crate = format!("crate::{}", within.replace('/', "::"));
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = &file.path[folder.len()..];
        let module = path.split(['/', '.']).next().unwrap_or_default();
        if matches!(module, "lib" | "mod") {
            continue;
        }
        let is_child = !within.is_empty() && !path.contains('/');
        let used = uses.entry(module.to_owned()).or_default();
        for line in source::code(file).into_iter().filter(|line| !line.trim_start().starts_with("//")) {
            line.split(&from_crate).skip(1).for_each(|path| used.extend(heads(path)));
            let from_parent = line.split("super::").skip(1).filter(|_| is_child);
            from_parent.for_each(|path| used.extend(heads(path)));
        }
    }
    let known: BTreeSet<String> = uses.keys().cloned().collect();
    uses.values_mut().for_each(|used| used.retain(|name| known.contains(name)));
    for (module, used) in &mut uses {
        used.remove(module);
    }
    uses
}

/// Returns the first segment of a path. Of a list in braces, returns every name in it, also names that
/// are not first segments.
fn heads(path: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let most = if path.starts_with('{') { usize::MAX } else { 1 };
    let names = path.split(|c| !is_part(c)).take(most);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
