//! Tests of what each mode of impersonation asks the host.

#![allow(clippy::unwrap_used)]

use super::*;

fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

fn get_x() -> AuthorizationAttributes {
    let [verb, group, resource, name] = ["get", "g.io", "things", "x"].map(str::to_owned);
    AuthorizationAttributes { verb, group, resource, name, ..AuthorizationAttributes::default() }
}

fn asked(mode: ImpersonationMode, caller: &User, wanted: &User) -> Vec<String> {
    let questions = mode.questions(caller, wanted, &get_x());
    let all = questions.into_iter().flat_map(|question| question.unwrap().each);
    let shown = |q: AuthorizationAttributes| {
        format!("{} {}/{}/{}/{}/{}", q.verb, q.group, q.resource, q.subresource, q.namespace, q.name)
    };
    all.map(shown).collect()
}

fn refused(mode: ImpersonationMode, wanted: &User) -> String {
    let questions = mode.questions(&user("caller"), wanted, &get_x());
    let refusal = questions.into_iter().find_map(Result::err);
    refusal.map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn every_header_is_a_question() {
    let mut wanted = User { uid: "7".into(), ..user("jane") };
    wanted.groups = vec!["a".into(), "b".into()];
    wanted.extra.insert("example.com/scope".into(), vec!["read".into()]);
    assert_eq!(
        asked(ImpersonationMode::Legacy, &user("caller"), &wanted),
        [
            "impersonate /users///jane",
            "impersonate authentication.k8s.io/uids///7",
            "impersonate /groups///a",
            "impersonate /groups///b",
            "impersonate authentication.k8s.io/userextras/example.com/scope//read",
        ]
    );
    let constrained = asked(ImpersonationMode::UserInfo, &user("caller"), &wanted);
    assert_eq!(constrained[0], "impersonate-on:user-info:get g.io/things///x");
    assert_eq!(constrained[1], "impersonate:user-info authentication.k8s.io/users///jane");
    assert_eq!(constrained[3], "impersonate:user-info authentication.k8s.io/groups///a");
}

#[test]
fn a_service_account_is_asked_about_as_one_and_has_its_groups() {
    let robot = user("system:serviceaccount:ns:robot");
    assert_eq!(
        asked(ImpersonationMode::Legacy, &user("caller"), &robot),
        ["impersonate /serviceaccounts//ns/robot"]
    );
    let groups = ["system:serviceaccounts", "system:serviceaccounts:ns"];
    assert_eq!(ImpersonationMode::ServiceAccount.effective_user(robot.clone()).groups, groups);
    assert!(ImpersonationMode::ServiceAccount.applies(&user("caller"), &robot));
    assert!(!ImpersonationMode::UserInfo.applies(&user("caller"), &robot));
    let ill_formed = user("system:serviceaccount:NS:a:b");
    assert_eq!(
        asked(ImpersonationMode::Legacy, &user("caller"), &ill_formed),
        ["impersonate /users///system:serviceaccount:NS:a:b"]
    );
}

#[test]
fn the_agent_of_a_node_may_be_its_own_node_by_leave_for_any() {
    let node = user("system:node:n1");
    let mut agent = user("system:serviceaccount:ns:agent");
    assert!(
        !ImpersonationMode::AssociatedNode.applies(&agent, &node)
            && ImpersonationMode::ArbitraryNode.applies(&agent, &node)
    );
    agent.extra.insert(NODE_NAME.into(), vec!["n1".into()]);
    assert!(ImpersonationMode::AssociatedNode.applies(&agent, &node));
    assert!(!ImpersonationMode::AssociatedNode.applies(&agent, &user("system:node:n2")));
    let verb = "impersonate:associated-node";
    assert_eq!(
        asked(ImpersonationMode::AssociatedNode, &agent, &node)[1],
        format!("{verb} {AUTHENTICATION}/nodes///*")
    );
    let question = ImpersonationMode::AssociatedNode.questions(&agent, &node, &get_x()).remove(0).unwrap();
    assert_eq!(question.caller.extra[NODE_KEYS], [NODE_NAME]);
    assert_eq!(ImpersonationMode::AssociatedNode.effective_user(node).groups, [NODES]);
}

#[test]
fn some_groups_and_extras_are_for_nobody_under_constraint() {
    let grouped = |group: &str| User { groups: vec![group.to_owned()], ..user("jane") };
    assert!(
        refused(ImpersonationMode::UserInfo, &grouped("system:masters"))
            .contains("system:masters group is not")
    );
    assert!(refused(ImpersonationMode::UserInfo, &grouped("")).contains("empty string group is not"));
    assert_eq!(refused(ImpersonationMode::Legacy, &grouped("system:masters")), "");
    let extra = |key: &str, value: &str| {
        let extra = BTreeMap::from([(key.to_owned(), vec![value.to_owned()])]);
        User { extra, ..user("jane") }
    };
    for (key, value, why) in [
        ("", "v", "the empty string key"),
        ("a", "v", "must be a domain-prefixed path"),
        ("a.io/A", "v", "non-lowercase key"),
        ("a.io/b", "", "the empty string value"),
    ] {
        let refusal = refused(ImpersonationMode::UserInfo, &extra(key, value));
        assert!(refusal.contains(why), "{refusal}");
    }
    assert_eq!(refused(ImpersonationMode::UserInfo, &extra("a.io/b", "v")), "");
}

#[test]
fn many_are_asked_for_at_once_first() {
    let groups: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let wanted = User { groups, ..user("jane") };
    let groups = ImpersonationMode::UserInfo.questions(&user("caller"), &wanted, &get_x()).remove(1).unwrap();
    assert_eq!((groups.all_at_once.unwrap().name.as_str(), groups.each.len()), ("*", 4));
    assert!(
        ImpersonationMode::Legacy
            .questions(&user("c"), &wanted, &get_x())
            .remove(1)
            .unwrap()
            .all_at_once
            .is_none()
    );
}
