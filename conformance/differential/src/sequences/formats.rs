//! What bodies and answers are written in.

use super::budget;
use crate::area::Area::Formats;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Formats, BUDGET, name).post(budget("x"));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    vec![
        of("an object in a table").get("x").header("accept", table).list("").header("accept", table),
        of("pretty printing").get("x").query("pretty=true"),
    ]
}
