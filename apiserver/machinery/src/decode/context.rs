//! The state of one decoding run: the current path, the errors found, and the memory that is left.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Format;
use crate::error::ApiError;
use crate::field::{self, ErrorList, Path, SHOWN_MAX, beginning};
use crate::memory::DecodeMemory;
use crate::object::canonical::NodeBudget;
use crate::quote::go_quote;
use crate::schema::{ObjectShape, Schema, Shape};

/// Maximum number of strict errors that are collected, as in Kubernetes.
pub(super) const STRICT_ERRORS_MAX: usize = 100;
/// Maximum number of bytes of a path or a key in a strict error; no schema has longer ones.
pub(super) const NAME_SHOWN: usize = 1024;
/// Maximum number of bytes of strict errors that are formatted. Most of a body may be repetitions of one key. Each is
/// reported once, but a repetition is recognized only by its text.
const STRICT_BYTES_MAX: usize = 1 << 20;

/// The message of Kubernetes' parser for a document whose aliases repeat too much.
const ALIASING: &str = "yaml: document contains excessive aliasing";

/// Returns the number of nodes and bytes of text that a body may yield, including aliases.
fn nodes_and_text(body: usize) -> usize {
    body.saturating_mul(4).saturating_add(1 << 16)
}

/// A limit that a body exceeds.
pub(super) enum LimitExceeded {
    /// Memory: a 413.
    Memory(ApiError),
    /// Lists: one error for each that is too long.
    Items(ErrorList),
}

#[derive(Debug)]
pub(super) struct Context {
    strict_path: String,
    /// JSON names from the root, without list indexes and map keys, as Go's decoder tracks them.
    fields: Vec<&'static str>,
    /// The definitions of the structs that contain these fields.
    structs: Vec<&'static str>,
    strict: Vec<String>,
    seen: BTreeSet<String>,
    fatal: Option<String>,
    /// Length of the body. `budget`: the nodes and bytes of text that it may still yield.
    body: usize,
    budget: usize,
    memory: DecodeMemory,
    /// Errors for lists with more items than their schema allows.
    too_long: ErrorList,
    /// Bytes of strict errors that may still be formatted, including those that turn out to be repetitions.
    strict_bytes_left: usize,
    /// How duplicate keys in a free-form body are reported; `None` if they are not.
    duplicate_keys: Option<Format>,
}

impl NodeBudget for Context {
    fn spend<E: serde::de::Error>(&mut self, text: usize) -> Result<(), E> {
        match self.budget.checked_sub(text.saturating_add(1)) {
            Some(rest) => self.budget = rest,
            None => return Err(self.fail(ALIASING.to_owned())),
        }
        Ok(())
    }
}

impl Context {
    /// Sets the limits for a body. YAML aliases can repeat what they refer to; no other construct yields more nodes
    /// and text than it has bytes.
    pub(super) fn new(body: usize) -> Self {
        Self { body, budget: nodes_and_text(body), memory: DecodeMemory::of_body(body), ..Self::of_patched() }
    }

    /// Sets the limits for the result of a patch.
    pub(super) fn of_patched() -> Self {
        Self {
            strict_path: String::new(),
            fields: Vec::new(),
            structs: Vec::new(),
            strict: Vec::new(),
            seen: BTreeSet::new(),
            fatal: None,
            body: usize::MAX,
            budget: nodes_and_text(usize::MAX),
            memory: DecodeMemory::of_patched(),
            too_long: ErrorList::new(),
            strict_bytes_left: STRICT_BYTES_MAX,
            duplicate_keys: None,
        }
    }

    /// As [`Self::new`], and reports duplicate keys in a free-form body.
    pub(super) fn strict(body: usize, format: Format) -> Self {
        Self { duplicate_keys: Some(format), ..Self::new(body) }
    }

    /// Takes memory for a value that is about to be created. Fails if not enough is left.
    pub(super) fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        match self.memory.take(bytes) {
            true => Ok(()),
            false if self.repeats_itself() => Err(self.fail(ALIASING.to_owned())),
            false => Err(self.fail("too large".to_owned())),
        }
    }

    /// Whether the body has yielded more than its length, which only aliases do.
    fn repeats_itself(&self) -> bool {
        nodes_and_text(self.body) - self.budget > self.body
    }

    /// Records that the current list has more items than its schema allows.
    pub(super) fn too_many(&mut self, actual: usize, max: usize) {
        if !field::is_full(&self.too_long) {
            let path = Path::new(beginning(&self.strict_path, SHOWN_MAX));
            self.too_long.push(field::Error::too_many(path, actual, max));
        }
    }

    /// Fails if the body exceeds a limit: too much memory (413), or lists that are too long.
    pub(super) fn check_limits(&mut self) -> Result<(), LimitExceeded> {
        if self.memory.is_exhausted() && !self.repeats_itself() {
            return Err(LimitExceeded::Memory(self.memory.refusal()));
        }
        if self.too_long.is_empty() {
            Ok(())
        } else {
            Err(LimitExceeded::Items(std::mem::take(&mut self.too_long)))
        }
    }

    /// Returns the error that ended decoding: ours, or the parser's.
    pub(super) fn fatal(&self, parser: String) -> String {
        self.fatal.clone().unwrap_or(parser)
    }

    pub(super) fn into_strict_errors(self) -> Vec<String> {
        self.strict
    }

    /// Whether the current field belongs to the struct of this definition.
    pub(super) fn is_in(&self, definition: &str) -> bool {
        self.structs.last().is_some_and(|last| *last == definition)
    }

    /// Records the error for the client. The first one is kept.
    pub(super) fn fail<E: serde::de::Error>(&mut self, why: String) -> E {
        let error = E::custom(&why);
        self.fatal.get_or_insert(why);
        error
    }

    /// The error for a value of the wrong type, with the message of Go's decoder.
    pub(super) fn mismatch<E: serde::de::Error>(&mut self, value: &str, schema: &Schema) -> E {
        let within = self.structs.last().map(|definition| last_segment(definition));
        let place = match within {
            Some(name) => format!("struct field {name}.{}", self.fields.join(".")),
            None => "value".to_owned(),
        };
        let named = self.fields.last().and_then(|field| go_name(within?, field));
        let type_ = named.map_or_else(|| go_type(schema), str::to_owned);
        self.fail(format!("json: cannot unmarshal {value} into Go {place} of type {type_}"))
    }

    pub(super) fn unknown(&mut self, key: &str) {
        self.strict_error("unknown", key);
    }

    pub(super) fn duplicate(&mut self, key: &str) {
        self.strict_error("duplicate", key);
    }

    /// Reports a duplicate key in a free-form value. One of Kubernetes' two parsers reports its path, the other does
    /// not.
    pub(super) fn duplicate_raw(&mut self, key: &str) {
        match self.duplicate_keys {
            Some(Format::Json) => self.duplicate(key),
            Some(Format::Yaml) if self.may_report() => {
                let key = go_quote(beginning(key, NAME_SHOWN));
                self.remember(format!("key {key} already set in map"));
            }
            _ => {}
        }
    }

    fn strict_error(&mut self, what: &str, key: &str) {
        let dot = if self.strict_path.is_empty() { "" } else { "." };
        let (path, key) = (beginning(&self.strict_path, NAME_SHOWN), beginning(key, NAME_SHOWN));
        if self.may_report() {
            self.remember(format!("{what} field {}", go_quote(&format!("{path}{dot}{key}"))));
        }
    }

    fn may_report(&self) -> bool {
        self.strict.len() < STRICT_ERRORS_MAX && self.strict_bytes_left > 0
    }

    fn remember(&mut self, error: String) {
        self.strict_bytes_left = self.strict_bytes_left.saturating_sub(error.len());
        if self.seen.insert(error.clone()) {
            self.strict.push(error);
        }
    }

    /// Runs `inside` with the path extended by a struct's field.
    pub(super) fn at_field<T>(
        &mut self,
        shape: &ObjectShape,
        name: &'static str,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.fields.push(name);
        self.structs.push(shape.definition);
        let result = self.at_key(name, inside);
        self.structs.pop();
        self.fields.pop();
        result
    }

    /// Runs `inside` with the path extended by a map's key.
    pub(super) fn at_key<T>(&mut self, key: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.strict_path.len();
        if length > 0 {
            self.strict_path.push('.');
        }
        self.strict_path.push_str(key);
        self.at(length, inside)
    }

    /// Runs `inside` with the path extended by a list index.
    pub(super) fn at_index<T>(&mut self, index: usize, inside: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.strict_path.len();
        // Writing to a string cannot fail.
        let _ = write!(self.strict_path, "[{index}]");
        self.at(length, inside)
    }

    /// Runs `inside`, and truncates the path to `length` afterwards.
    fn at<T>(&mut self, length: usize, inside: impl FnOnce(&mut Self) -> T) -> T {
        let result = inside(self);
        self.strict_path.truncate(length);
        result
    }
}

/// `v1.LeaseSpec` and the like.
fn go_type(schema: &Schema) -> String {
    match &schema.shape {
        Shape::Boolean => "bool".into(),
        // Its own decoder reports the number.
        Shape::Int32 | Shape::IntOrString => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::String | Shape::Time | Shape::MicroTime => "string".into(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Raw => "v1.FieldsV1".into(),
        Shape::Map(values) => format!("map[string]{}", go_type(values)),
        Shape::List(items, _) => format!("[]{}", go_type(items)),
        Shape::Object(shape) => {
            let mut segments = shape.definition.rsplit('.');
            let (name, version) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
            if version.is_empty() { name.to_owned() } else { format!("{version}.{name}") }
        }
    }
}

/// The Go types of string fields in any kind's metadata and conditions that are not `string`.
fn go_name(of: &str, field: &str) -> Option<&'static str> {
    match (of, field) {
        ("ObjectMeta" | "OwnerReference", "uid") => Some("types.UID"),
        ("Condition", "status") => Some("v1.ConditionStatus"),
        ("LabelSelectorRequirement", "operator") => Some("v1.LabelSelectorOperator"),
        ("ManagedFieldsEntry", "operation") => Some("v1.ManagedFieldsOperationType"),
        _ => None,
    }
}

fn last_segment(definition: &'static str) -> &'static str {
    definition.rsplit('.').next().unwrap_or_default()
}
