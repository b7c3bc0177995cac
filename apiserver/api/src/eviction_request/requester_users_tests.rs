//! Users of requesters.

#![allow(clippy::unwrap_used)]
use super::super::validation::{validate_create, validate_update};
use super::*;

fn request(requesters: &[&str], users: &[(&str, &str)]) -> Object {
    let requesters: Vec<Value> = requesters.iter().map(|name| json!({ "name": name })).collect();
    let mut spec = json!({"target": {"pod": {"name": "p", "uid": "u"}}, "requesters": requesters});
    if !users.is_empty() {
        spec[REQUESTER_USERS] =
            users.iter().map(|(name, user)| json!({"requester": name, "username": user})).collect();
    }
    let object = json!({"metadata": {"name": "u", "namespace": "ns"}, "spec": spec});
    Object::from(object.as_object().unwrap().clone())
}

fn typed(object: &Object) -> EvictionRequest {
    serde_json::from_value(object.to_value()).unwrap()
}

/// The new state as it is stored when `username` writes it.
fn written(new: Object, old: Option<&Object>, username: &str) -> Object {
    let mut new = new;
    record(&mut new, old, username);
    new
}

#[test]
fn the_user_who_adds_a_requester_is_recorded_whatever_a_client_sends() {
    let forged = request(&["a.example", "b.example"], &[("a.example", "ann"), ("c.example", "ann")]);
    let made = written(forged, None, "bob");
    assert_eq!(made, request(&["a.example", "b.example"], &[("a.example", "bob"), ("b.example", "bob")]));
    let all = [("a.example", "ann"), ("b.example", "ann"), ("c.example", "ann")];
    let more = written(request(&["a.example", "b.example", "c.example"], &all), Some(&made), "eve");
    let users = [("a.example", "bob"), ("b.example", "bob"), ("c.example", "eve")];
    assert_eq!(more, request(&["a.example", "b.example", "c.example"], &users));
}

#[test]
fn a_requester_keeps_its_user_until_it_is_removed() {
    let made = written(request(&["a.example"], &[]), None, "bob");
    let same = written(request(&["a.example"], &[]), Some(&made), "ann");
    assert_eq!(same, made, "who writes it again, or drops the record, changes nothing");
    let withdrawn = written(request(&[], &[("a.example", "bob")]), Some(&same), "ann");
    assert_eq!(withdrawn, request(&[], &[]));
    let again = written(request(&["a.example"], &[]), Some(&withdrawn), "ann");
    assert_eq!(again, request(&["a.example"], &[("a.example", "ann")]));
}

/// It was stored before users were recorded: whoever wrote the request next would have been its user.
#[test]
fn a_requester_without_a_user_gets_none() {
    let old = request(&["old.example"], &[]);
    let new = written(request(&["old.example", "new.example"], &[("old.example", "ann")]), Some(&old), "bob");
    assert_eq!(new, request(&["old.example", "new.example"], &[("new.example", "bob")]));
    assert_eq!(users_of(&typed(&new)).collect::<Vec<_>>(), ["", "bob"]);
}

#[test]
fn what_is_no_request_is_left_as_it_is() {
    for spec in [json!(7), json!({}), json!({"requesters": "x"}), json!({"requesters": [7, {}, {"name": 1}]})]
    {
        let object = Object::from(json!({ "spec": spec }).as_object().unwrap().clone());
        assert_eq!(written(object.clone(), None, "bob"), object);
        assert_eq!(written(object.clone(), Some(&Object::default()), "bob"), object);
    }
    assert_eq!(written(Object::default(), None, "bob"), Object::default());
}

#[test]
fn a_user_with_a_name_that_is_too_long_adds_no_requester() {
    let by = |length: usize| written(request(&["a.example"], &[]), None, &"u".repeat(length));
    let words = "spec.requesterUsers[0].username: Too long: may not be more than 1024 bytes";
    let said = |errors: ErrorList| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(validate_create(&typed(&by(MAX_USERNAME_BYTES))), ErrorList::new());
    let long = by(MAX_USERNAME_BYTES + 1);
    assert_eq!(said(validate_create(&typed(&long))), [words]);
    assert_eq!(said(validate_update(&typed(&long), &typed(&request(&[], &[])))), [words]);
    assert_eq!(validate_update(&typed(&long), &typed(&long)), ErrorList::new(), "one that is stored stays");
}

#[test]
fn an_eviction_names_each_user_once_and_says_if_one_is_not_known() {
    let users = [("a.example", "bob"), ("b.example", "ann"), ("c.example", "bob")];
    let of = |request: &Object| annotations(users_of(&typed(request)));
    let key = |at: usize| format!("{USER_ANNOTATION}{at}");
    let three = ["a.example", "b.example", "c.example"];
    assert_eq!(of(&request(&three, &users)), [(key(0), "bob".into()), (key(1), "ann".into())].into());
    let unknown = of(&request(&three, &users[..1]));
    assert_eq!(unknown, [(key(0), "bob".into()), (key(1), String::new())].into());
    assert_eq!(annotations([]), BTreeMap::new());
}

/// A hundred requesters of long names would have made each attempt of an eviction 100 KiB.
#[test]
fn the_users_that_an_eviction_names_are_bounded() {
    let users: Vec<String> =
        (0..100).map(|at| format!("{at:0>width$}", width = MAX_USERNAME_BYTES)).collect();
    let named = annotations(users.iter().map(String::as_str).chain(["short", users[0].as_str()]));
    let bytes: usize = named.values().map(String::len).sum();
    assert_eq!((named.len(), bytes), (17, MAX_EVICTION_BYTES));
    assert_eq!(named.values().filter(|user| user.is_empty()).count(), 1, "{named:?}");
}
