//! Every seed, and every input that once showed a fault, through its target.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use drydock_fuzz::{TARGETS, target};

fn folders() -> Vec<(String, Vec<Vec<u8>>)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let folder = |entry: fs::DirEntry| {
        let files = fs::read_dir(entry.path()).unwrap();
        let inputs = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        (entry.file_name().into_string().unwrap(), inputs)
    };
    fs::read_dir(seeds).unwrap().map(|entry| folder(entry.unwrap())).collect()
}

#[test]
fn every_target_has_seeds_and_every_seed_a_target() {
    let folders = folders();
    let mut with_seeds: Vec<&str> =
        folders.iter().filter(|(_, seeds)| !seeds.is_empty()).map(|(name, _)| name.as_str()).collect();
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    with_seeds.sort_unstable();
    targets.sort_unstable();
    assert_eq!(with_seeds, targets);
}

#[test]
fn no_seed_shows_a_fault() {
    for (name, seeds) in folders() {
        let target = target(&name).unwrap_or_else(|| panic!("seeds/{name}: no such target"));
        seeds.iter().for_each(|seed| (target.run)(seed));
    }
}
