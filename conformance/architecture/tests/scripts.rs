//! Scripts run on a stranger's machine: one shell, and no error goes unseen. And no key is committed.

use drydock_architecture::{none, repository};

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
