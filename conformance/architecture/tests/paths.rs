//! Files that comments and documents name exist.

use drydock_architecture::{none, repository, source};

const README_FILES: [&str; 4] =
    ["README.md", "apiserver/README.md", "controllers/README.md", "deploy/README.md"];
/// Folders at the top, by which a path is known.
const TOP: [&str; 5] = ["apiserver/", "controllers/", "proto/", "deploy/", "conformance/"];

#[test]
fn a_path_in_a_readme_is_there() {
    let root = repository::root();
    let mut missing = Vec::new();
    for readme in README_FILES {
        let text = std::fs::read_to_string(root.join(readme)).unwrap_or_default();
        assert!(!text.is_empty(), "{readme} cannot be read");
        // Every other piece stands between backticks.
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|text| {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            TOP.iter().any(|top| text.starts_with(top)) && text.chars().all(is_path)
        });
        let absent = paths.filter(|path| !root.join(path).exists() && !path.starts_with("conformance/out"));
        missing.extend(absent.map(|path| format!("{readme}: {path}")));
    }
    none(&missing, "name the file that is there now");
}

/// Documents of upstream are named with their address or folder.
#[test]
fn a_document_in_a_comment_is_there() {
    let gone = ["design/", "docs/", "wire.md", "api.md", "controllers.md", "storage.md"];
    let mut found = Vec::new();
    for file in source::all().iter().filter(|file| !file.path.ends_with("tests/paths.rs")) {
        let comments = file.text.lines().filter(|line| line.trim_start().starts_with("//"));
        let names = |line: &&str| gone.iter().any(|name| line.contains(&format!(" {name}")));
        found.extend(comments.filter(names).map(|line| format!("{}: {}", file.path, line.trim())));
    }
    none(&found, "say what it says, or name upstream's file");
}
