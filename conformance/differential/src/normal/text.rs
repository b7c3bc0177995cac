//! Words within texts.

use super::facts::uids;
use serde_json::Value;

use super::symbols::Symbols;
use super::values;

/// Texts that stand before a revision in a message.
const BEFORE_REVISIONS: [&str; 3] = [
    "ResourceVersion in precondition: ",
    "ResourceVersion in object meta: ",
    "the ResourceVersion in record (",
];
/// Texts that stand before a state in a message.
const BEFORE_STATES: [&str; 2] = ["too old resource version: ", ", current: "];

/// A text with symbols in it.
pub fn normal(text: &str, symbols: &Symbols<'_>) -> String {
    let api = symbols.api;
    if let Some(time) = symbols.time(text) {
        return time;
    }
    if !api.group.is_empty() && text == api.group {
        return "<group>".into();
    }
    let mut text = text.to_owned();
    // A generated name may begin with the namespace's.
    for (name, symbol) in &symbols.facts.generated {
        text = text.replace(name, symbol);
    }
    text = text.replace(&symbols.record.namespace, "<namespace>").replace(&api.root(), "<root>");
    let known: Vec<String> = uids(&text).map(str::to_owned).collect();
    for uid in known {
        if let Some(ordinal) = symbols.facts.uids.iter().position(|known| *known == uid) {
            text = text.replace(&uid, &format!("<uid {ordinal}>"));
        }
    }
    text = with_group(text, symbols);
    text = without_key(&without_body(&text));
    text = with_sorted_values(&text, symbols);
    for before in BEFORE_REVISIONS {
        text = numbers_after(&text, before, |number| symbols.revision(number));
    }
    for before in BEFORE_STATES {
        text = numbers_after(&text, before, |number| symbols.state(number));
    }
    text
}

/// Replaces the names of the group and of what is in it by symbols. The core group has no name: the symbol is
/// put where the name of another group would stand.
fn with_group(text: String, symbols: &Symbols<'_>) -> String {
    let (group, kind, plural) = (symbols.api.group, symbols.target.kind, symbols.target.plural);
    if group.is_empty() {
        let text = text.replace("API group \"\"", "API group \"<group>\"");
        let text = text.replace(&format!("/{}, Kind=", symbols.api.version), "<apiVersion>, Kind=");
        let text = text.replace(&format!("\" using {}", symbols.api.version), "\" using <apiVersion>");
        let text = text.replace(&format!("{plural} \""), &format!("{plural}.<group> \""));
        let text = text.replace(&format!("{plural} is forbidden"), &format!("{plural}.<group> is forbidden"));
        return match text.strip_prefix(&format!("{kind} \"")) {
            Some(rest) if rest.contains("is invalid") => format!("{kind}.<group> \"{rest}"),
            _ => text,
        };
    }
    let package = group.split('.').next().unwrap_or_default();
    text.replace(&symbols.api.api_version(), "<apiVersion>")
        .replace(&format!("(*{package}.{kind}"), &format!("(*<group>.{kind}"))
        .replace(&format!("\"{group}/"), "\"<group>/")
        .replace(&format!("API group \"{group}\""), "API group \"<group>\"")
        .replace(&format!("{plural}.{group}"), &format!("{plural}.<group>"))
        .replace(&format!("{kind}.{group}"), &format!("{kind}.<group>"))
}

/// The beginning of a body that could not be read: the group's name is in it, or a part of that.
fn without_body(text: &str) -> String {
    let unrecognized = text.starts_with("the object provided is unrecognized");
    match text.rsplit_once(" (").filter(|_| unrecognized) {
        Some((before, _)) => format!("{before} (<body>)"),
        None => text.to_owned(),
    }
}

/// Removes the storage key from a message: each server chooses its own keys.
fn without_key(text: &str) -> String {
    let Some((before, rest)) = text.split_once(", Key: ") else { return text.to_owned() };
    let rest = rest.split_once(", ").map_or("", |(_, rest)| rest);
    format!("{before}, Key: <key>, {rest}")
}

/// The text that stands before a value in a message.
const BEFORE_VALUES: &str = "Invalid value: ";

/// Objects within messages, as they are or quoted: their fields may come in any order.
fn with_sorted_values(text: &str, symbols: &Symbols<'_>) -> String {
    let Some((before, rest)) = text.split_once(BEFORE_VALUES) else { return text.to_owned() };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else {
        return format!("{before}{BEFORE_VALUES}{}", with_sorted_values(rest, symbols));
    };
    let rest = &rest[values.byte_offset()..];
    let inner = value.as_str().and_then(|quoted| serde_json::from_str::<Value>(quoted).ok());
    let sorted = match (&value, inner) {
        (_, Some(object @ Value::Object(_))) => format!("<quoted> {}", values::normal(&object, symbols)),
        (Value::Object(_) | Value::Array(_), _) => values::normal(&value, symbols).to_string(),
        _ => value.to_string(),
    };
    format!("{before}{BEFORE_VALUES}{sorted}{}", with_sorted_values(rest, symbols))
}

fn numbers_after(text: &str, before: &str, symbol: impl Fn(&str) -> String) -> String {
    let Some((start, rest)) = text.split_once(before) else { return text.to_owned() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    format!("{start}{before}{}{}", symbol(number), numbers_after(rest, before, symbol))
}

/// The lines of YAML or of indented JSON without those of fields.
pub fn without_fields<'t>(text: &'t str, fields: &[&str]) -> Vec<&'t str> {
    let mut within = None;
    let is_kept = |line: &&str| {
        let said = line.trim_start();
        let indent = line.len() - said.len();
        let goes_on = within.is_some_and(|at| indent > at || (indent == at && said.starts_with(['-', ']'])));
        let said = said.trim_start_matches('"');
        let is_one =
            |field: &&str| said.strip_prefix(*field).is_some_and(|rest| rest.starts_with([':', '"']));
        let begins = !goes_on && fields.iter().any(is_one);
        within = if begins { Some(indent) } else { within.filter(|_| goes_on) };
        within.is_none()
    };
    text.lines().filter(is_kept).collect()
}

/// A line of YAML or of indented JSON with symbols in it.
pub fn normal_line(line: &str, symbols: &Symbols<'_>) -> String {
    let quoted: Vec<&str> = line.split('"').collect();
    let is_revision = line.trim_start().trim_start_matches('"').starts_with("resourceVersion");
    let parts = quoted.iter().enumerate().map(|(at, part)| {
        if at % 2 == 1 && is_revision && *part != "resourceVersion" {
            return symbols.state(part);
        }
        match part.trim_start().strip_prefix("group: ") {
            Some(group) if group == symbols.api.group => part.replace(group, "<group>"),
            _ => normal(part, symbols),
        }
    });
    parts.collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_field_are_left_out_and_no_others() {
        let yaml = "spec:\n  requesterUsers:\n  - requester: a\n    username: u\n  requesters:\n  - name: a\nstatus: {}";
        let kept = without_fields(yaml, &["requesterUsers"]);
        assert_eq!(kept, ["spec:", "  requesters:", "  - name: a", "status: {}"]);
        let json = "{\n  \"users\": [\n    {\n      \"a\": 1\n    }\n  ],\n  \"usersToo\": 1\n}";
        assert_eq!(without_fields(json, &["users"]), ["{", "  \"usersToo\": 1", "}"]);
        assert_eq!(without_fields("username: u\nx: 1\ncreator: u", &["username", "creator"]), ["x: 1"]);
        assert_eq!(without_fields("username: u", &[]), ["username: u"]);
    }
}
