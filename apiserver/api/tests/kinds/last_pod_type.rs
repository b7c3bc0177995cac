//! Rules for `spec.lastPodType`. The name of each test is the rule.

use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use serde_json::{Value, json};

use crate::maintenance::{create, kind, update};

/// A maintenance with defaults, as the server has it, and this last pod type. `None` gives an object that was stored
/// before the field existed.
fn up_to(last: Option<&str>, plan: Value) -> Object {
    let value = json!({
        "metadata": { "name": "m", "generation": 1 },
        "spec": { "nodeSelector": { "nodeSelectorTerms": [{}] }, "drainPlan": plan },
    });
    let Value::Object(map) = value else { panic!("not an object") };
    let mut object = Object::from(map);
    object.0["spec"].as_object_mut().unwrap().extend(last.map(|l| ("lastPodType".to_owned(), l.into())));
    kind().set_defaults(&mut object);
    if last.is_none() {
        object.0["spec"].as_object_mut().unwrap().remove("lastPodType");
    }
    object
}

#[test]
fn an_own_entry_of_a_type_after_the_last_is_refused() {
    let plan = json!([{ "podPriority": 1 }, { "podPriority": 1, "podType": "DaemonSet" }]);
    let words = |index: usize, last: &str, pod_type: &str| {
        format!(
            "spec.drainPlan[{index}].podType: Invalid value: \"{pod_type}\": comes after spec.lastPodType, {last}: this \
             maintenance does not drain such pods"
        )
    };
    assert_eq!(create(&up_to(Some("Default"), plan.clone())), [words(1, "Default", "DaemonSet")]);
    assert!(create(&up_to(Some("DaemonSet"), plan)).is_empty());
    let statics = json!([{ "podPriority": 1, "podType": "Static" }]);
    assert_eq!(create(&up_to(Some("DaemonSet"), statics.clone())), [words(0, "DaemonSet", "Static")]);
    assert!(create(&up_to(Some("Static"), statics)).is_empty());
    let words =
        r#"spec.lastPodType: Unsupported value: "Job": supported values: "Default", "DaemonSet", "Static""#;
    assert_eq!(create(&up_to(Some("Job"), json!([]))), [words]);
    assert_eq!(update(&up_to(Some("Job"), json!([])), &up_to(None, json!([]))), [words]);
}

#[test]
fn the_last_pod_type_is_immutable_and_static_where_it_is_absent() {
    let of = |last| up_to(last, json!([]));
    assert!(update(&of(Some("Static")), &of(None)).is_empty());
    assert!(update(&of(Some("Default")), &of(Some("Default"))).is_empty());
    for (new, old) in [
        ("Default", None),
        ("Default", Some("Static")),
        ("DaemonSet", Some("Default")),
        ("Static", Some("Default")),
    ] {
        let words = format!(
            "spec.lastPodType: Invalid value: \"{new}\": field is immutable; create a second NodeMaintenance with lastPodType: \
             {new} for the same nodes, then delete this one, in this order, so that the nodes stay cordoned"
        );
        assert_eq!(update(&of(Some(new)), &of(old)), std::slice::from_ref(&words), "{old:?}");
        // A patch keeps the entries that were inserted for the old type. They give no additional error.
        let mut patched = of(old);
        patched.0["spec"]["lastPodType"] = new.into();
        kind().set_defaults(&mut patched);
        assert_eq!(update(&patched, &of(old)), [words], "{old:?}");
    }
}
