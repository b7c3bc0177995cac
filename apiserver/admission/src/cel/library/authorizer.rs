//! The authorizer library (k8s.io/apiserver pkg/cel/library/authz.go).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cel::common::types::{CelBool, CelString, STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal};
use cel::{DeclarationError, Env, ExecutionError};
use drydock_machinery::names::{name_is_dns_label, name_is_dns_subdomain};
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;

use super::{argument, opaque};
use crate::cel::value::Variable;

/// Authorizes an action of a user. Implementations may block.
pub trait BlockingAuthorizer: Send + Sync + 'static {
    /// Returns whether the action is allowed and why, or an error if the check failed.
    fn authorize(&self, user: &User, about: &AuthorizationAttributes) -> Result<(bool, String), String>;
}

/// A user and the authorizer to ask, shared by all values that an expression derives from it.
#[derive(Clone)]
pub struct UserAuthorizer {
    user: Arc<User>,
    authorizer: Arc<dyn BlockingAuthorizer>,
}

impl UserAuthorizer {
    /// Creates the authorizer of `user`.
    pub fn new(user: Arc<User>, authorizer: Arc<dyn BlockingAuthorizer>) -> Self {
        Self { user, authorizer }
    }
}

impl fmt::Debug for UserAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserAuthorizer").field("user", &self.user.name).finish_non_exhaustive()
    }
}

impl PartialEq for UserAuthorizer {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user
    }
}

#[derive(Clone, Debug, PartialEq)]
struct AuthorizerValue(UserAuthorizer);

#[derive(Clone, Debug, PartialEq)]
struct PathCheck(UserAuthorizer, String);

#[derive(Clone, Debug, PartialEq)]
struct GroupCheck(UserAuthorizer, String);

/// A resource check that an expression is building.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceCheck {
    user_authorizer: UserAuthorizer,
    about: AuthorizationAttributes,
}

#[derive(Clone, Debug, PartialEq)]
struct DecisionValue {
    allowed: bool,
    reason: String,
    error: Option<String>,
}

opaque!(AuthorizerValue, AUTHORIZER_TYPE, "kubernetes.authorization.Authorizer");
opaque!(PathCheck, PATH_CHECK_TYPE, "kubernetes.authorization.PathCheck");
opaque!(GroupCheck, GROUP_CHECK_TYPE, "kubernetes.authorization.GroupCheck");
opaque!(ResourceCheck, RESOURCE_CHECK_TYPE, "kubernetes.authorization.ResourceCheck");
opaque!(DecisionValue, DECISION_TYPE, "kubernetes.authorization.Decision");

/// Returns the variable `authorizer`.
pub fn authorizer(user_authorizer: UserAuthorizer) -> Variable {
    Box::new(AuthorizerValue(user_authorizer))
}

/// Returns the variable `authorizer.requestResource`.
pub fn request_resource(user_authorizer: UserAuthorizer, about: AuthorizationAttributes) -> Variable {
    Box::new(ResourceCheck {
        user_authorizer,
        about: AuthorizationAttributes { version: "*".to_owned(), ..about },
    })
}

fn type_of<T: StaticVal>() -> Type {
    T::cel_type().to_owned()
}

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let text = || vec![STRING_TYPE];
    env.add_member_overload("path", "authorizer_path", type_of::<AuthorizerValue>(), text(), |args| {
        let path = not_empty(text_of(&args, 1)?, "path")?;
        Ok(CowVal::owned(PathCheck(argument::<AuthorizerValue>(&args, 0)?.0.clone(), path)))
    })?;
    env.add_member_overload("group", "authorizer_group", type_of::<AuthorizerValue>(), text(), |args| {
        Ok(CowVal::owned(GroupCheck(
            argument::<AuthorizerValue>(&args, 0)?.0.clone(),
            text_of(&args, 1)?.to_owned(),
        )))
    })?;
    let names = vec![STRING_TYPE, STRING_TYPE];
    env.add_member_overload(
        "serviceAccount",
        "authorizer_serviceaccount",
        type_of::<AuthorizerValue>(),
        names,
        account,
    )?;
    env.add_member_overload("resource", "groupcheck_resource", type_of::<GroupCheck>(), text(), |args| {
        let GroupCheck(user_authorizer, group) = argument::<GroupCheck>(&args, 0)?.clone();
        let resource = not_empty(text_of(&args, 1)?, "resource")?;
        let about = AuthorizationAttributes {
            group,
            version: "*".to_owned(),
            resource,
            ..AuthorizationAttributes::default()
        };
        Ok(CowVal::owned(ResourceCheck { user_authorizer, about }))
    })?;
    env.add_member_overload(
        "subresource",
        "resourcecheck_subresource",
        type_of::<ResourceCheck>(),
        text(),
        |args| with(&args, |about, text| about.subresource = text),
    )?;
    env.add_member_overload(
        "namespace",
        "resourcecheck_namespace",
        type_of::<ResourceCheck>(),
        text(),
        |args| with(&args, |about, text| about.namespace = text),
    )?;
    env.add_member_overload("name", "resourcecheck_name", type_of::<ResourceCheck>(), text(), |args| {
        with(&args, |about, text| about.name = text)
    })?;
    env.add_member_overload(
        "fieldSelector",
        "authorizer_fieldselector",
        type_of::<ResourceCheck>(),
        text(),
        |args| with(&args, |about, text| about.field_selector = Some(text).filter(|text| !text.is_empty())),
    )?;
    env.add_member_overload(
        "labelSelector",
        "authorizer_labelselector",
        type_of::<ResourceCheck>(),
        text(),
        |args| with(&args, |about, text| about.label_selector = Some(text).filter(|text| !text.is_empty())),
    )?;
    declare_decisions(env)
}

fn declare_decisions(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("@check", "pathcheck_check", vec![type_of::<PathCheck>(), STRING_TYPE], |args| {
        let PathCheck(user_authorizer, path) = argument::<PathCheck>(&args, 0)?;
        let verb = text_of(&args, 1)?.to_owned();
        Ok(CowVal::owned(decide(
            user_authorizer,
            &AuthorizationAttributes { path: path.clone(), verb, ..AuthorizationAttributes::default() },
        )))
    })?;
    env.add_overload(
        "@check",
        "resourcecheck_check",
        vec![type_of::<ResourceCheck>(), STRING_TYPE],
        |args| {
            let ResourceCheck { user_authorizer, about } = argument::<ResourceCheck>(&args, 0)?;
            let verb = text_of(&args, 1)?.to_owned();
            Ok(CowVal::owned(decide(user_authorizer, &AuthorizationAttributes { verb, ..about.clone() })))
        },
    )?;
    let decision = type_of::<DecisionValue>;
    env.add_member_overload("allowed", "decision_allowed", decision(), vec![], |args| {
        Ok(CowVal::owned(CelBool::from(argument::<DecisionValue>(&args, 0)?.allowed)))
    })?;
    env.add_member_overload("reason", "decision_reason", decision(), vec![], |args| {
        Ok(CowVal::owned(CelString::from(argument::<DecisionValue>(&args, 0)?.reason.clone())))
    })?;
    env.add_member_overload("errored", "decision_errored", decision(), vec![], |args| {
        Ok(CowVal::owned(CelBool::from(argument::<DecisionValue>(&args, 0)?.error.is_some())))
    })?;
    env.add_member_overload("error", "decision_error", decision(), vec![], |args| {
        let error = argument::<DecisionValue>(&args, 0)?.error.clone();
        Ok(CowVal::owned(CelString::from(error.unwrap_or_default())))
    })
}

fn account<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (namespace, name) = (text_of(&args, 1)?, text_of(&args, 2)?);
    let refused = |what: &str| {
        ExecutionError::function_error("serviceAccount", format!("Invalid service account {what}"))
    };
    if !name_is_dns_subdomain(name, false).is_empty() {
        return Err(refused("name"));
    }
    if !name_is_dns_label(namespace, false).is_empty() {
        return Err(refused("namespace"));
    }
    let user = User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        uid: String::new(),
        extra: BTreeMap::new(),
    };
    let authorizer = argument::<AuthorizerValue>(&args, 0)?.0.authorizer.clone();
    Ok(CowVal::owned(AuthorizerValue(UserAuthorizer::new(Arc::new(user), authorizer))))
}

fn with<'b, 'v>(
    args: &[CowVal<'_, '_>],
    set: fn(&mut AuthorizationAttributes, String),
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut check = argument::<ResourceCheck>(args, 0)?.clone();
    set(&mut check.about, text_of(args, 1)?.to_owned());
    Ok(CowVal::owned(check))
}

fn decide(user_authorizer: &UserAuthorizer, about: &AuthorizationAttributes) -> DecisionValue {
    match user_authorizer.authorizer.authorize(&user_authorizer.user, about) {
        Ok((allowed, reason)) => DecisionValue { allowed, reason, error: None },
        Err(why) => DecisionValue { allowed: false, reason: String::new(), error: Some(why) },
    }
}

fn not_empty(text: &str, what: &str) -> Result<String, ExecutionError> {
    if text.trim().is_empty() {
        return Err(ExecutionError::function_error(what, format!("{what} must not be empty")));
    }
    Ok(text.to_owned())
}

fn text_of<'a>(args: &'a [CowVal<'_, '_>], index: usize) -> Result<&'a str, ExecutionError> {
    Ok(argument::<CelString>(args, index)?.inner())
}
