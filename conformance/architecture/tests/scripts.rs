//! Scripts run on a stranger's machine: one shell, no error goes unseen, and no text of the cluster is taken apart. And no key
//! is committed.

use drydock_architecture::{none, repository, shell};

/// A script that asks the cluster, prints names and times that the API server has checked, and free texts by `printf "%q"`
/// alone: a line break in one of these is no line break in what the script reads.
const QUOTES: &str = "controllers/interceptor-runtime/examples/checkpoint.sh";

#[test]
fn every_script_is_bash_and_stops_at_the_first_error() {
    let mut found = Vec::new();
    for file in repository::files("").iter().filter(|file| file.text.starts_with("#!/")) {
        let is_bash = file.text.starts_with("#!/usr/bin/env bash\n");
        if !is_bash || !file.text.lines().any(|line| line == "set -euo pipefail") {
            found.push(file.path.clone());
        }
    }
    none(&found, "begin with #!/usr/bin/env bash, and set -euo pipefail before the first command");
}

#[test]
fn every_script_says_what_it_is_for() {
    let is_silent = |text: &str| !text.lines().nth(1).is_some_and(|line| line.starts_with("# "));
    let scripts = repository::files("").into_iter().filter(|file| file.text.starts_with("#!/"));
    let found: Vec<String> = scripts.filter(|f| is_silent(&f.text)).map(|f| f.path).collect();
    none(&found, "say in a comment below the first line what it is for: --help prints it");
}

/// The script that removed Drydock ran a tenant's annotation as the admin.
#[test]
fn no_script_takes_a_text_of_the_cluster_apart() {
    let is_script =
        |file: &repository::SourceFile| file.text.starts_with("#!/") || file.path.ends_with(".sh");
    let scripts = repository::files("").into_iter().filter(is_script);
    let found = scripts.filter(|file| file.path != QUOTES).flat_map(|file| {
        let lines = shell::dissections(&file.text);
        lines.into_iter().map(move |line| format!("{}: {line}", file.path)).collect::<Vec<_>>()
    });
    let advice = "do this in a program, with JSON from the API server to the decision";
    none(&found.collect::<Vec<_>>(), advice);
}

#[test]
fn the_script_that_quotes_texts_prints_one_unquoted() {
    let script = repository::read(QUOTES);
    assert!(!shell::dissections(&script).is_empty(), "{QUOTES} is no exception any more: take it off");
    let templates = script.split("{{").skip(1).filter_map(|action| action.split("}}").next());
    let is_text = |action: &&str| ["message", "annotations"].iter().any(|free| action.contains(free));
    let is_safe = |action: &str| action.starts_with("printf \"%q\"") || action.starts_with("if ");
    let found: Vec<String> =
        templates.filter(is_text).filter(|action| !is_safe(action)).map(str::to_owned).collect();
    none(&found, "print it by printf \"%q\": whoever may write it chooses what the script reads");
}

/// `cd ""` succeeds and stays where it is: had no folder been made, the work tree would have been taken for it, and removed.
#[test]
fn no_script_goes_to_a_folder_before_it_is_known_to_be_made() {
    let mut found = Vec::new();
    for file in repository::files("") {
        if !file.text.starts_with("#!/") && !file.path.ends_with(".sh") {
            continue;
        }
        for line in file.text.lines() {
            if line.find("$(mktemp").is_some_and(|made| line[..made].contains("cd ")) {
                found.push(format!("{}: {line}", file.path));
            }
        }
    }
    none(&found, "assign the path that mktemp prints first, on a line of its own");
}

/// A server that is started in the repository makes its keys there.
#[test]
fn no_private_key_is_committed() {
    let heading = ["PRIVATE", " KEY-----"].concat();
    let ignored = repository::read(".gitignore");
    let is_ignored = |path: &str| ignored.lines().any(|line| path.starts_with(line.trim_start_matches('/')));
    let keys = repository::files("").into_iter().filter(|file| file.text.contains(&heading));
    let found: Vec<String> = keys.map(|file| file.path).filter(|path| !is_ignored(path)).collect();
    none(&found, "remove the key, and replace whatever it protected");
}
