//! A sequence of requests, written once for both servers.

use http::Method;
use serde_json::{Value, json};

use crate::area::Area;
use crate::request::{JSON, SequenceRequest};
use crate::target::TargetKind;

/// Requests that are sent one after the other to each server, and answered the same by each.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// A sentence; no two sequences of an area have the same.
    pub name: String,
    /// What it is about.
    pub area: Area,
    /// The kind.
    pub target: TargetKind,
    /// What happens.
    pub steps: Vec<SequenceStep>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum SequenceStep {
    /// A request, and its answer.
    Ask(SequenceRequest),
    /// A watch is opened; its events are taken by the steps that follow. The answer is its head.
    Open(SequenceRequest),
    /// The answer consists of this many events of the watch that was opened last, without periodic bookmarks.
    Events(usize),
    /// The answer consists of all events of the watch up to and including the next bookmark.
    UntilBookmark,
    /// The answer consists of all events of the watch until the server ends it, without periodic bookmarks.
    UntilEnd,
    /// Waits until the clock shows a later second, so that times before and after it differ.
    Later,
}

/// An object of the target's kind with this name and the fields of `rest`.
pub fn object(name: &str, rest: Value) -> Value {
    let mut object = json!({"metadata": {"name": name}});
    merge(&mut object, rest);
    object
}

/// Merges `from` into an object, field by field; any other value replaces the present one.
pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

impl Sequence {
    /// A sequence without steps.
    pub fn new(area: Area, target: TargetKind, name: impl Into<String>) -> Self {
        Self { name: name.into(), area, target, steps: Vec::new() }
    }

    /// What a report and the list of differences call it.
    pub fn title(&self) -> String {
        format!("{}: {}", self.area, self.name)
    }

    /// Sends any request.
    #[must_use]
    pub fn ask(mut self, request: SequenceRequest) -> Self {
        self.steps.push(SequenceStep::Ask(request));
        self
    }

    /// Changes the last request: `.with(|r| r.query("dryRun=All"))`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(SequenceRequest) -> SequenceRequest) -> Self {
        if let Some(SequenceStep::Ask(request) | SequenceStep::Open(request)) = self.steps.last_mut() {
            *request = change(std::mem::take(request));
        }
        self
    }

    /// Adds `key=value&...` to the last request's query.
    #[must_use]
    pub fn query(self, query: &str) -> Self {
        self.with(|request| request.query(query))
    }

    /// Sets a header of the last request.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.with(|request| request.header(name, value))
    }

    /// Creates.
    #[must_use]
    pub fn post(self, object: Value) -> Self {
        self.ask(SequenceRequest::new(Method::POST, "$(collection)").object(object))
    }

    /// Reads one object.
    #[must_use]
    pub fn get(self, name: &str) -> Self {
        self.ask(SequenceRequest::new(Method::GET, &one(name)))
    }

    /// Replaces; the name may end in `/status`.
    #[must_use]
    pub fn put(self, name: &str, object: Value) -> Self {
        self.ask(SequenceRequest::new(Method::PUT, &one(name)).object(object))
    }

    /// Patches with a JSON patch; the name may end in `/status`.
    #[must_use]
    pub fn json_patch(self, name: &str, patch: Value) -> Self {
        self.patch(name, "application/json-patch+json", patch)
    }

    /// Patches with a merge patch.
    #[must_use]
    pub fn merge_patch(self, name: &str, patch: Value) -> Self {
        self.patch(name, "application/merge-patch+json", patch)
    }

    /// Patches with a strategic merge patch.
    #[must_use]
    pub fn strategic_patch(self, name: &str, patch: Value) -> Self {
        self.patch(name, "application/strategic-merge-patch+json", patch)
    }

    fn patch(self, name: &str, type_: &str, patch: Value) -> Self {
        self.ask(SequenceRequest::new(Method::PATCH, &one(name)).body(type_, patch.to_string()))
    }

    /// Applies as a manager; `configuration` gets the name, the kind and the API version where it has none.
    #[must_use]
    pub fn apply(self, name: &str, manager: &str, configuration: Value) -> Self {
        let mut whole = json!({"metadata": {"name": name.split('/').next()}});
        merge(&mut whole, configuration);
        let request = SequenceRequest::new(Method::PATCH, &one(name)).object(whole);
        self.ask(
            request.content_type("application/apply-patch+yaml").query(&format!("fieldManager={manager}")),
        )
    }

    /// Applies as a manager, taking over what others own.
    #[must_use]
    pub fn apply_by_force(self, name: &str, manager: &str, configuration: Value) -> Self {
        self.apply(name, manager, configuration).query("force=true")
    }

    /// Deletes one object.
    #[must_use]
    pub fn delete(self, name: &str) -> Self {
        self.ask(SequenceRequest::new(Method::DELETE, &one(name)))
    }

    /// Deletes one object with options in the body.
    #[must_use]
    pub fn delete_with(self, name: &str, options: Value) -> Self {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        merge(&mut body, options);
        self.delete(name).with(|request| request.body(JSON, body.to_string()))
    }

    /// Deletes what a query selects in the namespace.
    #[must_use]
    pub fn delete_collection(self, query: &str) -> Self {
        self.ask(SequenceRequest::new(Method::DELETE, "$(collection)").query(query))
    }

    /// Lists what a query selects in the namespace.
    #[must_use]
    pub fn list(self, query: &str) -> Self {
        self.ask(SequenceRequest::new(Method::GET, "$(collection)").query(query))
    }

    /// Opens a watch of the namespace.
    #[must_use]
    pub fn watch(mut self, query: &str) -> Self {
        let request = SequenceRequest::new(Method::GET, "$(collection)").query("watch=true").query(query);
        self.steps.push(SequenceStep::Open(request));
        self
    }

    /// Takes so many events of the watch that was opened last.
    #[must_use]
    pub fn events(mut self, count: usize) -> Self {
        self.steps.push(SequenceStep::Events(count));
        self
    }

    /// Takes its events until a bookmark.
    #[must_use]
    pub fn until_bookmark(mut self) -> Self {
        self.steps.push(SequenceStep::UntilBookmark);
        self
    }

    /// Takes its events until the server ends it.
    #[must_use]
    pub fn until_end(mut self) -> Self {
        self.steps.push(SequenceStep::UntilEnd);
        self
    }

    /// Waits until the clocks have gone on by a second.
    #[must_use]
    pub fn later(mut self) -> Self {
        self.steps.push(SequenceStep::Later);
        self
    }
}

fn one(name: &str) -> String {
    format!("$(collection)/{name}")
}
