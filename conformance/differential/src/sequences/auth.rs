//! Who asks, and who may.

use crate::area::Area::Auth;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Auth, BUDGET, name);
    vec![of("a reader may read").list("").with(|r| r.as_user("reader"))]
}
