//! The variables that expressions about one request can use.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_server::admission::AdmissionAttributes;
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;
use serde_json::Value;

use crate::cel::library::{BlockingAuthorizer, UserAuthorizer, authorizer, request_resource};
use crate::cel::{Activation, ComposedVariable, Variable, of_json};
use crate::request::admission_request;

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
