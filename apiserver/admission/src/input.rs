//! What expressions and webhooks see of one request: its variables, its AdmissionRequest, and the authorizer of its
//! caller.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::kind::Names;
use drydock_server::admission::AdmissionAttributes;
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::request::user::User;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use crate::cel::library::{BlockingAuthorizer, UserAuthorizer, authorizer, request_resource};
use crate::cel::{Activation, ComposedVariable, Variable, of_json};

/// The variables of all expressions.
pub const COMMON: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];
/// The variables of expressions that may use the authorizer.
pub const AUTHORIZER: [&str; 2] = ["authorizer", "authorizer.requestResource"];

/// A copy of one request that can be sent to another thread.
#[derive(Clone)]
pub struct Input {
    object: Value,
    old: Value,
    request: Value,
    user: Arc<User>,
    about: AuthorizationAttributes,
    authorizer: Arc<dyn BlockingAuthorizer>,
}

impl Input {
    /// Copies the variables of `request`.
    pub fn new(request: &AdmissionAttributes<'_>, authorizer: Arc<dyn BlockingAuthorizer>) -> Self {
        let value = |object: Option<&Object>| object.map_or(Value::Null, Object::to_value);
        Self {
            object: value(request.new),
            old: value(request.old),
            request: Value::Object(admission_request(request, "")),
            user: request.user.clone(),
            about: AuthorizationAttributes {
                group: request.names.group.to_owned(),
                resource: request.names.plural.to_owned(),
                subresource: request.subresource.to_owned(),
                namespace: request.namespace.to_owned(),
                name: request.name.to_owned(),
                ..AuthorizationAttributes::default()
            },
            authorizer,
        }
    }

    /// Returns an activation for expressions, with a namespace and parameters if there are any.
    pub fn activation(
        &self,
        namespace: &Value,
        params: Option<&Value>,
        composed: Arc<[ComposedVariable]>,
        budget: i64,
    ) -> Result<Activation, String> {
        let user_authorizer = || UserAuthorizer::new(self.user.clone(), self.authorizer.clone());
        let variables: Vec<(&'static str, Variable)> = vec![
            ("object", of_json(&self.object)),
            ("oldObject", of_json(&self.old)),
            ("request", of_json(&self.request)),
            ("namespaceObject", of_json(namespace)),
            ("params", of_json(params.unwrap_or(&Value::Null))),
            ("authorizer", authorizer(user_authorizer())),
            ("authorizer.requestResource", request_resource(user_authorizer(), self.about.clone())),
        ];
        Activation::new(variables, composed, budget)
    }
}

/// Returns the authorizer for the expressions about a request of this caller.
pub type AuthorizerFactory = Arc<dyn Fn(&Caller) -> Arc<dyn BlockingAuthorizer> + Send + Sync>;

/// Asks the server's authorizer on behalf of a caller: the expression blocks its own thread, while the check runs on
/// the async runtime.
struct CallerAuthorizer {
    authorizer: Arc<Authorizer>,
    runtime: Handle,
    caller: Caller,
}

/// Returns a function that creates the authorizer of each caller. Must be called on the runtime that runs the checks.
pub fn authorizer_factory(authorizer: Arc<Authorizer>) -> AuthorizerFactory {
    let runtime = Handle::current();
    Arc::new(move |caller| {
        let (authorizer, runtime) = (authorizer.clone(), runtime.clone());
        Arc::new(CallerAuthorizer { authorizer, runtime, caller: caller.clone() })
    })
}

impl BlockingAuthorizer for CallerAuthorizer {
    fn authorize(&self, user: &User, about: &AuthorizationAttributes) -> Result<(bool, String), String> {
        let decision = self.runtime.block_on(self.authorizer.authorize(&self.caller, user, about));
        decision.map(|decision| (decision.allowed, decision.reason)).map_err(|error| error.to_string())
    }
}

/// Returns the AdmissionRequest of admission.k8s.io/v1 without the objects (k8s.io/apiserver
/// pkg/admission/plugin/cel/condition.go, CreateAdmissionRequest; plugin/webhook/request). Omits empty fields like
/// Go's `omitempty`.
pub fn admission_request(request: &AdmissionAttributes<'_>, uid: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |field: &str, value: Value| all.insert(field.to_owned(), value);
    put("uid", uid.into());
    put("kind", kind(request.names));
    put("resource", resource(request.names));
    put("requestKind", kind(request.requested));
    put("requestResource", resource(request.requested));
    put("operation", request.operation.as_str().into());
    put("userInfo", user_info(request.user));
    put("dryRun", request.dry_run.into());
    put("options", request.options.to_json(request.operation));
    for (field, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace),
    ] {
        if !text.is_empty() {
            put(field, text.into());
        }
    }
    all
}

fn kind(names: &Names) -> Value {
    json!({"group": names.group, "version": names.version, "kind": names.kind})
}

fn resource(names: &Names) -> Value {
    json!({"group": names.group, "version": names.version, "resource": names.plural})
}

fn user_info(user: &User) -> Value {
    let mut all = Map::new();
    let mut put = |field: &str, value: Value, empty: bool| {
        if !empty {
            all.insert(field.to_owned(), value);
        }
    };
    put("username", user.name.as_str().into(), user.name.is_empty());
    put("uid", user.uid.as_str().into(), user.uid.is_empty());
    put("groups", user.groups.clone().into(), user.groups.is_empty());
    put("extra", json!(user.extra), user.extra.is_empty());
    Value::Object(all)
}
