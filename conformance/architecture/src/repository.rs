//! The files of the repository, whether git tracks them or not.

use std::fs;
use std::path::{Path, PathBuf};

/// Built, fetched or hidden: none of it is ours.
const LEFT_OUT: [&str; 3] = ["target", "node_modules", "out"];

/// A text file of ours.
pub struct SourceFile {
    /// Path from the root, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// One file by its path from the root; empty if it is not there.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Every file with this ending, by path.
pub fn files(ending: &str) -> Vec<SourceFile> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &mut |path| {
        let name = path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        if name.ends_with(ending)
            && let Ok(text) = fs::read_to_string(path)
        {
            found.push(SourceFile { path: name, text });
        }
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || LEFT_OUT.contains(&name.as_ref()) || path.is_symlink() {
            continue;
        }
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}
