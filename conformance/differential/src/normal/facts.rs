//! What is found in a run before anything is replaced: the values whose relations count.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::run::{Content, RunRecord};

/// Values of one run.
#[derive(Debug, Default)]
pub struct RunFacts {
    /// resourceVersions of objects, ascending.
    pub revisions: BTreeSet<u64>,
    /// UIDs in the order of first sight.
    pub uids: Vec<String>,
    /// Names that the server made, longest first, with what each is called instead.
    pub generated: Vec<(String, String)>,
}

/// Length of a UID.
const UID: usize = 36;

impl RunFacts {
    /// Reads a whole record.
    pub fn of(record: &RunRecord) -> Self {
        let mut facts = Self::default();
        for answer in &record.answers {
            match &answer.body {
                Content::Empty => {}
                Content::Json(value) | Content::Text(_, value) | Content::Protobuf(value) => {
                    facts.read(value)
                }
                Content::Events(events) => events.iter().for_each(|event| facts.read(event)),
            }
        }
        facts
    }

    fn read(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.read_text(text),
            Value::Array(items) => {
                self.read_message(items);
                items.iter().for_each(|item| self.read(item));
            }
            Value::Object(map) => {
                if let Some(Value::Object(meta)) = map.get("metadata") {
                    self.read_metadata(meta);
                }
                map.values().for_each(|value| self.read(value));
            }
            _ => {}
        }
    }

    fn read_metadata(&mut self, meta: &Map<String, Value>) {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
        if let (false, Ok(revision)) = (text("name").is_empty(), text("resourceVersion").parse()) {
            self.revisions.insert(revision);
        }
        let (name, prefix) = (text("name"), text("generateName"));
        // Of a long prefix there is room for 58 characters.
        let prefix = prefix.get(..58).unwrap_or(prefix);
        let suffix = name.strip_prefix(prefix).filter(|suffix| !prefix.is_empty() && !suffix.is_empty());
        if let Some(suffix) = suffix
            && self.generated.iter().all(|(known, _)| known != name)
        {
            let symbol = format!("{prefix}<{} made {}>", suffix.len(), self.generated.len());
            self.generated.push((name.to_owned(), symbol));
        }
    }

    /// ObjectMeta in protobuf: uid = 5, resourceVersion = 6.
    fn read_message(&mut self, fields: &[Value]) {
        let field =
            |number: u64| fields.iter().find(|field| field[0] == number).and_then(|field| field[1].as_str());
        if let (Some(uid), Some(revision)) = (field(5), field(6))
            && is_uid(uid)
            && let Ok(revision) = revision.parse()
        {
            self.revisions.insert(revision);
        }
    }

    fn read_text(&mut self, text: &str) {
        for uid in uids(text) {
            if !self.uids.iter().any(|known| known == uid) {
                self.uids.push(uid.to_owned());
            }
        }
    }
}

/// The UIDs in a text.
pub fn uids(text: &str) -> impl Iterator<Item = &str> {
    (0..text.len().saturating_sub(UID - 1))
        .filter_map(|at| text.get(at..at + UID))
        .filter(|part| is_uid(part))
}

/// `8-4-4-4-12` lower-case hexadecimal digits of version 4; what a test makes up has other versions.
fn is_uid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == UID
        && bytes[14] == b'4'
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        })
}
