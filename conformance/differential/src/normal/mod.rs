//! Normalises values that two servers can never have in common: each is replaced by a symbol for its relation
//! to the other values of its run. No key is dropped, so that these relations are compared too, but for what our server
//! records of the writer: no custom resource has that.
//!
//! | value | symbol |
//! |---|---|
//! | UID | ordinal of first sight |
//! | resourceVersion of an object | its rank among those of the run |
//! | resourceVersion of a list, a table, a bookmark | the newest of those that it covers |
//! | time of the server | the stretch between two `later()` in which it lies |
//! | namespace, group, API version, generated names, continue tokens, Audit-Id | what it is |

mod facts;
mod headers;
mod symbols;
mod text;
mod values;

use serde_json::{Value, json};

use crate::run::{Content, RunRecord};
use crate::target::{TargetApi, TargetKind};
use facts::RunFacts;
use symbols::Symbols;

/// The record as it is compared: a list of answers.
pub fn normal(record: &RunRecord, target: &TargetKind, api: TargetApi) -> Vec<Value> {
    let facts = RunFacts::of(record);
    let symbols = Symbols { facts: &facts, record, target, api };
    record
        .answers
        .iter()
        .map(|answer| {
            let mut whole = json!({
                "headers": headers::normal(&answer.headers, &symbols),
                "body": body(&answer.body, &symbols),
            });
            if answer.code > 0 {
                whole["code"] = answer.code.into();
            }
            whole
        })
        .collect()
}

/// Returns the fields in which our server records who writes an object of this kind.
fn recorded_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "EvictionRequest" => &["requesterUsers"],
        "NodeMaintenance" => &["username", "creator"],
        _ => &[],
    }
}

/// YAML is compared by its lines, which are in the order of names. The fields of JSON may come in any order:
/// its lines are compared without their order, and without commas.
fn lines(text: &str, symbols: &Symbols<'_>) -> Vec<String> {
    let kept = text::without_fields(text, recorded_fields(symbols.target.kind));
    let mut lines: Vec<String> = kept.iter().map(|line| text::normal_line(line, symbols)).collect();
    if text.starts_with('{') {
        lines.iter_mut().for_each(|line| *line = line.trim_end_matches(',').to_owned());
        lines.sort_unstable();
    }
    lines
}

fn body(content: &Content, symbols: &Symbols<'_>) -> Value {
    match content {
        Content::Empty => Value::Null,
        Content::Json(value) => values::normal(value, symbols),
        Content::Text(text, value) => json!({
            "says": values::normal(value, symbols),
            "text": lines(text, symbols),
        }),
        Content::Protobuf(tree) => values::normal_tree(tree, symbols),
        Content::Events(events) => {
            let one = |event: &Value| {
                if event.is_array() {
                    values::normal_tree(event, symbols)
                } else {
                    values::normal(event, symbols)
                }
            };
            events.iter().map(one).collect()
        }
    }
}
