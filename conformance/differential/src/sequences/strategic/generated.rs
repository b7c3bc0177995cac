//! Generated strategic merge patches: objects and patches by a generator, the same in every run
//! of a seed.
//!
//! Left out is what the host answers differently from time to time, because it walks Go's maps: a list that is both
//! patched and deleted from; and what it panics over: lists and maps in place of keys.

use serde_json::{Map, Value, json};

use crate::area::Area::StrategicMergePatch;
use crate::sequence::{Sequence, object};
use crate::sequences::generator::Generator;
use crate::target::{ACCOUNT, BUDGET};

/// Sequences of each kind, and patches in each.
const SEQUENCES: u64 = 20;
const PATCHES: usize = 5;

pub(super) fn all(seed: u64) -> Vec<Sequence> {
    let accounts = (0..SEQUENCES)
        .map(|number| sequence(Generator::new(seed, number + 1), number, "an account", account));
    let budgets =
        (0..SEQUENCES).map(|number| sequence(Generator::new(seed, number + 1), number, "a budget", budget));
    accounts.chain(budgets).collect()
}

/// Makes the next patch.
type Patcher = fn(&mut Generator) -> Value;

fn sequence(
    mut generator: Generator,
    number: u64,
    what: &str,
    make: fn(&mut Generator) -> (Sequence, Patcher),
) -> Sequence {
    let (mut sequence, patch) = make(&mut generator);
    sequence.name = format!("generated strategic patches of {what}, {number}");
    for _ in 0..PATCHES {
        sequence = sequence.strategic_patch("x", patch(&mut generator));
        if generator.one_in(4) {
            sequence = sequence.query("fieldValidation=Strict");
        }
    }
    sequence
}

fn account(generator: &mut Generator) -> (Sequence, Patcher) {
    let secrets: Vec<Value> = generator.some(&NAMES).iter().map(|name| json!({"name": name})).collect();
    let body = json!({"metadata": {"finalizers": generator.some(&FINALIZERS)}, "secrets": secrets, "imagePullSecrets": secrets});
    (Sequence::new(StrategicMergePatch, ACCOUNT, "").post(object("x", body)), |generator| {
        let mut patch = Map::new();
        merged_list(generator, &mut patch, "secrets", "name", &NAMES);
        if generator.one_in(3) {
            patch.insert("imagePullSecrets".into(), items(generator, "name", &NAMES));
        }
        if generator.one_in(2) {
            patch.insert("metadata".into(), metadata(generator));
        }
        odd(generator, &mut patch);
        patch.into()
    })
}

fn budget(generator: &mut Generator) -> (Sequence, Patcher) {
    let labels: Map<String, Value> =
        generator.some(&NAMES).iter().map(|n| ((*n).to_owned(), json!("v"))).collect();
    let body = json!({"metadata": {"finalizers": generator.some(&FINALIZERS), "labels": labels},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}});
    (Sequence::new(StrategicMergePatch, BUDGET, "").post(object("x", body)), |generator| {
        let mut patch = Map::new();
        if generator.one_in(2) {
            patch.insert("metadata".into(), metadata(generator));
        }
        let mut spec = Map::new();
        if generator.one_in(2) {
            spec.insert("selector".into(), json!({"matchLabels": texts(generator)}));
        }
        if generator.one_in(2) {
            let amounts = [json!(null), json!(2), json!("20%"), json!(3.0), json!(-1), json!("x"), json!([])];
            // Never sets both, because our reference kind does not check that.
            let (set, other) =
                *generator.one(&[("maxUnavailable", "minAvailable"), ("minAvailable", "maxUnavailable")]);
            spec.insert(set.into(), generator.one(&amounts).clone());
            spec.insert(other.into(), Value::Null);
        }
        odd(generator, &mut spec);
        patch.insert("spec".into(), spec.into());
        patch.into()
    })
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const FINALIZERS: [&str; 4] = ["x.io/a", "x.io/b", "x.io/c", "x.io/d"];

fn metadata(generator: &mut Generator) -> Value {
    let mut metadata = Map::new();
    if generator.one_in(2) {
        metadata.insert("labels".into(), texts(generator));
    }
    if generator.one_in(3) {
        metadata.insert("$deleteFromPrimitiveList/finalizers".into(), json!(generator.some(&FINALIZERS)));
    } else {
        let added = generator.some(&FINALIZERS);
        if generator.one_in(2) {
            let others = generator.some(&FINALIZERS).into_iter().filter(|f| !added.contains(f));
            let order: Vec<&str> = others.chain(added.iter().copied()).collect();
            metadata.insert("$setElementOrder/finalizers".into(), json!(order));
        }
        metadata.insert("finalizers".into(), json!(added));
    }
    if generator.one_in(8) {
        metadata.insert("$retainKeys".into(), json!(["name", "labels", "finalizers"]));
    }
    metadata.into()
}

/// A map of texts, some of them null, perhaps with a directive.
fn texts(generator: &mut Generator) -> Value {
    let mut texts = Map::new();
    for name in generator.some(&NAMES) {
        let value = if generator.one_in(3) { Value::Null } else { json!(generator.one(&NAMES)) };
        texts.insert(name.to_owned(), value);
    }
    if generator.one_in(6) {
        texts.insert("$patch".into(), json!(generator.one(&["replace", "delete", "merge"])));
    }
    texts.into()
}

/// A list that merges by a key, its items in order or not.
fn merged_list(
    generator: &mut Generator,
    patch: &mut Map<String, Value>,
    field: &str,
    key: &str,
    values: &[&'static str],
) {
    let items = items(generator, key, values);
    if generator.one_in(2) {
        let known: Vec<Value> =
            items.as_array().into_iter().flatten().filter_map(|i| i.get(key).cloned()).collect();
        let mut order: Vec<Value> = generator
            .some(values)
            .into_iter()
            .map(Value::from)
            .filter(|value| !known.contains(value))
            .collect();
        order.extend(known);
        if generator.one_in(8) {
            order.reverse();
        }
        let order: Vec<Value> = order.into_iter().map(|value| json!({key: value})).collect();
        patch.insert(format!("$setElementOrder/{field}"), order.into());
    }
    if !generator.one_in(5) {
        patch.insert(field.to_owned(), items);
    }
}

fn items(generator: &mut Generator, key: &str, values: &[&'static str]) -> Value {
    let mut items = Vec::new();
    for value in generator.some(values) {
        items.push(match generator.below(10) {
            0 | 1 => json!({key: value, "$patch": "delete"}),
            2 => json!({"$patch": "replace"}),
            3 if generator.one_in(3) => json!({"namespace": value}),
            _ => json!({key: value}),
        });
    }
    items.into()
}

/// Now and then something that is not in the schema, or of another type.
fn odd(generator: &mut Generator, patch: &mut Map<String, Value>) {
    let keys =
        ["odd", "$setElementOrder/odd", "$setElementOrderodd", "$deleteFromPrimitiveListodd", "$retainKeys"];
    let values = [json!(1), json!("x"), json!(["a"]), json!({"a": 1}), json!(null)];
    if generator.one_in(6) {
        patch.insert((*generator.one(&keys)).to_owned(), generator.one(&values).clone());
    }
}
