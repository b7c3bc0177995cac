//! Acting as somebody else: the caller asks for it by headers, and must be allowed to `impersonate` each of the user,
//! the groups and the extras that the headers name (k8s.io/apiserver pkg/endpoints/filters/impersonation).

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_machinery::{ApiError, names};
use http::{HeaderMap, HeaderName};

use super::headers::{first, keys_under};
use super::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use crate::authz::{Attributes, Authorizer};
use crate::user::User;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// Group of the resources that only impersonation knows.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user that `caller` acts as: itself without such headers. They are taken off the request.
pub async fn act_as(
    caller: Arc<User>,
    headers: &mut HeaderMap,
    authorizer: &Authorizer,
) -> Result<Arc<User>, ApiError> {
    let Some(wanted) = wanted(headers)? else { return Ok(caller) };
    for question in questions(&wanted) {
        authorizer.require(&caller, &question).await?;
    }
    strip(headers);
    tracing::debug!(caller = caller.name, user = wanted.name, "impersonation");
    Ok(Arc::new(completed(wanted)))
}

/// Whom the headers name; 400 if they name groups or more of nobody.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let name = first(headers, USER.as_str());
    let groups = values(headers, &GROUP);
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, key) in keys_under(headers, EXTRA) {
        extra.entry(key).or_default().extend(values(headers, &header));
    }
    let uid = first(headers, UID.as_str()).unwrap_or_default();
    match name {
        Some(name) => Ok(Some(User { name, uid, groups, extra })),
        None if groups.is_empty() && extra.is_empty() && uid.is_empty() => Ok(None),
        None => {
            let message = "the request impersonates groups, a uid or extras without impersonating a user";
            Err(ApiError::bad_request(message))
        }
    }
}

/// Empty values too: they are asked about, as everything that the headers say.
fn values(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// What the caller must be allowed.
fn questions(wanted: &User) -> Vec<Attributes> {
    let mut questions = vec![match service_account(&wanted.name) {
        Some((namespace, name)) => {
            Attributes { namespace: namespace.to_owned(), ..question("", "serviceaccounts", name) }
        }
        None => question("", "users", &wanted.name),
    }];
    questions.extend(wanted.groups.iter().map(|group| question("", "groups", group)));
    for (key, values) in &wanted.extra {
        questions.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..question(AUTHENTICATION, "userextras", value)
        }));
    }
    if !wanted.uid.is_empty() {
        questions.push(question(AUTHENTICATION, "uids", &wanted.uid));
    }
    questions
}

fn question(group: &str, resource: &str, name: &str) -> Attributes {
    Attributes {
        verb: "impersonate".to_owned(),
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}

/// Namespace and name of a service account, if the user name is well-formed as one.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let well_formed = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    well_formed.then_some((namespace, name))
}

/// The groups that every user of the kind is in.
fn completed(mut user: User) -> User {
    if let (Some((namespace, _)), true) = (service_account(&user.name), user.groups.is_empty()) {
        user.groups = vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")];
    }
    let everybody = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.is_in(everybody) && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(everybody.to_owned());
    }
    user
}

fn strip(headers: &mut HeaderMap) {
    for name in [USER, GROUP, UID] {
        headers.remove(name);
    }
    for (name, _) in keys_under(headers, EXTRA) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static(value));
        }
        headers
    }

    fn asked(pairs: &[(&str, &'static str)]) -> Vec<String> {
        let questions = questions(&wanted(&headers(pairs)).unwrap().unwrap());
        let shown = |q: &Attributes| {
            format!("{}/{}/{}/{}/{}", q.group, q.resource, q.subresource, q.namespace, q.name)
        };
        questions.iter().map(shown).collect()
    }

    #[test]
    fn every_header_is_a_question() {
        let sent = [
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "system:masters"),
            ("impersonate-uid", "7"),
            ("Impersonate-Extra-Example.com%2FScope", "read"),
        ];
        assert_eq!(
            asked(&sent),
            [
                "/users///jane",
                "/groups///a",
                "/groups///system:masters",
                "authentication.k8s.io/userextras/example.com/scope//read",
                "authentication.k8s.io/uids///7",
            ]
        );
    }

    #[test]
    fn a_service_account_is_asked_about_as_one_and_has_its_groups() {
        let sent = [("impersonate-user", "system:serviceaccount:ns:robot")];
        assert_eq!(asked(&sent), ["/serviceaccounts//ns/robot"]);
        let user = completed(wanted(&headers(&sent)).unwrap().unwrap());
        let groups = ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"];
        assert_eq!(user.groups, groups);
        assert_eq!(
            asked(&[("impersonate-user", "system:serviceaccount:NS:a:b")]),
            ["/users///system:serviceaccount:NS:a:b"]
        );
    }

    #[test]
    fn groups_of_nobody_are_refused_and_no_headers_change_nothing() {
        for (name, value) in
            [("impersonate-group", "system:masters"), ("impersonate-uid", "7"), ("impersonate-extra-a", "")]
        {
            assert_eq!(wanted(&headers(&[(name, value)])).unwrap_err().code(), 400, "{name}");
        }
        assert_eq!(wanted(&headers(&[("accept", "*/*")])).unwrap(), None);
    }

    #[test]
    fn the_anonymous_user_is_not_authenticated() {
        let user = completed(wanted(&headers(&[("impersonate-user", ANONYMOUS)])).unwrap().unwrap());
        assert_eq!(user.groups, [UNAUTHENTICATED]);
    }
}
