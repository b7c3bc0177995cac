//! JSON patches.

use serde_json::json;

use super::budget;
use crate::area::Area::JsonPatch;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(JsonPatch, BUDGET, name).post(budget("x"));
    vec![
        of("a JSON patch replaces a value")
            .json_patch("x", json!([{"op": "replace", "path": "/spec/minAvailable", "value": "50%"}])),
        of("a JSON patch whose test fails is refused")
            .json_patch("x", json!([{"op": "test", "path": "/spec/minAvailable", "value": 7}])),
    ]
}
