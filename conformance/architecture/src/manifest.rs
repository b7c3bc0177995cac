//! The parts of a Cargo.toml that the rules read.

use crate::repository::{self, SourceFile};

/// One crate of the workspace.
pub struct Crate {
    /// Its folder from the root.
    pub folder: String,
    /// Its name.
    pub name: String,
    /// Names in `[dependencies]`.
    pub dependencies: Vec<String>,
    /// Names in `[dev-dependencies]` and `[build-dependencies]`.
    pub other_dependencies: Vec<String>,
    /// The whole manifest.
    pub text: String,
}

/// Every crate.
pub fn crates() -> Vec<Crate> {
    let manifests = repository::files("/Cargo.toml");
    manifests.into_iter().filter(|file| file.text.contains("[package]")).map(read).collect()
}

fn read(file: SourceFile) -> Crate {
    let keys = |section| keys(&file.text, section);
    let mut other = keys("dev-dependencies");
    other.extend(keys("build-dependencies"));
    Crate {
        folder: file.path.trim_end_matches("/Cargo.toml").to_owned(),
        name: value(&file.text, "name").unwrap_or_default(),
        dependencies: keys("dependencies"),
        other_dependencies: other,
        text: file.text,
    }
}

/// The lines of a section, without its heading.
pub fn section<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let heading = format!("[{name}]");
    text.lines().skip_while(move |line| *line != heading).skip(1).take_while(|line| !line.starts_with('['))
}

/// The keys of a section: `serde.workspace = true` and `serde = "1"` are both `serde`.
pub fn keys(text: &str, name: &str) -> Vec<String> {
    let is_key = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let key = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    section(text, name).filter(is_key).map(key).collect()
}

fn value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = ")))?;
    line.split('"').nth(1).map(str::to_owned)
}
