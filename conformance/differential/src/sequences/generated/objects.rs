//! Parts of objects by dice.

use serde_json::{Map, Value, json};

use super::Nulls;
use crate::sequences::dice::Dice;

const NAMES: [&str; 5] = ["a", "b", "c", "d.e/f", "g-h"];
const FINALIZERS: [&str; 4] = ["x.io/a", "x.io/b", "x.io/c", "x.io/d"];

/// Of a PodDisruptionBudget. Never with both of its amounts, which our reference kind does not look at.
pub(super) fn budget(dice: &mut Dice, nulls: Nulls) -> Value {
    let mut spec = Map::new();
    if dice.one_in(2) {
        let (set, other) =
            *dice.one(&[("maxUnavailable", "minAvailable"), ("minAvailable", "maxUnavailable")]);
        let amounts = [json!(0), json!(1), json!(2), json!("20%"), json!(-1), json!("x")];
        if nulls == Nulls::Some {
            spec.insert(set.into(), dice.one(&amounts).clone());
            spec.insert(other.into(), Value::Null);
        } else {
            spec.insert("minAvailable".into(), dice.one(&amounts).clone());
        }
    }
    if dice.one_in(2) {
        spec.insert("selector".into(), selector(dice, nulls));
    }
    let mut whole = metadata(dice, nulls);
    if dice.one_in(4) {
        whole.insert("status".into(), status(dice));
    }
    whole.insert("spec".into(), spec.into());
    whole.into()
}

fn selector(dice: &mut Dice, nulls: Nulls) -> Value {
    let mut selector = Map::new();
    if !dice.one_in(3) {
        selector.insert("matchLabels".into(), texts(dice, nulls));
    }
    if dice.one_in(3) {
        let operators = ["In", "NotIn", "Exists", "Odd"];
        let expression = json!({"key": dice.one(&NAMES), "operator": dice.one(&operators), "values": dice.some(&["v", "w"])});
        selector.insert("matchExpressions".into(), json!([expression]));
    }
    selector.into()
}

fn status(dice: &mut Dice) -> Value {
    let types = dice.some(&["A", "B", "C"]);
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let conditions: Vec<Value> = types.into_iter().map(condition).collect();
    json!({"currentHealthy": dice.below(3), "conditions": conditions})
}

/// Of a ServiceAccount.
pub(super) fn account(dice: &mut Dice, nulls: Nulls) -> Value {
    let mut whole = metadata(dice, nulls);
    for list in ["secrets", "imagePullSecrets"] {
        if dice.one_in(2) {
            whole.insert(list.into(), items(dice));
        }
    }
    if dice.one_in(3) {
        whole.insert("automountServiceAccountToken".into(), json!(dice.one_in(2)));
    }
    whole.into()
}

fn items(dice: &mut Dice) -> Value {
    let items: Vec<Value> = dice.some(&NAMES).into_iter().map(|name| json!({"name": name})).collect();
    items.into()
}

/// Of a ConfigMap.
pub(super) fn config_map(dice: &mut Dice, nulls: Nulls) -> Value {
    let mut whole = metadata(dice, nulls);
    if !dice.one_in(3) {
        whole.insert("data".into(), texts(dice, nulls));
    }
    if dice.one_in(3) {
        let bytes = ["AAEC", "", "/w=="];
        let binary =
            dice.some(&["x", "y"]).into_iter().map(|name| (name.to_owned(), json!(dice.one(&bytes))));
        whole.insert("binaryData".into(), binary.collect::<Map<_, _>>().into());
    }
    whole.into()
}

fn metadata(dice: &mut Dice, nulls: Nulls) -> Map<String, Value> {
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if dice.one_in(2) {
            metadata.insert(field.into(), texts(dice, nulls));
        }
    }
    if dice.one_in(3) {
        metadata.insert("finalizers".into(), json!(dice.some(&FINALIZERS)));
    }
    if dice.one_in(5) {
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid});
        let owners: Vec<Value> = dice.some(&["u1", "u2", "u3"]).into_iter().map(owner).collect();
        metadata.insert("ownerReferences".into(), owners.into());
    }
    Map::from_iter([("metadata".to_owned(), metadata.into())])
}

/// A map of texts; now and then null stands for one of them or for all.
fn texts(dice: &mut Dice, nulls: Nulls) -> Value {
    if nulls == Nulls::Some && dice.one_in(10) {
        return Value::Null;
    }
    let mut texts = Map::new();
    for name in dice.some(&NAMES) {
        let value = match dice.below(20) {
            0..=6 if nulls == Nulls::Some => Value::Null,
            _ => json!(dice.one(&["", "a", "b", "c"])),
        };
        texts.insert(name.to_owned(), value);
    }
    texts.into()
}
