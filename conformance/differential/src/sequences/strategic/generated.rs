//! Strategic merge patches that nobody thought of: objects and patches by dice, the same in every run
//! of a seed.
//!
//! Left out is what the host answers differently from time to time, because it walks Go's maps: a list that is both
//! patched and deleted from; and what it panics over: lists and maps in place of keys.

use serde_json::{Map, Value, json};

use crate::area::Area::StrategicMergePatch;
use crate::sequence::{Sequence, object};
use crate::sequences::dice::Dice;
use crate::target::{ACCOUNT, BUDGET};

/// Sequences of each kind, and patches in each.
const SEQUENCES: u64 = 20;
const PATCHES: usize = 5;

pub(super) fn all(seed: u64) -> Vec<Sequence> {
    let accounts =
        (0..SEQUENCES).map(|number| sequence(Dice::new(seed, number + 1), number, "an account", account));
    let budgets =
        (0..SEQUENCES).map(|number| sequence(Dice::new(seed, number + 1), number, "a budget", budget));
    accounts.chain(budgets).collect()
}

/// Makes the next patch.
type Patcher = fn(&mut Dice) -> Value;

fn sequence(mut dice: Dice, number: u64, what: &str, make: fn(&mut Dice) -> (Sequence, Patcher)) -> Sequence {
    let (mut sequence, patch) = make(&mut dice);
    sequence.name = format!("generated strategic patches of {what}, {number}");
    for _ in 0..PATCHES {
        sequence = sequence.strategic_patch("x", patch(&mut dice));
        if dice.one_in(4) {
            sequence = sequence.query("fieldValidation=Strict");
        }
    }
    sequence
}

fn account(dice: &mut Dice) -> (Sequence, Patcher) {
    let secrets: Vec<Value> = dice.some(&NAMES).iter().map(|name| json!({"name": name})).collect();
    let body = json!({"metadata": {"finalizers": dice.some(&FINALIZERS)}, "secrets": secrets, "imagePullSecrets": secrets});
    (Sequence::new(StrategicMergePatch, ACCOUNT, "").post(object("x", body)), |dice| {
        let mut patch = Map::new();
        merged_list(dice, &mut patch, "secrets", "name", &NAMES);
        if dice.one_in(3) {
            patch.insert("imagePullSecrets".into(), items(dice, "name", &NAMES));
        }
        if dice.one_in(2) {
            patch.insert("metadata".into(), metadata(dice));
        }
        odd(dice, &mut patch);
        patch.into()
    })
}

fn budget(dice: &mut Dice) -> (Sequence, Patcher) {
    let labels: Map<String, Value> =
        dice.some(&NAMES).iter().map(|n| ((*n).to_owned(), json!("v"))).collect();
    let body = json!({"metadata": {"finalizers": dice.some(&FINALIZERS), "labels": labels},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}});
    (Sequence::new(StrategicMergePatch, BUDGET, "").post(object("x", body)), |dice| {
        let mut patch = Map::new();
        if dice.one_in(2) {
            patch.insert("metadata".into(), metadata(dice));
        }
        let mut spec = Map::new();
        if dice.one_in(2) {
            spec.insert("selector".into(), json!({"matchLabels": texts(dice)}));
        }
        if dice.one_in(2) {
            let amounts = [json!(null), json!(2), json!("20%"), json!(3.0), json!(-1), json!("x"), json!([])];
            // Both are never set, which our reference kind does not look at.
            let (set, other) =
                *dice.one(&[("maxUnavailable", "minAvailable"), ("minAvailable", "maxUnavailable")]);
            spec.insert(set.into(), dice.one(&amounts).clone());
            spec.insert(other.into(), Value::Null);
        }
        odd(dice, &mut spec);
        patch.insert("spec".into(), spec.into());
        patch.into()
    })
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const FINALIZERS: [&str; 4] = ["x.io/a", "x.io/b", "x.io/c", "x.io/d"];

fn metadata(dice: &mut Dice) -> Value {
    let mut metadata = Map::new();
    if dice.one_in(2) {
        metadata.insert("labels".into(), texts(dice));
    }
    if dice.one_in(3) {
        metadata.insert("$deleteFromPrimitiveList/finalizers".into(), json!(dice.some(&FINALIZERS)));
    } else {
        let added = dice.some(&FINALIZERS);
        if dice.one_in(2) {
            let others = dice.some(&FINALIZERS).into_iter().filter(|f| !added.contains(f));
            let order: Vec<&str> = others.chain(added.iter().copied()).collect();
            metadata.insert("$setElementOrder/finalizers".into(), json!(order));
        }
        metadata.insert("finalizers".into(), json!(added));
    }
    if dice.one_in(8) {
        metadata.insert("$retainKeys".into(), json!(["name", "labels", "finalizers"]));
    }
    metadata.into()
}

/// A map of texts, some of them null, perhaps with a directive.
fn texts(dice: &mut Dice) -> Value {
    let mut texts = Map::new();
    for name in dice.some(&NAMES) {
        let value = if dice.one_in(3) { Value::Null } else { json!(dice.one(&NAMES)) };
        texts.insert(name.to_owned(), value);
    }
    if dice.one_in(6) {
        texts.insert("$patch".into(), json!(dice.one(&["replace", "delete", "merge"])));
    }
    texts.into()
}

/// A list that merges by a key, its items in order or not.
fn merged_list(
    dice: &mut Dice,
    patch: &mut Map<String, Value>,
    field: &str,
    key: &str,
    values: &[&'static str],
) {
    let items = items(dice, key, values);
    if dice.one_in(2) {
        let known: Vec<Value> =
            items.as_array().into_iter().flatten().filter_map(|i| i.get(key).cloned()).collect();
        let mut order: Vec<Value> =
            dice.some(values).into_iter().map(Value::from).filter(|value| !known.contains(value)).collect();
        order.extend(known);
        if dice.one_in(8) {
            order.reverse();
        }
        let order: Vec<Value> = order.into_iter().map(|value| json!({key: value})).collect();
        patch.insert(format!("$setElementOrder/{field}"), order.into());
    }
    if !dice.one_in(5) {
        patch.insert(field.to_owned(), items);
    }
}

fn items(dice: &mut Dice, key: &str, values: &[&'static str]) -> Value {
    let mut items = Vec::new();
    for value in dice.some(values) {
        items.push(match dice.below(10) {
            0 | 1 => json!({key: value, "$patch": "delete"}),
            2 => json!({"$patch": "replace"}),
            3 if dice.one_in(3) => json!({"namespace": value}),
            _ => json!({key: value}),
        });
    }
    items.into()
}

/// Now and then something that is not in the schema, or of another type.
fn odd(dice: &mut Dice, patch: &mut Map<String, Value>) {
    let keys =
        ["odd", "$setElementOrder/odd", "$setElementOrderodd", "$deleteFromPrimitiveListodd", "$retainKeys"];
    let values = [json!(1), json!("x"), json!(["a"]), json!({"a": 1}), json!(null)];
    if dice.one_in(6) {
        patch.insert((*dice.one(&keys)).to_owned(), dice.one(&values).clone());
    }
}
