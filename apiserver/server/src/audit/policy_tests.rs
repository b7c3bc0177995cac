//! Which rule decides on a request (k8s.io/apiserver pkg/audit/policy/checker_test.go).

use drydock_serving::request::info::RequestInfo;

use super::*;

fn user() -> User {
    User { name: "ann".into(), groups: vec!["a".into(), "b".into()], ..User::default() }
}

fn info(method: &str, uri: &str) -> RequestInfo {
    let (Ok(method), Ok(uri)) = (method.parse(), uri.parse()) else { panic!("{method} {uri}") };
    RequestInfo::parse(&method, &uri)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rule() -> Rule {
    Rule { level: Level::Metadata, ..Rule::default() }
}

fn of(group: &str, resources: &[&str], names: &[&str]) -> Rule {
    let [resources, resource_names] = [resources, names].map(strings);
    Rule { resources: vec![GroupResources { group: group.into(), resources, resource_names }], ..rule() }
}

const OBJECT: &str = "/apis/g.io/v1/namespaces/ns/things/x";
const STATUS: &str = "/apis/g.io/v1/namespaces/ns/things/x/status";

#[track_caller]
fn matches(rule: &Rule, uri: &str, expected: bool) {
    assert_eq!(rule.matches(Some(&user()), &info("GET", uri)), expected, "{rule:?} {uri}");
}

#[test]
fn a_resource_is_named_with_its_subresource_or_by_a_star() {
    for (pattern, object, status) in [
        ("things", true, false),
        ("things/status", false, true),
        ("things/*", true, true),
        ("*/status", false, true),
        ("*", true, true),
        ("others", false, false),
        ("*/scale", false, false),
    ] {
        matches(&of("g.io", &[pattern], &[]), OBJECT, object);
        matches(&of("*", &[pattern], &[]), STATUS, status);
        matches(&of("", &[pattern], &[]), OBJECT, false);
    }
    matches(&of("g.io", &[], &[]), STATUS, true);
    matches(&of("g.io", &["*"], &["x"]), OBJECT, true);
    matches(&of("g.io", &["*"], &["y"]), OBJECT, false);
    matches(&of("g.io", &["*"], &[]), "/healthz", false);
}

#[test]
fn namespaces_are_those_of_resources_and_the_empty_one_is_the_cluster() {
    let within = |namespace: &str| Rule { namespaces: strings(&[namespace]), ..rule() };
    matches(&within("ns"), OBJECT, true);
    matches(&within("other"), OBJECT, false);
    matches(&within(""), "/apis/g.io/v1/others/x", true);
    matches(&within(""), "/healthz", false);
}

#[test]
fn a_url_is_of_no_resource_and_may_end_in_a_star() {
    let at = |url: &str| Rule { non_resource_urls: strings(&[url]), ..rule() };
    for (url, path, expected) in [
        ("/healthz*", "/healthz/ping", true),
        ("/healthz", "/healthz/ping", false),
        ("/healthz", "/healthz", true),
        ("*", "/metrics", true),
        ("*", OBJECT, false),
    ] {
        matches(&at(url), path, expected);
    }
    matches(&rule(), OBJECT, true);
    matches(&rule(), "/healthz", true);
}

#[test]
fn users_groups_and_verbs_must_all_match_and_nobody_is_no_user() {
    let ann = Rule { users: strings(&["ann"]), user_groups: strings(&["b", "c"]), ..rule() };
    matches(&ann, OBJECT, true);
    matches(&Rule { verbs: strings(&["list"]), ..ann.clone() }, OBJECT, false);
    matches(&Rule { verbs: strings(&["get"]), ..ann.clone() }, OBJECT, true);
    matches(&Rule { users: strings(&["bob"]), ..ann.clone() }, OBJECT, false);
    matches(&Rule { user_groups: strings(&["c"]), ..ann.clone() }, OBJECT, false);
    assert!(!ann.matches(None, &info("GET", OBJECT)) && rule().matches(None, &info("GET", OBJECT)));
}

#[test]
fn of_two_configurations_what_one_logs_is_logged() {
    let config = |level: Level, omit_stages: &[AuditStage], omit_managed_fields: bool| RequestAuditConfig {
        level,
        omit_stages: omit_stages.to_vec(),
        omit_managed_fields,
    };
    let none = config(Level::None, &[], false);
    let mute = config(Level::Request, &[AuditStage::RequestReceived, AuditStage::ResponseComplete], true);
    let heard = config(Level::Metadata, &[AuditStage::RequestReceived], false);
    let both = config(Level::Request, &[AuditStage::RequestReceived], false);
    for (one, other, expected) in
        [(&mute, &heard, &both), (&none, &mute, &mute), (&none, &none, &none), (&mute, &mute, &mute)]
    {
        assert_eq!(one.clone().and(other.clone()), *expected);
        assert_eq!(other.clone().and(one.clone()), *expected);
    }
}

#[test]
fn the_first_rule_that_matches_decides_and_none_logs_nothing() {
    let policy = AuditPolicy {
        rules: vec![
            Rule { verbs: strings(&["watch"]), level: Level::None, ..Rule::default() },
            Rule {
                level: Level::RequestResponse,
                omit_stages: vec![AuditStage::ResponseStarted],
                omit_managed_fields: Some(false),
                ..of("g.io", &["things"], &[])
            },
            of("g.io", &["*"], &[]),
        ],
        omit_stages: vec![AuditStage::RequestReceived],
        omit_managed_fields: true,
    };
    let config = |uri: &str| policy.config(Some(&user()), &info("GET", uri));
    let object = config(OBJECT);
    assert_eq!((object.level, object.omit_managed_fields), (Level::RequestResponse, false));
    assert_eq!(object.omit_stages, [AuditStage::RequestReceived, AuditStage::ResponseStarted]);
    let status = config(STATUS);
    assert_eq!((status.level, status.omit_managed_fields), (Level::Metadata, true));
    assert_eq!(config("/apis/g.io/v1/things?watch=1").level, Level::None);
    assert_eq!(config("/healthz").level, Level::None);
}
