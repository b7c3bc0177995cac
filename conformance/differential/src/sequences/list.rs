//! Lists.

use super::budget;
use crate::area::Area::List;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(List, BUDGET, name);
    let three = |name: &str| of(name).post(budget("a")).post(budget("b")).post(budget("c"));
    vec![
        of("an empty list has items").list(""),
        three("a list is in the order of names").list(""),
        three("a list comes in pages").list("limit=2").list("limit=2&continue=$(3.metadata.continue)"),
    ]
}
