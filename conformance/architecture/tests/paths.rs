//! Files that comments and documents name exist.

use drydock_architecture::{none, repository, source};

const README_FILES: [&str; 7] = [
    "README.md",
    "apiserver/README.md",
    "apiserver/api/kep-4563.md",
    "controllers/README.md",
    "controllers/interceptor-runtime/README.md",
    "controllers/surge/README.md",
    "deploy/README.md",
];
/// Folders at the top, by which a path is known.
const TOP: [&str; 5] = ["apiserver/", "controllers/", "proto/", "deploy/", "conformance/"];

#[test]
fn a_path_in_a_readme_is_there() {
    let (root, sources) = (repository::root(), source::all());
    let is_source = |name: &str| sources.iter().any(|file| file.path.ends_with(&format!("/{name}")));
    let mut missing = Vec::new();
    for readme in README_FILES {
        let text = std::fs::read_to_string(root.join(readme)).unwrap_or_default();
        assert!(!text.is_empty(), "{readme} cannot be read");
        // Every other piece stands between backticks.
        let quoted = text.split('`').skip(1).step_by(2);
        let absent = quoted.filter(|text| match TOP.iter().any(|top| text.starts_with(top)) {
            true => {
                text.chars().all(is_of_path)
                    && !root.join(text).exists()
                    && !text.starts_with("conformance/out")
            }
            false => is_source_path(text) && !is_source(text),
        });
        missing.extend(absent.map(|path| format!("{readme}: {path}")));
    }
    none(&missing, "name the file that is there now");
}

/// A comment names a file by the end of its path. Files of upstream are named with their address or repository.
#[test]
fn a_source_file_in_a_comment_is_there() {
    let sources = source::all();
    let is_there =
        |name: &str| sources.iter().any(|file| file.path == name || file.path.ends_with(&format!("/{name}")));
    let mut missing = Vec::new();
    for file in &sources {
        for line in file.text.lines().map(str::trim).filter(|line| line.starts_with("//")) {
            let quoted = line.split('`').skip(1).step_by(2);
            let absent = quoted.filter(|name| is_source_path(name) && !is_there(name));
            missing.extend(absent.map(|name| format!("{}: {name}", file.path)));
        }
    }
    none(&missing, "name the file that is there now");
}

/// Whether this is a folder and a Rust file in it.
fn is_source_path(text: &str) -> bool {
    text.contains('/') && text.ends_with(".rs") && text.chars().all(is_of_path)
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-".contains(c)
}
