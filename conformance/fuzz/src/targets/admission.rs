//! What the host's configurations and webhooks send: expressions, and answers about a write.

use std::sync::Arc;

use drydock_admission::cel::{Activation, Expression, of_json, stack};
use drydock_admission::webhook::review::{ReviewVersion, verify};
use drydock_machinery::patch::json_patch;

use crate::kinds;

/// What all expressions of one request may spend.
const BUDGET: i64 = 10_000_000;
/// As the seeds have it.
const UID: &str = "u";

/// An expression about an object of each kind: it comes to a value or an error, within its budget.
pub fn cel(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let compiled = stack::on_large_stack(|| Expression::compile(text, &["object", "oldObject", "variables"]));
    let Ok(expression) = compiled.expect("compiling does not panic") else { return };
    let evaluated = stack::on_large_stack(|| {
        let objects = kinds::samples().map(|sample| of_json(&sample.into_value()));
        let variables = ["object", "oldObject"].into_iter().zip(objects).collect();
        let mut activation = Activation::new(variables, Arc::new([]), BUDGET).expect("an environment");
        let answer = activation.evaluate(&expression);
        assert!(answer.is_ok(), "one expression spends what ten may");
        activation.left()
    });
    assert!(evaluated.expect("evaluating does not panic") >= 0);
}

/// An answer of a webhook: what is relied on of it is a patch only of one that may patch, and only what it says.
pub fn answer(data: &[u8]) {
    for version in [ReviewVersion::V1, ReviewVersion::V1beta1] {
        let validated = verify(version, UID, false, data);
        assert!(!validated.is_ok_and(|answer| !answer.patch.is_empty()), "validating never patches");
        let Ok(answer) = verify(version, UID, true, data) else { continue };
        for sample in kinds::samples() {
            let _ = json_patch(&sample.into_value(), &answer.patch);
        }
    }
}
