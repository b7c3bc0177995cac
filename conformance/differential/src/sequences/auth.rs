//! Who asks, and who may.

use http::Method;
use serde_json::json;

use super::budget;
use crate::area::Area::Auth;
use crate::request::SequenceRequest;
use crate::sequence::Sequence;
use crate::target::{ACCOUNT, BUDGET};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = readers();
    all.extend(strangers());
    all.extend(impersonators());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Auth, BUDGET, name)
}

fn readers() -> Vec<Sequence> {
    let reader = |name: &str, sequence: fn(Sequence) -> Sequence| {
        sequence(of(name).post(budget("x"))).with(|r| r.as_user("reader"))
    };
    vec![
        reader("a reader lists", |s| s.list("")),
        reader("a reader reads", |s| s.get("x")),
        reader("a reader watches", |s| s.watch("timeoutSeconds=1")),
        reader("a reader does not read a status", |s| s.get("x/status")),
        reader("a reader does not create", |s| s.post(budget("y"))),
        reader("a reader does not update", |s| s.put("x", budget("x"))),
        reader("a reader does not update a status", |s| s.put("x/status", budget("x"))),
        reader("a reader does not patch", |s| s.merge_patch("x", json!({}))),
        reader("a reader does not apply", |s| s.apply("x", "one", json!({}))),
        reader("a reader does not delete", |s| s.delete("x")),
        reader("a reader does not delete a collection", |s| s.delete_collection("")),
        reader("a reader does not write to what there is not", |s| s.merge_patch("nothing", json!({}))),
        reader("a reader of a name", |s| s.list("fieldSelector=metadata.name%3Dx")),
        of("a reader of all namespaces")
            .ask(SequenceRequest::new(Method::POST, "$(root)/$(plural)").as_user("reader")),
        of("a patcher does not create by applying")
            .apply("x", "one", json!({}))
            .with(|r| r.as_user("patcher")),
        of("a patcher applies to what there is")
            .post(budget("x"))
            .apply("x", "one", json!({}))
            .with(|r| r.as_user("patcher")),
        of("a reader in the core group").ask(SequenceRequest::get("$(root)/$(plural)").as_user("stranger")),
        Sequence::new(Auth, ACCOUNT, "a stranger in the core group")
            .list("")
            .with(|r| r.as_user("stranger"))
            .get("x")
            .with(|r| r.as_user("stranger")),
    ]
}

fn strangers() -> Vec<Sequence> {
    let nobody = |name: &str, request: SequenceRequest| of(name).post(budget("x")).ask(request.as_nobody());
    let token = |name: &str, value: &str| {
        nobody(name, SequenceRequest::get("$(collection)").header("authorization", value))
    };
    vec![
        nobody("nobody lists", SequenceRequest::get("$(collection)")),
        nobody("nobody reads", SequenceRequest::get("$(collection)/x")),
        nobody("nobody deletes", SequenceRequest::new(Method::DELETE, "$(collection)/x")),
        nobody("nobody impersonates", SequenceRequest::get("$(collection)").as_user("admin")),
        token("a token that is none", "Bearer nonsense"),
        token("a token of nothing", "Bearer "),
        token("a password", "Basic YTpi"),
        token("a token that is not signed", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."),
        of("a token beside a certificate")
            .ask(SequenceRequest::get("$(collection)").header("authorization", "Bearer nonsense")),
        of("headers of a front proxy without its certificate").ask(
            SequenceRequest::get("$(collection)")
                .header("x-remote-user", "reader")
                .header("x-remote-group", "nobodies"),
        ),
    ]
}

fn impersonators() -> Vec<Sequence> {
    let list = || SequenceRequest::get("$(collection)");
    vec![
        of("a user with a strange name").ask(list().as_user("a <b> & \"c\"")),
        of("a user in another script").ask(list().header("impersonate-user", "%C3%A4")),
        of("a group of masters").ask(list().as_user("anyone").header("impersonate-group", "system:masters")),
        of("a group without a user").ask(list().header("impersonate-group", "a")),
        of("a UID without a user").ask(list().header("impersonate-uid", "a")),
        of("extra without a user").ask(list().header("impersonate-extra-a", "b")),
        of("a user with a UID and extra")
            .ask(list().as_user("reader").header("impersonate-uid", "u").header("impersonate-extra-a", "b")),
        of("a service account").ask(list().as_user("system:serviceaccount:a:b")),
        of("nobody by impersonation").ask(list().as_user("system:anonymous")),
        of("the groups of a reader").ask(
            list()
                .as_user("reader")
                .header("impersonate-group", "a")
                .another_header("impersonate-group", "b"),
        ),
    ]
}
