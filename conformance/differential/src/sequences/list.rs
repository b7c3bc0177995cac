//! Lists and reads: versions, pages, selectors.

use serde_json::json;

use super::{budget, budget_with};
use crate::area::Area::List;
use crate::request::SequenceRequest;
use crate::sequence::Sequence;
use crate::target::{ACCOUNT, BUDGET};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = simple();
    all.extend(versions());
    all.extend(pages());
    all.extend(labels());
    all.extend(fields());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(List, BUDGET, name)
}

fn three(name: &str) -> Sequence {
    let labelled = |name: &str, labels| budget_with(name, json!({"metadata": {"labels": labels}}));
    of(name)
        .post(labelled("b", json!({"app": "x", "tier": "one"})))
        .post(labelled("a", json!({"app": "y"})))
        .post(labelled("c", json!({})))
}

/// A consistent list comes first: a cache may serve any state that is new enough, and has this one afterwards.
fn three_caught_up(name: &str) -> Sequence {
    three(name).list("")
}

fn simple() -> Vec<Sequence> {
    vec![
        of("an empty list has items").list(""),
        three("a list is in the order of names").list(""),
        of("a list of a namespace that is not there")
            .ask(SequenceRequest::get("$(root)/namespaces/nowhere-at-all/$(plural)")),
        of("an object that is not there").get("x"),
        of("an object of a namespace that is not there")
            .ask(SequenceRequest::get("$(root)/namespaces/nowhere-at-all/$(plural)/x")),
        three("a list of all namespaces by namespace").ask(
            SequenceRequest::get("$(root)/$(plural)")
                .query("fieldSelector=metadata.namespace%3D$(namespace)"),
        ),
        three("a list that is no watch").list("watch=false"),
        three("a list with a timeout").list("timeoutSeconds=5"),
        Sequence::new(List, ACCOUNT, "a list of the core group")
            .post(crate::sequence::object("x", json!({})))
            .list(""),
    ]
}

/// Every combination that a client may send.
fn versions() -> Vec<Sequence> {
    let mut all = Vec::new();
    let versions = ["", "0", "$(1.metadata.resourceVersion)", "99999999999", "abc", "-1", "01"];
    for version in versions {
        for match_ in ["", "NotOlderThan", "Exact", "Sometimes"] {
            for limit in ["", "1"] {
                let mut query =
                    format!("resourceVersion={version}&resourceVersionMatch={match_}&limit={limit}");
                for unset in ["resourceVersion=&", "resourceVersionMatch=&"] {
                    query = query.replace(unset, "");
                }
                let query = query.trim_end_matches("limit=").trim_end_matches('&').to_owned();
                all.push(three_caught_up(&format!("a list with {query:?}")).list(&query));
            }
        }
        if !version.is_empty() {
            all.push(
                three_caught_up(&format!("an object at version {version:?}"))
                    .get("a")
                    .query(&format!("resourceVersion={version}")),
            );
        }
    }
    all.push(
        three("an old state")
            .delete("a")
            .list("resourceVersion=$(2.metadata.resourceVersion)&resourceVersionMatch=Exact"),
    );
    all.push(three("an object with a match").get("a").query("resourceVersionMatch=Exact"));
    all
}

fn pages() -> Vec<Sequence> {
    let page = |name: &str, query: &str| {
        three(name).list("limit=1").list(&format!("continue=$(3.metadata.continue)&{query}"))
    };
    vec![
        three("a list comes in pages").list("limit=2").list("limit=2&continue=$(3.metadata.continue)"),
        three("pages are of one state")
            .list("limit=1")
            .delete("b")
            .post(budget("bb"))
            .list("limit=1&continue=$(3.metadata.continue)")
            .list("limit=5&continue=$(6.metadata.continue)"),
        three("a page that is the last").list("limit=3"),
        three("a page that is larger than all").list("limit=30"),
        three("pages of a selection")
            .list("limit=1&labelSelector=app")
            .list("limit=1&labelSelector=app&continue=$(3.metadata.continue)"),
        page("a page with a version", "resourceVersion=5"),
        page("a page with version 0", "resourceVersion=0"),
        page("a page with a match", "resourceVersionMatch=Exact"),
        page("a page without a limit", ""),
        page("a page of another selection", "labelSelector=app"),
        three("a token that is none").list("continue=abc"),
        three("a token that is no JSON").list("continue=aGVsbG8"),
        three("a token of another version").list("continue=eyJ2IjoidjkiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"),
        three("a token without a key")
            .list("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ"),
        three("a negative limit").list("limit=-1"),
        three("a limit that is none").list("limit=x"),
        three("the largest limit").list("limit=9223372036854775807").list("limit=9223372036854775808"),
        three("a limit below all").list("limit=-9223372036854775809").list("limit=1_000").list("limit=%2B2"),
        three("a token of bytes that are no text").list("continue=xx"),
        three("a token with a part of a byte").list("continue=a"),
        three("a token with padding").list("continue=e30%3D"),
        three("a token of an empty object").list("continue=e30"),
        three("a token of null").list("continue=bnVsbA"),
        three("a token of a list").list("continue=W10"),
        three("a token of half an object").list("continue=eyJ2Ig"),
        three("a token of a wrong type").list("continue=eyJ2IjoxfQ"),
        three("sendInitialEvents on a list").list("sendInitialEvents=true"),
    ]
}

fn labels() -> Vec<Sequence> {
    let selectors = [
        "app",
        "!app",
        "app=x",
        "app==x",
        "app!=x",
        "app in (x,y)",
        "app in ()",
        "app notin (x)",
        "app in (x, z),tier",
        "app,!tier",
        "tier=",
        "tier!=",
        "app>1",
        "app<1",
        "a b",
        "app in x",
        "app in (x",
        "=x",
        "app=x=y",
        ",",
        "app,",
        "app=-x",
        "A_b/c=x",
        "app===x",
        "app=x,app=y",
        "! app",
        "app notin ()",
        "x/y/z",
    ];
    let one = |selector: &str| {
        let query = http_query(selector);
        three(&format!("labels {selector:?}")).list(&format!("labelSelector={query}"))
    };
    selectors.into_iter().map(one).collect()
}

fn fields() -> Vec<Sequence> {
    let selectors = [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.name=",
        "metadata.name=nobody",
        "metadata.name=a,metadata.name=b",
        "metadata.namespace=elsewhere",
        "metadata.namespace!=elsewhere",
        "spec.x=1",
        "metadata.labels.app=x",
        "metadata.name",
        "metadata.name in (a)",
        "=a",
        "metadata.name=a\\,b",
        "metadata.name=a=b",
        "metadata.name>a",
        "a,b",
    ];
    let one = |selector: &str| {
        let query = http_query(selector);
        three(&format!("fields {selector:?}")).list(&format!("fieldSelector={query}"))
    };
    selectors.into_iter().map(one).collect()
}

/// Percent-encoded for a query.
fn http_query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
