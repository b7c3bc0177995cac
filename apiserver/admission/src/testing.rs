//! Test support: a kind, and writes to it in the namespace `ns`.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Kind, Names, Now};
use drydock_machinery::schema::common::{meta_schema, object, optional, text};
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::versions::Versions;
use drydock_server::admission::{AdmissionAttributes, AdmissionOperation, RequestOptions};
use drydock_server::audit::AuditContext;
use drydock_server::request::warnings::Warnings;
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::request::query::Query;
use drydock_serving::request::user::User;
use serde_json::{Value, json};

/// A kind without rules that defaults `spec.size` to 1.
pub struct Widget(Schema);

static WIDGET: LazyLock<Widget> = LazyLock::new(|| {
    let size = Schema::new("How large.", Shape::Int32);
    let spec = object("What is wanted.", "io.test.v1.WidgetSpec", vec![optional("size", 1, size)]);
    let fields = vec![
        text("apiVersion", 0, "Version."),
        text("kind", 0, "Kind."),
        optional("metadata", 1, meta_schema()),
        optional("spec", 2, spec),
    ];
    Widget(object("A widget.", "io.test.v1.Widget", fields))
});

const NAMES: Names = Names {
    group: "test.io",
    version: "v1",
    kind: "Widget",
    plural: "widgets",
    singular: "widget",
    short_names: &[],
    categories: &[],
    namespaced: true,
};

/// Returns a widget with this name and these labels.
pub fn widget(name: &str, labels: Value) -> Object {
    let meta = json!({"name": name, "namespace": "ns", "labels": labels});
    let whole = json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 3}});
    Object::from(whole.as_object().unwrap().clone())
}

/// A write of a widget.
pub struct TestRequest {
    operation: AdmissionOperation,
    new: Option<Object>,
    old: Option<Object>,
    subresource: &'static str,
    namespace: &'static str,
    user: Arc<User>,
    caller: Caller,
    query: Query,
    /// The warnings for the client.
    pub warnings: Warnings,
    audit_context: AuditContext,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// All versions of the kind; `None` if it has only one.
    pub versions: Option<Versions>,
}

impl TestRequest {
    /// The creation of a widget.
    pub fn create(new: Object) -> Self {
        Self::of(AdmissionOperation::Create, Some(new), None)
    }

    /// An update of a widget.
    pub fn update(new: Object, old: Object) -> Self {
        Self::of(AdmissionOperation::Update, Some(new), Some(old))
    }

    /// The deletion of a widget.
    pub fn delete(old: Object) -> Self {
        Self::of(AdmissionOperation::Delete, None, Some(old))
    }

    fn of(operation: AdmissionOperation, new: Option<Object>, old: Option<Object>) -> Self {
        let user = Arc::new(User { name: "ann".into(), groups: vec!["g".into()], ..User::default() });
        Self {
            operation,
            new,
            old,
            subresource: "",
            namespace: "ns",
            caller: Caller::new(user.clone(), Origin::local(Duration::from_secs(30))),
            user,
            query: Query::parse("fieldManager=me"),
            warnings: Warnings::default(),
            audit_context: AuditContext::default(),
            dry_run: false,
            versions: None,
        }
    }

    /// Sets the subresource.
    pub fn on(mut self, subresource: &'static str) -> Self {
        self.subresource = subresource;
        self
    }

    /// Sets the namespace.
    pub fn in_namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Returns the attributes for admission.
    pub fn attributes(&self) -> AdmissionAttributes<'_> {
        AdmissionAttributes {
            caller: &self.caller,
            user: &self.user,
            operation: self.operation,
            verb: "",
            kind: &*WIDGET,
            names: &NAMES,
            requested: &NAMES,
            versions: self.versions.as_ref(),
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.new.as_ref().or(self.old.as_ref()).map_or("", Object::name),
            old: self.old.as_ref(),
            new: self.new.as_ref(),
            dry_run: self.dry_run,
            options: RequestOptions::Write(&self.query),
            deadline: Instant::now() + Duration::from_secs(30),
            warnings: &self.warnings,
            audit: &self.audit_context,
        }
    }
}

impl Kind for Widget {
    fn names(&self) -> &Names {
        &NAMES
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn set_defaults(&self, object: &mut Object) {
        if let Some(Value::Object(spec)) = object.0.get_mut("spec") {
            spec.entry("size").or_insert(1.into());
        }
    }
    fn prepare_for_create(&self, _: &mut Object) {}
    fn validate_create(&self, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_update(&self, _: &mut Object, _: &Object) {}
    fn validate_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_status_update(&self, _: &mut Object, _: &Object) {}
    fn validate_status_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn columns(&self) -> &[Column] {
        &[]
    }
    fn cells(&self, _: &Object, _: Now) -> Vec<Value> {
        Vec::new()
    }
}
