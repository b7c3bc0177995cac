//! Watches.

use serde_json::json;

use super::budget;
use crate::area::Area::Watch;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Watch, BUDGET, name);
    vec![
        of("a watch tells of each change")
            .list("")
            .watch("resourceVersion=$(0.metadata.resourceVersion)")
            .post(budget("x"))
            .merge_patch("x", json!({"metadata": {"labels": {"a": "b"}}}))
            .delete("x")
            .events(3),
    ]
}
