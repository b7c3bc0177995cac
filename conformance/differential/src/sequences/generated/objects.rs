//! Parts of objects by a generator.

use serde_json::{Map, Value, json};

use super::Nulls;
use crate::sequences::generator::Generator;

const NAMES: [&str; 5] = ["a", "b", "c", "d.e/f", "g-h"];
const FINALIZERS: [&str; 4] = ["x.io/a", "x.io/b", "x.io/c", "x.io/d"];

/// Makes a part of a PodDisruptionBudget, never with both amounts, because our reference kind does not
/// check that.
pub(super) fn budget(generator: &mut Generator, nulls: Nulls) -> Value {
    let mut spec = Map::new();
    if generator.one_in(2) {
        let (set, other) =
            *generator.one(&[("maxUnavailable", "minAvailable"), ("minAvailable", "maxUnavailable")]);
        let amounts = [json!(0), json!(1), json!(2), json!("20%"), json!(-1), json!("x")];
        if nulls == Nulls::Some {
            spec.insert(set.into(), generator.one(&amounts).clone());
            spec.insert(other.into(), Value::Null);
        } else {
            spec.insert("minAvailable".into(), generator.one(&amounts).clone());
        }
    }
    if generator.one_in(2) {
        spec.insert("selector".into(), selector(generator, nulls));
    }
    let mut whole = metadata(generator, nulls);
    if generator.one_in(4) {
        whole.insert("status".into(), status(generator));
    }
    whole.insert("spec".into(), spec.into());
    whole.into()
}

fn selector(generator: &mut Generator, nulls: Nulls) -> Value {
    let mut selector = Map::new();
    if !generator.one_in(3) {
        selector.insert("matchLabels".into(), texts(generator, nulls));
    }
    if generator.one_in(3) {
        let operators = ["In", "NotIn", "Exists", "Odd"];
        let expression = json!({"key": generator.one(&NAMES), "operator": generator.one(&operators), "values": generator.some(&["v", "w"])});
        selector.insert("matchExpressions".into(), json!([expression]));
    }
    selector.into()
}

fn status(generator: &mut Generator) -> Value {
    let types = generator.some(&["A", "B", "C"]);
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let conditions: Vec<Value> = types.into_iter().map(condition).collect();
    json!({"currentHealthy": generator.below(3), "conditions": conditions})
}

/// Makes a part of a ServiceAccount.
pub(super) fn account(generator: &mut Generator, nulls: Nulls) -> Value {
    let mut whole = metadata(generator, nulls);
    for list in ["secrets", "imagePullSecrets"] {
        if generator.one_in(2) {
            whole.insert(list.into(), items(generator));
        }
    }
    if generator.one_in(3) {
        whole.insert("automountServiceAccountToken".into(), json!(generator.one_in(2)));
    }
    whole.into()
}

fn items(generator: &mut Generator) -> Value {
    let items: Vec<Value> = generator.some(&NAMES).into_iter().map(|name| json!({"name": name})).collect();
    items.into()
}

/// Makes a part of a ConfigMap.
pub(super) fn config_map(generator: &mut Generator, nulls: Nulls) -> Value {
    let mut whole = metadata(generator, nulls);
    if !generator.one_in(3) {
        whole.insert("data".into(), texts(generator, nulls));
    }
    if generator.one_in(3) {
        let bytes = ["AAEC", "", "/w=="];
        let binary = generator
            .some(&["x", "y"])
            .into_iter()
            .map(|name| (name.to_owned(), json!(generator.one(&bytes))));
        whole.insert("binaryData".into(), binary.collect::<Map<_, _>>().into());
    }
    whole.into()
}

fn metadata(generator: &mut Generator, nulls: Nulls) -> Map<String, Value> {
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if generator.one_in(2) {
            metadata.insert(field.into(), texts(generator, nulls));
        }
    }
    if generator.one_in(3) {
        metadata.insert("finalizers".into(), json!(generator.some(&FINALIZERS)));
    }
    if generator.one_in(5) {
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid});
        let owners: Vec<Value> = generator.some(&["u1", "u2", "u3"]).into_iter().map(owner).collect();
        metadata.insert("ownerReferences".into(), owners.into());
    }
    Map::from_iter([("metadata".to_owned(), metadata.into())])
}

/// A map of texts; now and then null stands for one of them or for all.
fn texts(generator: &mut Generator, nulls: Nulls) -> Value {
    if nulls == Nulls::Some && generator.one_in(10) {
        return Value::Null;
    }
    let mut texts = Map::new();
    for name in generator.some(&NAMES) {
        let value = match generator.below(20) {
            0..=6 if nulls == Nulls::Some => Value::Null,
            _ => json!(generator.one(&["", "a", "b", "c"])),
        };
        texts.insert(name.to_owned(), value);
    }
    texts.into()
}
