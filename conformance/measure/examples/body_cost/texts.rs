//! Texts of request bodies.

use crate::MAX;

pub const STATUS: &str =
    r#"{"nodeRef":{"name":"n"},"drainTargets":[{},{},{}],"blockers":[{},{},{},{},{},{},{},{},{},{}]}"#;

pub fn list(item: &str) -> String {
    format!("[{}]", vec![item; (MAX - 300) / (item.len() + 1)].join(","))
}

/// A JSON object with many keys, which are all different, or all the same if `step` is 0.
pub fn keys(step: usize) -> String {
    let entries: Vec<String> = (0..MAX / 11).map(|n| format!("\"{:x}\":\"\"", n * step)).collect();
    format!("{{{}}}", entries.join(","))
}

pub fn yaml(text: &str) -> String {
    let (begin, rest) = if let Some(rest) = text.strip_prefix('[') { ("[", rest) } else { ("", text) };
    let end = if begin.is_empty() { "" } else { "]" };
    format!("{begin}{}{end}", rest.repeat(MAX / rest.len() - 1))
}

pub fn wrap(field: &str, value: &str) -> String {
    match field.split_once('.') {
        Some(("metadata", inner)) => format!(r#"{{"metadata":{{"name":"a","{inner}":{value}}}}}"#),
        Some((outer, inner)) => format!(r#"{{"metadata":{{"name":"a"}},"{outer}":{{"{inner}":{value}}}}}"#),
        None => format!(r#"{{"metadata":{{"name":"a"}},"{field}":{value}}}"#),
    }
}
