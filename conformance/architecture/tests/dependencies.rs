//! Who may depend on whom.

use drydock_architecture::manifest::{self, Crate};
use drydock_architecture::{none, repository, source};

/// Each of our crates and those of ours that it may use. A crate uses only crates that stand above it: one way.
const TABLE: &[(&str, &[&str])] = &[
    ("drydock-logging", &[]),
    ("drydock-metrics", &[]),
    ("drydock-proto", &[]),
    ("drydock-schema-derive", &[]),
    ("drydock-machinery", &["drydock-schema-derive"]),
    ("drydock-api", &["drydock-machinery"]),
    ("drydock-storage", &["drydock-machinery"]),
    ("drydock-storage-sqlite", &["drydock-storage"]),
    ("drydock-storage-etcd", &["drydock-storage"]),
    ("drydock-stream", &["drydock-proto", "drydock-machinery", "drydock-api", "drydock-storage"]),
    ("drydock-serving", &["drydock-logging", "drydock-machinery"]),
    (
        "drydock-server",
        &["drydock-logging", "drydock-machinery", "drydock-metrics", "drydock-serving", "drydock-storage"],
    ),
    ("drydock-admission", &["drydock-logging", "drydock-machinery", "drydock-serving", "drydock-server"]),
    ("drydock-command", &["drydock-logging"]),
    (
        "drydock-apiserver",
        &[
            "drydock-machinery",
            "drydock-api",
            "drydock-storage",
            "drydock-storage-sqlite",
            "drydock-storage-etcd",
            "drydock-serving",
            "drydock-server",
            "drydock-admission",
            "drydock-stream",
            "drydock-command",
        ],
    ),
    ("drydock-plan", &["drydock-api"]),
    ("drydock-runtime", &["drydock-api", "drydock-logging", "drydock-metrics", "drydock-serving"]),
    ("drydock-interceptor-runtime", &["drydock-api"]),
    ("drydock-controller-command", &["drydock-command", "drydock-runtime", "drydock-serving"]),
    ("drydock-eviction", &["drydock-logging", "drydock-api", "drydock-runtime"]),
    (
        "drydock-interceptors",
        &["drydock-logging", "drydock-api", "drydock-runtime", "drydock-interceptor-runtime"],
    ),
    (
        "drydock-surge",
        &[
            "drydock-api",
            "drydock-runtime",
            "drydock-interceptor-runtime",
            "drydock-serving",
            "drydock-command",
            "drydock-controller-command",
        ],
    ),
    (
        "drydock-maintenance",
        &["drydock-logging", "drydock-machinery", "drydock-api", "drydock-runtime", "drydock-plan"],
    ),
    ("drydock-removal", &["drydock-api", "drydock-runtime"]),
    (
        "drydock-controller-manager",
        &[
            "drydock-logging",
            "drydock-api",
            "drydock-runtime",
            "drydock-eviction",
            "drydock-interceptors",
            "drydock-maintenance",
            "drydock-removal",
            "drydock-serving",
            "drydock-command",
            "drydock-controller-command",
        ],
    ),
];

/// Crates that decide and do no I/O: bytes and objects in, bytes and objects out.
const PURE: [&str; 3] = ["drydock-machinery", "drydock-api", "drydock-plan"];
/// What gives a crate I/O, a clock or chance.
const IMPURE: [&str; 14] = [
    "axum",
    "etcd-client",
    "hyper",
    "hyper-util",
    "k8s-openapi",
    "kube",
    "rand",
    "rusqlite",
    "rustls",
    "rustix",
    "tokio",
    "tokio-util",
    "tower",
    "uuid",
];

#[test]
fn crates_use_what_the_table_says_and_no_other_of_ours() {
    for member in product() {
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == member.name) else {
            panic!("{}: not in the table of {}; put it at its place", member.name, file!());
        };
        let mut used: Vec<&str> = ours(&member.dependencies);
        let mut allowed = allowed.to_vec();
        used.sort_unstable();
        allowed.sort_unstable();
        assert_eq!(used, allowed, "{}: left what its Cargo.toml says, right the table", member.folder);
    }
}

#[test]
fn the_table_leads_one_way() {
    for (at, (name, uses)) in TABLE.iter().enumerate() {
        for used in *uses {
            assert!(TABLE[..at].iter().any(|(above, _)| above == used), "{name} stands above {used}");
        }
        assert!(product().iter().any(|member| member.name == *name), "{name} is gone: take it off the table");
    }
}

/// The manager keeps nothing; every backend is built on the storage crate.
#[test]
fn the_manager_links_no_api_server_and_no_storage() {
    let mut linked = vec!["drydock-controller-manager"];
    let mut at = 0;
    while let Some(&name) = linked.get(at) {
        let uses = TABLE.iter().filter(|(member, _)| *member == name).flat_map(|(_, uses)| uses.iter());
        let new: Vec<&str> = uses.copied().filter(|used| !linked.contains(used)).collect();
        linked.extend(new);
        at += 1;
    }
    assert!(linked.contains(&"drydock-serving"), "{linked:?}");
    assert!(!linked.iter().any(|name| ["drydock-server", "drydock-storage"].contains(name)), "{linked:?}");
}

#[test]
fn the_picture_of_the_crates_shows_the_table() {
    let page = repository::read("apiserver/README.md");
    let short = |name: &str| name.trim_start_matches("drydock-").to_owned();
    let arrow = |from: &str, to: &str| format!("    {} --> {}", short(from), short(to));
    let arrows = TABLE.iter().flat_map(|(from, uses)| uses.iter().map(|to| arrow(from, to)));
    let missing: Vec<String> = arrows.filter(|arrow| !page.lines().any(|line| line == arrow)).collect();
    none(&missing, "apiserver/README.md does not show");
    let drawn = page.lines().skip_while(|line| *line != "## Crates").filter(|line| line.contains(" --> "));
    assert_eq!(drawn.count(), TABLE.iter().map(|(_, uses)| uses.len()).sum::<usize>(), "it shows more");
}

#[test]
fn tests_of_a_crate_see_no_crate_above_it() {
    for member in product() {
        let at = TABLE.iter().position(|(name, _)| *name == member.name);
        for used in ours(&member.other_dependencies) {
            let below = TABLE.iter().position(|(name, _)| *name == used);
            // Its own tests may use its feature test-util.
            assert!(below <= at, "{}: its tests use {used}, which is built on it", member.folder);
        }
    }
}

#[test]
fn nothing_of_the_product_depends_on_conformance() {
    let tools: Vec<String> = manifest::crates().into_iter().filter(is_tool).map(|c| c.name).collect();
    for member in product() {
        let mut all = member.dependencies.iter().chain(&member.other_dependencies);
        let found = all.find(|name| tools.contains(name));
        assert_eq!(found, None, "{}: what tests it is not part of it", member.folder);
    }
}

/// The scripts of conformance/ name crates by package, their readers by folder.
#[test]
fn a_crate_of_conformance_has_the_name_of_its_folder() {
    for member in manifest::crates().iter().filter(|member| is_tool(member)) {
        let folder = member.folder.trim_start_matches("conformance/");
        // Clients in several languages share a folder.
        let is_named = folder.contains('/') || member.name == format!("drydock-{folder}");
        assert!(is_named, "{}: is named {}", member.folder, member.name);
    }
}

#[test]
fn pure_crates_do_no_io() {
    for member in product().iter().filter(|member| PURE.contains(&member.name.as_str())) {
        let found = member.dependencies.iter().find(|name| IMPURE.contains(&name.as_str()));
        assert_eq!(found, None, "{}: decides from what it is given, and nothing else", member.folder);
    }
}

#[test]
fn every_dependency_is_used() {
    let sources = repository::files(".rs");
    let mut found = Vec::new();
    for member in manifest::crates() {
        let folder = format!("{}/", member.folder);
        let texts: Vec<_> = sources.iter().filter(|f| f.path.starts_with(&folder)).collect();
        let is_used = |name: &&String| texts.iter().any(|f| has_word(&f.text, &name.replace('-', "_")));
        let all = member.dependencies.iter().chain(&member.other_dependencies);
        found.extend(all.filter(|name| !is_used(name)).map(|name| format!("{folder}Cargo.toml: {name}")));
    }
    none(&found, "listed but not used: take it off");
}

#[test]
fn every_dependency_of_the_workspace_has_a_crate_that_uses_it() {
    let crates = manifest::crates();
    let is_used = |name: &String| {
        crates.iter().any(|c| c.dependencies.contains(name) || c.other_dependencies.contains(name))
    };
    let all = manifest::keys(&repository::read("Cargo.toml"), "workspace.dependencies");
    let found: Vec<String> = all.into_iter().filter(|name| !is_used(name)).collect();
    none(&found, "listed in Cargo.toml, and no crate takes it: take it off");
}

fn product() -> Vec<Crate> {
    manifest::crates().into_iter().filter(|member| !is_tool(member)).collect()
}

/// Crates of conformance/ test the others and may use any of them.
fn is_tool(member: &Crate) -> bool {
    member.folder.starts_with("conformance/")
}

fn ours(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| name.starts_with("drydock-")).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

/// A newcomer follows them from file to file.
#[test]
fn the_ways_through_the_code_name_files_and_functions_that_are_there() {
    let files = source::all();
    let mut lost = Vec::new();
    for (page, most) in [("apiserver/README.md", 25), ("controllers/README.md", 15)] {
        let page = repository::read(page);
        let steps: Vec<Vec<&str>> = page
            .lines()
            .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>())
            .filter(|cells| cells.len() == 6 && cells[2].ends_with(".rs"))
            .collect();
        assert!(!steps.is_empty() && steps.len() <= most, "{} steps, of at most {most}", steps.len());
        for step in steps {
            let function = format!("fn {}", step[3]);
            let names =
                |line: &str| line.split_once(&function).is_some_and(|(_, rest)| rest.starts_with(['(', '<']));
            let is_there =
                |file: &repository::SourceFile| file.path == step[2] && file.text.lines().any(names);
            if !files.iter().any(is_there) {
                lost.push(format!("{}: {}", step[2], step[3]));
            }
        }
    }
    none(&lost, "say where that is done now");
}
