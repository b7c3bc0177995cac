//! Refusals that belong to no verb.

use http::Method;

use crate::area::Area::Errors;
use crate::request::Request;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Errors, BUDGET, name);
    vec![
        of("a path that leads nowhere")
            .ask(Request::get("$(collection)/x/y"))
            .ask(Request::get("$(root)/nothing")),
        of("a method that is not served").ask(Request::new(Method::PUT, "$(collection)")),
    ]
}
