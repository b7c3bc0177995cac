//! What the suite prints.

use std::collections::BTreeMap;

use crate::area::Area;
use crate::compare::Mismatch;
use crate::differences::DIFFERENCES;
use crate::injected::InjectedDifference;
use crate::request::SentBody;
use crate::sequence::{Sequence, SequenceStep};
use crate::setup::{ServerRoute, ServerSetup};
use crate::suite::SequenceOutcome;

/// Prints every difference, and returns whether all is as it should be.
pub fn report(outcomes: &[SequenceOutcome<'_>]) -> bool {
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_equal()) {
        print_outcome(outcome);
    }
    let bad = outcomes.iter().filter(|outcome| !outcome.is_equal()).count();
    let again: usize = outcomes.iter().map(|outcome| outcome.again).sum();
    println!("{} sequences, {bad} of them with differences; {again} runs were repeated", outcomes.len());
    bad == 0
}

/// Prints sequence, answer and field of each difference.
pub fn print_fields(outcomes: &[SequenceOutcome<'_>]) {
    for outcome in outcomes {
        for (route, Mismatch { answer, field, .. }) in &outcome.found {
            println!("{route:?}\t{}\t{answer}\t{field}", outcome.sequence.title());
        }
    }
}

fn print_outcome(outcome: &SequenceOutcome<'_>) {
    println!("\n{}", outcome.sequence.title());
    if let Some(failure) = &outcome.failure {
        println!("  could not be run: {failure}");
    }
    if outcome.sequence.name.starts_with("generated") {
        print_requests(outcome.sequence);
    }
    for (at, (route, mismatch)) in outcome.found.iter().enumerate() {
        // What differs at our port differs through the aggregator too, as a rule.
        let known = outcome.found[..at].iter().any(|(_, known)| known == mismatch);
        if known || follows_from_the_code(&outcome.found, *route, mismatch) {
            continue;
        }
        let routes = outcome.found.iter().filter(|(_, other)| other == mismatch).map(|(route, _)| route);
        let routes = if routes.count() > 1 { String::new() } else { format!(" ({route:?} alone)") };
        println!("  answer {}{routes}: {}", mismatch.answer, title(outcome.sequence, mismatch.answer));
        print!("{mismatch}");
    }
}

/// One answer is a refusal and the other is not: its code and message are enough.
fn follows_from_the_code(found: &[(ServerRoute, Mismatch)], route: ServerRoute, mismatch: &Mismatch) -> bool {
    let other_code =
        found.iter().any(|(d, m)| *d == route && m.answer == mismatch.answer && m.field == "code");
    other_code && !["code", "body.message"].contains(&mismatch.field.as_str())
}

/// Maximum number of characters of a body that are printed.
const BODY: usize = 1000;

/// What was sent, for generated sequences, which are in no file.
fn print_requests(sequence: &Sequence) {
    let asked = sequence.steps.iter().filter_map(|step| match step {
        SequenceStep::Ask(request) => Some(request),
        _ => None,
    });
    for (at, request) in asked.enumerate() {
        let SentBody::Text(text) = &request.body else { continue };
        println!("  sent {at}: {} {}", request.title(), text.chars().take(BODY).collect::<String>());
    }
}

fn step(sequence: &Sequence, answer: usize) -> Option<&SequenceStep> {
    sequence.steps.iter().filter(|step| !matches!(step, SequenceStep::Later)).nth(answer)
}

fn title(sequence: &Sequence, answer: usize) -> String {
    match step(sequence, answer) {
        Some(SequenceStep::Ask(request) | SequenceStep::Open(request)) => request.title(),
        Some(_) => "events".into(),
        None => String::new(),
    }
}

/// Prints entries of the list that matched no answer, and returns whether there are none.
pub fn all_differences_occur(outcomes: &[SequenceOutcome<'_>]) -> bool {
    let mut all = true;
    for entry in DIFFERENCES.iter() {
        let seen = entry.routes.iter().filter(|_| outcomes.iter().any(|o| o.seen.contains(&entry))).count();
        if seen == 0 {
            println!("no longer occurs: {} answer {} {}", entry.sequence, entry.answer, entry.field);
            all = false;
        }
    }
    println!("{} deliberate differences", DIFFERENCES.len());
    all
}

/// Prints how many sequences each area has, and returns whether they are enough.
pub fn enough(sequences: &[Sequence]) -> bool {
    let mut counts: BTreeMap<Area, usize> = BTreeMap::new();
    for sequence in sequences {
        *counts.entry(sequence.area).or_default() += 1;
    }
    let mut enough = true;
    for (area, least) in Area::MINIMA {
        let count = counts.get(&area).copied().unwrap_or_default();
        let verdict = if count < least { "  TOO FEW" } else { "" };
        println!("{area:<24}{count:>5} sequences, at least {least}{verdict}");
        enough &= count >= least;
    }
    enough
}

/// Puts each fault into what we answered, and returns whether each was found wherever it was put.
pub fn finds_faults(setup: &ServerSetup, outcomes: &[SequenceOutcome<'_>]) -> bool {
    let mut all = true;
    for injected in [
        InjectedDifference::WrongStatus,
        InjectedDifference::LostManagedFields,
        InjectedDifference::SwappedEvent,
    ] {
        let found: Vec<bool> = outcomes.iter().filter_map(|o| o.would_find(setup, injected)).collect();
        let missed = found.iter().filter(|found| !**found).count();
        println!("{injected:?}: put into {} sequences, not found in {missed}", found.len());
        all &= missed == 0 && !found.is_empty();
    }
    all
}
