//! Deletion.

use serde_json::json;

use super::{budget, budget_with};
use crate::area::Area::Delete;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Delete, BUDGET, name);
    vec![
        of("a deleted object is gone").post(budget("x")).delete("x").get("x").delete("x"),
        of("an object with a finalizer waits")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .delete("x")
            .merge_patch("x", json!({"metadata": {"finalizers": null}}))
            .get("x"),
        of("a collection is deleted").post(budget("x")).post(budget("y")).delete_collection("").list(""),
    ]
}
