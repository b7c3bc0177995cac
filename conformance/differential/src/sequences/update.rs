//! PUT.

use serde_json::json;

use super::{budget, budget_with};
use crate::area::Area::Update;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Update, BUDGET, name);
    let version = json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}});
    vec![
        of("an update of an old version is a conflict")
            .post(budget("x"))
            .put(
                "x",
                budget_with(
                    "x",
                    json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"},
                                               "spec": {"minAvailable": 2}}),
                ),
            )
            .put("x", budget_with("x", version.clone())),
        of("an update without a version is refused").post(budget("x")).put("x", budget("x")),
        of("an update that changes nothing writes nothing")
            .post(budget("x"))
            .later()
            .put("x", budget_with("x", version)),
    ]
}
