//! Which reads the options of a list and a watch mean, and which are refused.

use super::*;

fn list(query: &str) -> Result<PageOptions, ApiError> {
    ListOptions::parse(&Query::parse(query), false)?.read()
}

fn code(query: &str, watch: bool) -> u16 {
    ListOptions::parse(&Query::parse(query), watch).map_or_else(|e| e.status.code, |_| 200)
}

#[test]
fn options_that_do_not_go_together_are_422() {
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Odd&resourceVersion=1",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
        "sendInitialEvents=true",
    ] {
        assert_eq!(code(query, false), 422, "{query}");
    }
    for query in [
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
    ] {
        assert_eq!(code(query, true), 422, "{query}");
    }
    assert_eq!(code("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true), 200);
}

#[test]
fn a_read_is_as_fresh_as_its_version_says() {
    let at = |query| list(query).unwrap().at;
    assert_eq!(at(""), ReadAt::Latest);
    assert_eq!(at("resourceVersion=0"), ReadAt::NotOlderThan(Revision(0)));
    assert_eq!(at("resourceVersion=0&limit=5"), ReadAt::NotOlderThan(Revision(0)));
    assert_eq!(at("resourceVersion=7"), ReadAt::NotOlderThan(Revision(7)));
    assert_eq!(at("resourceVersion=7&limit=5"), ReadAt::Exact(Revision(7)));
    assert_eq!(at("resourceVersion=7&resourceVersionMatch=Exact"), ReadAt::Exact(Revision(7)));
}

#[test]
fn a_continued_list_reads_at_its_tokens_revision() {
    let token = Continue { revision: Some(9), start: "ns/b\0".to_owned() }.encode();
    let read = list(&format!("limit=2&continue={token}")).unwrap();
    assert_eq!((read.at, read.start.as_deref()), (ReadAt::Exact(Revision(9)), Some("ns/b\0")));
    assert_eq!(list(&format!("continue={token}&resourceVersion=3")).unwrap_err().status.code, 400);
    assert_eq!(list("continue=nonsense").unwrap_err().status.code, 400);
}

#[test]
fn what_is_no_number_is_refused() {
    for query in
        ["limit=x", "timeoutSeconds=1s", "resourceVersion=-1", "resourceVersion=99999999999999999999"]
    {
        assert_eq!(list(query).unwrap_err().status.code, 400, "{query}");
    }
    assert!(list("limit=-1").is_ok());
}

#[test]
fn a_watch_from_nowhere_starts_with_what_is_there() {
    let from =
        |query: &str| ListOptions::parse(&Query::parse(query), true).and_then(|o| o.watch_from(Revision(40)));
    assert_eq!(from(""), Ok(WatchFrom::InitialEvents(ReadAt::Latest)));
    assert_eq!(from("resourceVersion=0"), Ok(WatchFrom::InitialEvents(ReadAt::NotOlderThan(Revision(0)))));
    assert_eq!(from("resourceVersion=5"), Ok(WatchFrom::After(Revision(5))));
    assert_eq!(
        from("sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
        Ok(WatchFrom::After(Revision(40)))
    );
    assert_eq!(from("resourceVersion=x").unwrap_err().status.code, 500);
}

#[test]
fn a_limit_that_is_too_large_is_told_from_one_that_is_no_number() {
    let message =
        |limit: &str| number(&Query::parse(&format!("limit={limit}")), "limit").unwrap_err().status.message;
    let beyond = r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#;
    assert_eq!(message("9223372036854775808"), beyond);
    assert!(message("-9223372036854775809").ends_with("value out of range"));
    assert!(message("1_000").ends_with("invalid syntax"));
    assert_eq!(number(&Query::parse("limit=9223372036854775807"), "limit").unwrap(), i64::MAX);
}
