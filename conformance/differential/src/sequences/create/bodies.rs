//! Bodies that are no object, or another.

use super::of;
use crate::request::{JSON, SequenceRequest};
use crate::sequence::Sequence;
use http::Method;

const YAML: &str = "application/yaml";

pub(super) fn all() -> Vec<Sequence> {
    let sent = |name: &str, type_: &str, body: &str| {
        of(name).ask(SequenceRequest::new(Method::POST, "$(collection)").body(type_, body))
    };
    let whole = r#"{"apiVersion":"$(apiVersion)","kind":"$(kind)","metadata":{"name":"x"}}"#;
    vec![
        of("a body of nothing").ask(SequenceRequest::new(Method::POST, "$(collection)")),
        of("a body of nothing that says it is JSON")
            .ask(SequenceRequest::new(Method::POST, "$(collection)").content_type(JSON)),
        sent("a body of null", JSON, "null"),
        sent("a body of text", JSON, "hello"),
        sent("a body of a list", JSON, "[]"),
        sent("a body of a number", JSON, "5"),
        sent("an empty object", JSON, "{}"),
        sent("a body that is cut short", JSON, r#"{"apiVersion":"$(apiVersion)","kind":"#),
        sent("a body with something after it", JSON, &format!("{whole} x")),
        sent("a body with spaces around it", JSON, &format!("  {whole}\n\n")),
        sent("two objects", JSON, &format!("{whole}{whole}")),
        sent("no kind and no version", JSON, r#"{"metadata":{"name":"x"}}"#),
        sent("no kind", JSON, r#"{"apiVersion":"$(apiVersion)","metadata":{"name":"x"}}"#),
        sent("no version", JSON, r#"{"kind":"$(kind)","metadata":{"name":"x"}}"#),
        sent(
            "another kind",
            JSON,
            r#"{"apiVersion":"$(apiVersion)","kind":"Other","metadata":{"name":"x"}}"#,
        ),
        sent(
            "another version",
            JSON,
            r#"{"apiVersion":"$(group)/v9","kind":"$(kind)","metadata":{"name":"x"}}"#,
        ),
        sent(
            "another group",
            JSON,
            r#"{"apiVersion":"other.io/v1","kind":"$(kind)","metadata":{"name":"x"}}"#,
        ),
        sent("a version with too many parts", JSON, r#"{"apiVersion":"a/b/c","kind":"$(kind)"}"#),
        sent("a kind that is a number", JSON, r#"{"apiVersion":"$(apiVersion)","kind":5}"#),
        sent("a list of objects", JSON, r#"{"apiVersion":"$(apiVersion)","kind":"$(kind)List","items":[]}"#),
        sent(
            "YAML",
            YAML,
            "apiVersion: $(apiVersion)\nkind: $(kind)\nmetadata:\n  name: x\n  labels: {a: 'b'}\n",
        ),
        sent(
            "YAML with a key twice",
            YAML,
            "apiVersion: $(apiVersion)\nkind: $(kind)\nmetadata: {name: x, name: z}\n",
        ),
        sent(
            "YAML with an anchor",
            YAML,
            "apiVersion: $(apiVersion)\nkind: $(kind)\nmetadata: {name: &n x, labels: {a: *n}}\n",
        ),
        sent("YAML that is none", YAML, "a: b: c\n"),
        sent("JSON that says it is YAML", YAML, whole),
        sent("YAML that says it is JSON", JSON, "apiVersion: $(apiVersion)\n"),
    ]
}
