//! What is asked about: a resource or a path (k8s.io/apiserver pkg/authorization/authorizer).

use drydock_machinery::ApiError;
use drydock_machinery::quote::go_quote;
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReviewSpec,
};

use super::Decision;
use crate::request::info::{PROBE_PATHS, RequestInfo};
use crate::request::user::User;

/// One question to the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationAttributes {
    /// `get`, `list`, `create`, ...
    pub verb: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource; empty when the question is about `path`.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Object.
    pub name: String,
    /// URL path of a request that is about no resource.
    pub path: String,
    /// Raw label selector of a collection request.
    pub label_selector: Option<String>,
    /// Raw field selector of a collection request.
    pub field_selector: Option<String>,
}

impl From<&RequestInfo> for AuthorizationAttributes {
    fn from(info: &RequestInfo) -> Self {
        if !info.is_resource {
            return Self { verb: info.verb.to_string(), path: info.path.clone(), ..Self::default() };
        }
        Self {
            verb: info.verb.to_string(),
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            path: info.path.clone(),
            label_selector: info.label_selector.clone().filter(|s| !s.is_empty()),
            field_selector: info.field_selector.clone().filter(|s| !s.is_empty()),
        }
    }
}

impl AuthorizationAttributes {
    /// Whether this is about exactly one of the paths of probes, whatever the verb (k8s.io/apiserver
    /// pkg/authorization/path).
    pub(crate) fn is_probe_path(&self) -> bool {
        self.resource.is_empty() && PROBE_PATHS.contains(&self.path.as_str())
    }

    /// Returns the questions about more than this one, the widest first: the same without namespace and name, and without
    /// the name. A question that is as wide itself is left out. A path has none.
    pub(super) fn wider(&self) -> impl Iterator<Item = Self> + use<> {
        let is_in = |text: &str| !self.resource.is_empty() && !text.is_empty();
        let (in_namespace, is_named) = (is_in(&self.namespace), is_in(&self.name));
        let unnamed = || Self { name: String::new(), ..self.clone() };
        let everywhere = (in_namespace || is_named).then(|| Self { namespace: String::new(), ..unnamed() });
        let of_namespace = (in_namespace && is_named).then(unnamed);
        everywhere.into_iter().chain(of_namespace)
    }

    /// The review to send.
    pub fn review(&self, user: &User) -> SubjectAccessReviewSpec {
        let resource = !self.resource.is_empty();
        SubjectAccessReviewSpec {
            user: some(&user.name),
            uid: some(&user.uid),
            groups: Some(user.groups.clone()).filter(|g| !g.is_empty()),
            extra: Some(user.extra.clone()).filter(|e| !e.is_empty()),
            resource_attributes: resource.then(|| self.resource_attributes()),
            non_resource_attributes: (!resource)
                .then(|| NonResourceAttributes { path: some(&self.path), verb: some(&self.verb) }),
        }
    }

    fn resource_attributes(&self) -> ResourceAttributes {
        let raw_field = |raw| FieldSelectorAttributes { raw_selector: Some(raw), requirements: None };
        let raw_label = |raw| LabelSelectorAttributes { raw_selector: Some(raw), requirements: None };
        ResourceAttributes {
            verb: some(&self.verb),
            group: some(&self.group),
            version: some(&self.version),
            resource: some(&self.resource),
            subresource: some(&self.subresource),
            namespace: some(&self.namespace),
            name: some(&self.name),
            field_selector: self.field_selector.clone().map(raw_field),
            label_selector: self.label_selector.clone().map(raw_label),
        }
    }

    /// Returns 403 if the decision is a denial.
    pub fn allowed(&self, user: &User, decision: &Decision) -> Result<(), ApiError> {
        if decision.allowed { Ok(()) } else { Err(self.forbidden(user, &decision.reason)) }
    }

    /// 403 with the host's message (k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go).
    pub fn forbidden(&self, user: &User, reason: &str) -> ApiError {
        let mut message = self.denial(user);
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        ApiError::forbidden(&self.group, &self.resource, &self.name, &message)
    }

    /// The host's message of a denial, without a reason.
    pub fn denial(&self, user: &User) -> String {
        let message = if self.resource.is_empty() {
            let (user, path) = (go_quote(&user.name), go_quote(&self.path));
            format!("User {user} cannot {} path {path}", self.verb)
        } else {
            self.cannot(&user.name)
        };
        message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }

    fn cannot(&self, user: &str) -> String {
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let scope = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", go_quote(namespace)),
        };
        let [user, resource, group] = [user, &resource, &self.group].map(go_quote);
        format!("User {user} cannot {} resource {resource} in API group {group} {scope}", self.verb)
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
