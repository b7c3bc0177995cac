//! Merge patches.

use serde_json::json;

use super::budget;
use crate::area::Area::MergePatch;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(MergePatch, BUDGET, name).post(budget("x"));
    vec![
        of("a merge patch sets a label").merge_patch("x", json!({"metadata": {"labels": {"a": "b"}}})),
        of("a merge patch removes by null").merge_patch("x", json!({"spec": {"minAvailable": null}})),
    ]
}
