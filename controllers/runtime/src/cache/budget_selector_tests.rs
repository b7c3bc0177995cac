//! What a packed selector selects, and how much it takes.

use drydock_api::metav1::LabelSelectorRequirement;

use super::*;

const OPERATORS: [&str; 5] = ["In", "NotIn", "Exists", "DoesNotExist", "Like"];

/// Texts drawn from the bits of a number, which is used up.
fn draw(state: &mut u64, most: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % most
}

fn text(state: &mut u64) -> String {
    ["", "a", "b", "ab", "b\0a"][usize::try_from(draw(state, 5)).unwrap_or_default()].to_owned()
}

fn selector(state: &mut u64) -> LabelSelector {
    let match_labels = (0..draw(state, 3)).map(|_| (text(state), text(state))).collect();
    let requirement = |state: &mut u64| LabelSelectorRequirement {
        key: text(state),
        operator: OPERATORS[usize::try_from(draw(state, 5)).unwrap_or_default()].to_owned(),
        values: (0..draw(state, 4)).map(|_| text(state)).collect(),
    };
    let match_expressions = (0..draw(state, 3)).map(|_| requirement(state)).collect();
    LabelSelector { match_labels, match_expressions }
}

#[test]
fn a_packed_selector_decides_as_the_whole_one_wherever_it_is_known() {
    let (mut state, mut known) = (1, 0);
    for _ in 0..20_000 {
        let whole = selector(&mut state);
        let labels: BTreeMap<_, _> =
            (0..draw(&mut state, 4)).map(|_| (text(&mut state), text(&mut state))).collect();
        let packed = BudgetSelector::from(whole.clone());
        if let Some(matches) = packed.matches(&labels) {
            known += 1;
            assert_eq!(matches, whole.matches(&labels), "{whole:?} {labels:?}");
            if let Some(mut required) = packed.required_labels(usize::MAX).filter(|_| matches) {
                assert!(required.any(|(key, value)| labels.get(key).is_some_and(|it| it == value)));
            }
        }
    }
    assert!(known > 10_000, "only {known} selectors are known");
}

/// What is known of a part of the labels is never wrong, whatever the other labels are.
#[test]
fn what_a_selector_decides_from_a_part_of_the_labels_is_what_it_decides_from_all() {
    let (mut state, mut decided, mut open) = (7, 0, 0);
    for _ in 0..20_000 {
        let whole = selector(&mut state);
        let all: BTreeMap<_, _> =
            (0..draw(&mut state, 4)).map(|_| (text(&mut state), text(&mut state))).collect();
        let cut_from = text(&mut state);
        let labels = all.clone().into_iter().filter(|(key, _)| *key < cut_from).collect();
        let known = KnownLabels { cut_from: Some(&cut_from), ..KnownLabels::from(&labels) };
        let packed = BudgetSelector::from(whole.clone());
        for matches in [packed.matches(known), whole.matches_known(known)] {
            match matches {
                Some(matches) => assert_eq!(matches, whole.matches(&all), "{whole:?} {all:?} {cut_from}"),
                None => open += 1,
            }
            decided += usize::from(matches.is_some());
        }
    }
    assert!(decided > 10_000 && open > 5_000, "{decided} are decided, {open} open");
}

fn of_values(count: usize) -> LabelSelector {
    let values = (0..count).map(|at| format!("{at:x}")).collect();
    let requirement = LabelSelectorRequirement { key: "k".into(), operator: "In".into(), values };
    LabelSelector { match_expressions: vec![requirement], ..LabelSelector::default() }
}

/// 54 budgets with 480,000 values each, which a host takes, filled 1 GiB.
#[test]
fn the_largest_selector_that_a_host_takes_is_unknown_and_takes_nothing() {
    let huge = BudgetSelector::from(of_values(480_000));
    assert!(matches!(huge, BudgetSelector::Unknown { .. }));
    assert_eq!((huge.held_bytes(), huge.comparisons(), huge.matches(&BTreeMap::new())), (0, 0, None));
    assert_ne!(huge, BudgetSelector::from(of_values(480_001)), "a change is noticed");
    assert_eq!(huge, BudgetSelector::from(of_values(480_000)));
}

#[test]
fn what_a_known_selector_takes_is_bounded_whatever_it_is_made_of() {
    let many_requirements = |count: usize| {
        let requirement =
            LabelSelectorRequirement { key: "k".into(), operator: "Exists".into(), values: Vec::new() };
        LabelSelector { match_expressions: vec![requirement; count], ..LabelSelector::default() }
    };
    let many_labels = |count: usize| LabelSelector {
        match_labels: (0..count).map(|at| (format!("{at:x}"), String::new())).collect(),
        ..LabelSelector::default()
    };
    let shapes: [&dyn Fn(usize) -> LabelSelector; 3] = [&of_values, &many_requirements, &many_labels];
    for (at, shape) in shapes.iter().enumerate() {
        let largest = (1..6_000).step_by(50).map(|count| BudgetSelector::from(shape(count)));
        let largest = largest.filter(|it| matches!(it, BudgetSelector::Known(_))).map(|it| it.held_bytes());
        let most = largest.max().unwrap_or_default();
        assert!((MAX_SELECTOR_BYTES / 4..8 * MAX_SELECTOR_BYTES).contains(&most), "shape {at}: {most} bytes");
    }
}
