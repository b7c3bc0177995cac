//! Generated writes: objects, merge patches, JSON patches and applies of several managers by a generator, the same
//! in every run of a seed.

mod objects;
mod operations;
mod spoiled;

use serde_json::Value;

use self::spoiled::spoiled;
use super::generator::Generator;
use crate::area::Area;
use crate::request::SequenceRequest;
use crate::sequence::{Sequence, SequenceStep, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP, TargetKind};

/// Sequences of each sort for each kind, and writes in each.
const SEQUENCES: u64 = 12;
const WRITES: usize = 6;

/// Makes a part of an object of a kind with a generator.
type Maker = fn(&mut Generator, Nulls) -> Value;

/// Whether nulls, which take away, are among the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Some,
    None,
}

const KINDS: [(TargetKind, Maker); 3] =
    [(BUDGET, objects::budget), (ACCOUNT, objects::account), (CONFIG_MAP, objects::config_map)];

pub(super) fn all(seed: u64) -> Vec<Sequence> {
    let sorts: [(Area, WriteStep); 3] =
        [(Area::MergePatch, merge_patch), (Area::JsonPatch, json_patch), (Area::Apply, apply)];
    let mut all = Vec::new();
    for (at, (area, write)) in (1..).zip(sorts) {
        for (kind, (target, make)) in (1..).zip(KINDS) {
            for number in 0..SEQUENCES {
                let generator = Generator::new(seed, at << 32 | kind << 16 | number);
                all.push(sequence(generator, area, target, make, write, number));
            }
        }
    }
    all
}

/// Adds a write to a sequence.
type WriteStep = fn(Sequence, &mut Generator, Maker) -> Sequence;

fn sequence(
    mut generator: Generator,
    area: Area,
    target: TargetKind,
    make: Maker,
    write: WriteStep,
    number: u64,
) -> Sequence {
    let generator = &mut generator;
    let name = format!("generated writes of a {}, {number}", target.kind);
    let first = object("x", make(generator, Nulls::None));
    let mut sequence = Sequence::new(area, target, name);
    sequence = if generator.one_in(2) { sequence.post(first) } else { sequence.apply("x", "one", first) };
    for _ in 0..WRITES {
        if generator.one_in(8) {
            sequence = sequence.later();
        }
        sequence = write(sequence, generator, make);
        sequence = sometimes(sequence, generator, "dryRun=All", 10);
        sequence = sometimes(sequence, generator, "fieldValidation=Strict", 6);
    }
    sequence.get("x")
}

fn sometimes(sequence: Sequence, generator: &mut Generator, query: &str, chances: u64) -> Sequence {
    let written = matches!(sequence.steps.last(), Some(SequenceStep::Ask(SequenceRequest { .. })));
    if generator.one_in(chances) && written { sequence.query(query) } else { sequence }
}

fn merge_patch(sequence: Sequence, generator: &mut Generator, make: Maker) -> Sequence {
    merge_patch_with(sequence, generator, make, Nulls::Some)
}

fn merge_patch_with(sequence: Sequence, generator: &mut Generator, make: Maker, nulls: Nulls) -> Sequence {
    let patch = make(generator, nulls);
    let patch = spoiled(generator, patch);
    let name = path(generator, &sequence, &patch);
    sequence.merge_patch(name, patch)
}

fn json_patch(sequence: Sequence, generator: &mut Generator, make: Maker) -> Sequence {
    let object = make(generator, Nulls::None);
    let patch = operations::operations(generator, &object);
    sequence.json_patch("x", patch)
}

/// Mostly applies; updates come between.
fn apply(sequence: Sequence, generator: &mut Generator, make: Maker) -> Sequence {
    let manager = *generator.one(&["one", "two", "three"]);
    if generator.one_in(5) {
        return merge_patch_with(sequence, generator, make, Nulls::None)
            .query(&format!("fieldManager={manager}"));
    }
    let configuration = make(generator, Nulls::None);
    let configuration = spoiled(generator, configuration);
    let name = path(generator, &sequence, &configuration);
    if generator.one_in(3) {
        sequence.apply_by_force(name, manager, configuration)
    } else {
        sequence.apply(name, manager, configuration)
    }
}

/// The object's path, or its status'.
fn path(generator: &mut Generator, sequence: &Sequence, written: &Value) -> &'static str {
    let status = sequence.target == BUDGET && written.get("status").is_some();
    if status && generator.one_in(2) { "x/status" } else { "x" }
}
