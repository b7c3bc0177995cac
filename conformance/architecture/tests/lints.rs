//! Each ban has its reason beside it, no crate escapes the bans, and each exception states its reason.

use drydock_architecture::{manifest, none, repository, source};

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for member in manifest::crates() {
        let inherits = manifest::section(&member.text, "lints").any(|line| line == "workspace = true");
        assert!(inherits, "{}/Cargo.toml: has no [lints] workspace = true", member.folder);
    }
}

#[test]
fn every_ban_has_its_reason_beside_it() {
    let cargo = repository::read("Cargo.toml");
    let clippy = repository::read("clippy.toml");
    let lists = ["workspace.lints.rust", "workspace.lints.clippy"];
    let lints = lists.iter().flat_map(|name| bare(manifest::section(&cargo, name)));
    let hazards = clippy.lines().filter(|line| line.contains("path =") && !line.contains("reason ="));
    let bare: Vec<String> = lints.chain(bare(clippy.lines())).chain(hazards).map(str::to_owned).collect();
    none(&bare, "say in a comment above why it is banned");
}

#[test]
fn every_exception_has_its_reason_beside_it() {
    let mut found = Vec::new();
    for file in source::all().iter().filter(|file| !source::is_test(file)) {
        let code = source::code(file);
        let bare = code.iter().enumerate().filter(|(at, line)| {
            let before = at.checked_sub(1).map_or("", |n| code[n]).trim_start();
            let excepts =
                ["#[allow(", "#![allow(", "#[expect("].iter().any(|a| line.trim_start().starts_with(a));
            excepts && !line.contains("reason =") && !before.starts_with("//")
        });
        found.extend(bare.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
    }
    none(&found, "say why, in `reason = \"...\"` or in a comment above");
}

/// Settings that follow neither a comment nor another setting of the same comment.
fn bare<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut reasoned = false;
    let mut found = Vec::new();
    for line in lines {
        match line.trim_start() {
            comment if comment.starts_with('#') => reasoned = true,
            "" => reasoned = false,
            setting if line.starts_with(|c: char| c.is_ascii_lowercase()) && !reasoned => found.push(setting),
            _ => {}
        }
    }
    found
}
