//! Which user added each requester: recorded by the server in `spec.requesterUsers`, and carried by the Eviction to the
//! policies and webhooks of the host, which otherwise see only the account of the controllers.
//!
//! The record is made when a requester is added, and goes with it. A requester that is there already keeps its user,
//! whoever else asks in its name: otherwise somebody could put his request under the name of another user.

use std::collections::{BTreeMap, HashMap, HashSet};

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::types::{EvictionRequest, RequesterUser};
use crate::MAX_USERNAME_BYTES;

/// Annotations of an Eviction: this prefix and a number from 0 on. Each value is the name of a user who asks for the eviction:
/// who added a requester, or asks for a maintenance that drains the pod. It is empty if one of them is not known.
pub const USER_ANNOTATION: &str = "requester.evictionrequest.coordination.k8s.io/user-";
/// Maximum bytes of the names of users that an Eviction carries.
pub const MAX_EVICTION_BYTES: usize = 16 << 10;

const REQUESTERS: &str = "requesters";
const REQUESTER_USERS: &str = "requesterUsers";

/// Records in an object that is about to be written which user added each requester: `username` those that `old` does not
/// have. What the client sent in the record is dropped.
pub(super) fn record(new: &mut Object, old: Option<&Object>, username: &str) {
    let before: HashSet<&str> = old.into_iter().flat_map(requesters).collect();
    let recorded = old.map(recorded_users).unwrap_or_default();
    let user_of = |name: &str| match before.contains(name) {
        true => recorded.get(name).copied(),
        false => Some(username),
    };
    let record: Vec<Value> = requesters(new)
        .filter_map(|name| Some(json!({"requester": name, "username": user_of(name)?})))
        .collect();
    let Some(Value::Object(spec)) = new.0.get_mut("spec") else { return };
    if record.is_empty() {
        spec.remove(REQUESTER_USERS);
    } else {
        spec.insert(REQUESTER_USERS.to_owned(), record.into());
    }
}

/// The names of a user who adds a requester must not be longer than [`MAX_USERNAME_BYTES`]; those in `old` may.
pub(super) fn validate(new: &EvictionRequest, old: Option<&EvictionRequest>) -> ErrorList {
    let is_new = |user: &RequesterUser| old.is_none_or(|old| !old.has_requester(&user.requester));
    let is_too_long = |user: &RequesterUser| is_new(user) && user.username.len() > MAX_USERNAME_BYTES;
    let path = |at: usize| Path::new("spec").child(REQUESTER_USERS).index(at).child("username");
    let users = new.spec.requester_users.iter().enumerate();
    users
        .filter(|(_, user)| is_too_long(user))
        .map(|(at, _)| Error::too_long(path(at), MAX_USERNAME_BYTES))
        .collect()
}

/// Returns the users who added the requesters of a request, in the order of the requesters; empty for one who is not known.
pub fn users_of(request: &EvictionRequest) -> impl Iterator<Item = &str> {
    let recorded = request.spec.requester_users.iter();
    let recorded: HashMap<_, _> =
        recorded.map(|user| (user.requester.as_str(), user.username.as_str())).collect();
    let user = move |name: &str| recorded.get(name).copied().unwrap_or_default();
    request.spec.requesters.iter().map(move |requester| user(&requester.name))
}

/// Returns the annotations with which an Eviction names these users, each once and in their order. One of the values is empty
/// if a user is not known, or does not fit into [`MAX_EVICTION_BYTES`].
pub fn annotations<'u>(users: impl IntoIterator<Item = &'u str>) -> BTreeMap<String, String> {
    let (mut named, mut bytes) = (Vec::new(), 0);
    let mut seen = HashSet::new();
    for user in users {
        let fits = seen.contains(user) || bytes + user.len() <= MAX_EVICTION_BYTES;
        let user = if fits { user } else { "" };
        if seen.insert(user) {
            bytes += user.len();
            named.push(user);
        }
    }
    let annotation = |(at, user): (usize, &str)| (format!("{USER_ANNOTATION}{at}"), user.to_owned());
    named.into_iter().enumerate().map(annotation).collect()
}

/// Names of the requesters.
fn requesters(object: &Object) -> impl Iterator<Item = &str> {
    items(object, REQUESTERS).filter_map(|item| item.get("name")?.as_str())
}

/// Users by the name of their requester.
fn recorded_users(object: &Object) -> HashMap<&str, &str> {
    let items = items(object, REQUESTER_USERS);
    items
        .filter_map(|item| Some((item.get("requester")?.as_str()?, item.get("username")?.as_str()?)))
        .collect()
}

/// Items of a list of the spec.
fn items<'o>(object: &'o Object, list: &str) -> impl Iterator<Item = &'o Value> {
    object.0.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
#[path = "requester_users_tests.rs"]
mod tests;
