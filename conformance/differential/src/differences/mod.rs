//! Where we differ from the host on purpose. An entry is one field of one answer of one sequence, with the
//! source of the difference; an entry that no longer occurs fails the suite.

mod own;

use std::sync::LazyLock;

use crate::setup::ServerRoute::{self, Aggregated, Direct};

/// A deliberate difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Title of the sequence: `area: name`.
    pub sequence: &'static str,
    /// Number of the answer.
    pub answer: usize,
    /// The field, as a mismatch names it.
    pub field: &'static str,
    /// The routes on which the difference is seen.
    pub routes: &'static [ServerRoute],
    /// Why, and where that is written.
    pub source: &'static str,
}

/// All of them.
pub static DIFFERENCES: LazyLock<Vec<Difference>> = LazyLock::new(|| {
    let hosts = [
        each("create: an amount of 1000.0", NUMBER, &[(0, "body.message")]),
        each("create: a list of objects", SCHEME, &[(0, "body.message")]),
        each("create: YAML with a key twice", YAML, &[(0, "headers.warning.0")]),
        each("list: a token of bytes that are no text", TOKEN, &[(3, "body.message")]),
        each("list: a token with a part of a byte", TOKEN, &[(3, "body.message")]),
        each("list: a token with padding", TOKEN, &[(3, "body.message")]),
        each("list: a token of null", TOKEN, &[(3, "body.message")]),
        each("list: a token of a list", TOKEN, &[(3, "body.message")]),
        each("list: a token of a wrong type", TOKEN, &[(3, "body.message")]),
        each("strategic-merge-patch: a key of null where lists merge", KEYLESS, &[(1, MANAGED_FIELDS)]),
        each(
            "strategic-merge-patch: null for a list of an empty item and of a key that stands twice",
            KEYLESS,
            &[(0, MANAGED_FIELDS), (2, MANAGED_FIELDS)],
        ),
        proxied("formats: a large object is compressed", 0),
        proxied("formats: a large object is not compressed unasked", 0),
        proxied("formats: a large object is not compressed unasked", 1),
        proxied("errors: annotations of as much as may be", 0),
    ];
    [hosts.concat(), own::all()].concat()
});

/// Fields of answers of a sequence that differ both ways for the same reason.
fn each(sequence: &'static str, source: &'static str, fields: &[(usize, &'static str)]) -> Vec<Difference> {
    let one =
        |&(answer, field)| Difference { sequence, answer, field, routes: &[Direct, Aggregated], source };
    fields.iter().map(one).collect()
}

fn proxied(sequence: &'static str, answer: usize) -> Vec<Difference> {
    vec![Difference { sequence, answer, field: "headers.vary", routes: &[Aggregated], source: GZIP }]
}

const NUMBER: &str = "Go repeats a number's text; ours, its value: serde_json keeps no text";
const SCHEME: &str =
    "Go's scheme has the types of lists; ours are made from those of objects (machinery, kind.rs)";
const YAML: &str =
    "of a key that stands twice we name the path, in YAML as in JSON; Kubernetes names the line";
const TOKEN: &str =
    "Go's decoders of base64 and JSON say in their words what is wrong with a token; ours, in theirs";
const MANAGED_FIELDS: &str = "body.metadata.managedFields";
const KEYLESS: &str = "kube-apiserver fails to track an object with a list item that has no key, logs that this should \
    not happen, and removes all managed fields (apimachinery/pkg/util/managedfields, UpdateNoErrors); ours tracks the rest";
const GZIP: &str =
    "the aggregator asks every aggregated server for gzip, and passes on that the answer varies by it";
