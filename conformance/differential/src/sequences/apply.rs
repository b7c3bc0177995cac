//! Server-side apply, and managed fields.

use serde_json::json;

use super::budget;
use crate::area::Area::Apply;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Apply, BUDGET, name);
    vec![
        of("an apply creates").apply("x", "one", json!({"spec": {"minAvailable": 1}})),
        of("a conflict names the fields").apply("x", "one", json!({"spec": {"minAvailable": 1}})).apply(
            "x",
            "two",
            json!({"spec": {"minAvailable": 2}}),
        ),
        of("force takes over").post(budget("x")).apply_by_force(
            "x",
            "two",
            json!({"spec": {"minAvailable": 2}}),
        ),
    ]
}
