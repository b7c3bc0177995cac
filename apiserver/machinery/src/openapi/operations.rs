//! Paths and operations of a kind, with the names of k8s.io/apiserver's installer.

use serde_json::{Map, Value, json};

use super::definitions::{definition_name, published_parameter, reference};
use crate::kind::{Kind, Names};

/// Content types of PATCH. kubectl applies by strategic merge only if it is listed.
pub const PATCH_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const PRODUCES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const DELETE: [&str; 6] = [
    "body (delete)",
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH: [&str; 5] = ["body (patch)", "dryRun", "fieldManager (patch)", "fieldValidation", "force"];

/// Adds all paths of a kind, and the path of its group and version.
pub(super) fn add_paths(paths: &mut Map<String, Value>, kind: &dyn Kind) {
    let names = kind.names();
    let root = format!("/apis/{}", names.api_version());
    paths.entry(format!("{root}/")).or_insert_with(|| resources(names));
    let of = Operations { names, definition: definition_name(kind) };
    let collection = match names.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", names.plural),
        false => format!("{root}/{}", names.plural),
    };
    if kind.has_status() {
        paths.insert(format!("{collection}/{{name}}/status"), of.status());
    }
    paths.insert(format!("{collection}/{{name}}"), of.object());
    paths.insert(collection, of.collection());
    if names.namespaced {
        paths.insert(format!("{root}/{}", names.plural), of.all_namespaces());
    }
}

fn resources(names: &Names) -> Value {
    let list = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
    json!({"get": {
        "description": "get available resources",
        "operationId": format!("get{}APIResources", prefix(names)),
        "consumes": PRODUCES,
        "produces": PRODUCES,
        "responses": responses(&[200], reference(list)),
        "schemes": ["https"],
        "tags": [tag(names)],
    }})
}

struct Operations<'k> {
    names: &'k Names,
    definition: &'static str,
}

impl Operations<'_> {
    fn all_namespaces(&self) -> Value {
        let id = format!("list{}{}ForAllNamespaces", prefix(self.names), self.names.kind);
        let mut parameters = parameters(&LIST);
        parameters.push(published_parameter("pretty"));
        json!({"get": self.list(&id, Vec::new()), "parameters": parameters})
    }

    fn collection(&self) -> Value {
        let kind = self.names.kind;
        let list_id = self.id("list", "");
        let delete_id = format!("delete{}Collection{}{kind}", prefix(self.names), self.scope());
        let mut delete = parameters(&DELETE);
        delete.extend(
            LIST.iter()
                .filter(|p| !matches!(**p, "allowWatchBookmarks" | "watch"))
                .map(|p| published_parameter(p)),
        );
        json!({
            "get": self.list(&list_id, parameters(&LIST)),
            "post": self.write("post", &self.id("create", ""), &format!("create {} {kind}", article(kind)), &[200, 201, 202]),
            "delete": self.operation("deletecollection", &delete_id, &format!("delete collection of {kind}"), delete, responses(&[200], status())),
            "parameters": self.path_parameters(false),
        })
    }

    fn object(&self) -> Value {
        let kind = self.names.kind;
        let what = format!("delete {} {kind}", article(kind));
        let mut item = self.one("", "the specified");
        item["delete"] = self.operation(
            "delete",
            &self.id("delete", ""),
            &what,
            parameters(&DELETE),
            responses(&[200, 202], status()),
        );
        item
    }

    fn status(&self) -> Value {
        self.one("Status", "status of the specified")
    }

    /// Returns the operations on one object or its status.
    fn one(&self, suffix: &str, what: &str) -> Value {
        let kind = self.names.kind;
        let read = self.operation(
            "get",
            &self.id("read", suffix),
            &format!("read {what} {kind}"),
            Vec::new(),
            responses(&[200], self.reference()),
        );
        let mut patch = self.operation(
            "patch",
            &self.id("patch", suffix),
            &format!("partially update {what} {kind}"),
            parameters(&PATCH),
            responses(&[200, 201], self.reference()),
        );
        patch["consumes"] = json!(PATCH_TYPES);
        json!({
            "get": read,
            "patch": patch,
            "put": self.write("put", &self.id("replace", suffix), &format!("replace {what} {kind}"), &[200, 201]),
            "parameters": self.path_parameters(true),
        })
    }

    fn list(&self, id: &str, parameters: Vec<Value>) -> Value {
        let what = format!("list or watch objects of kind {}", self.names.kind);
        let list = reference(&format!("{}List", self.definition));
        let mut operation = self.operation("list", id, &what, parameters, responses(&[200], list));
        operation["produces"] = json!([PRODUCES.as_slice(), STREAMS.as_slice()].concat());
        operation
    }

    fn write(&self, action: &str, id: &str, what: &str, codes: &[u16]) -> Value {
        let body = json!({"in": "body", "name": "body", "required": true, "schema": self.reference()});
        let parameters = std::iter::once(body).chain(parameters(&WRITE)).collect();
        self.operation(action, id, what, parameters, responses(codes, self.reference()))
    }

    fn operation(
        &self,
        action: &str,
        id: &str,
        what: &str,
        parameters: Vec<Value>,
        responses: Value,
    ) -> Value {
        let names = self.names;
        let mut operation = json!({
            "description": what,
            "operationId": id,
            "consumes": ["*/*"],
            "produces": PRODUCES,
            "responses": responses,
            "schemes": ["https"],
            "tags": [tag(names)],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": names.group, "version": names.version, "kind": names.kind},
        });
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }

    fn path_parameters(&self, named: bool) -> Vec<Value> {
        let description = format!("name of the {}", self.names.kind);
        let name = json!({"description": description, "in": "path", "name": "name", "required": true, "type": "string", "uniqueItems": true});
        let namespace = self.names.namespaced.then(|| published_parameter("namespace"));
        named.then_some(name).into_iter().chain(namespace).chain([published_parameter("pretty")]).collect()
    }

    fn id(&self, verb: &str, suffix: &str) -> String {
        format!("{verb}{}{}{}{suffix}", prefix(self.names), self.scope(), self.names.kind)
    }

    fn scope(&self) -> &'static str {
        if self.names.namespaced { "Namespaced" } else { "" }
    }

    fn reference(&self) -> Value {
        reference(self.definition)
    }
}

fn status() -> Value {
    reference("io.k8s.apimachinery.pkg.apis.meta.v1.Status")
}

fn parameters(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| published_parameter(name)).collect()
}

fn responses(codes: &[u16], schema: Value) -> Value {
    let text = |code: u16| match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    };
    let mut responses: Map<_, _> = codes
        .iter()
        .map(|code| (code.to_string(), json!({"description": text(*code), "schema": schema})))
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(responses)
}

/// Returns `CoordinationV1alpha1`: the group without `.k8s.io`, and the version.
fn prefix(names: &Names) -> String {
    let segments = short_group(names).split('.').chain([names.version]);
    segments.map(capitalize).collect()
}

/// `coordination_v1alpha1`
fn tag(names: &Names) -> String {
    format!("{}_{}", capitalized_after_first(short_group(names)), names.version)
}

fn short_group(names: &Names) -> &'static str {
    names.group.strip_suffix(".k8s.io").unwrap_or(names.group)
}

fn capitalized_after_first(group: &str) -> String {
    let (first, rest) = group.split_once('.').unwrap_or((group, ""));
    first.chars().chain(rest.split('.').flat_map(|s| capitalize(s).chars().collect::<Vec<_>>())).collect()
}

fn capitalize(segment: &str) -> String {
    let mut chars = segment.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}
