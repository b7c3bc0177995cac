//! What a caller names costs no series of a metric.

use super::fixture::{Port, Settings, code};

/// Each of these is a name of the caller's choice: methods, paths, groups, resources, names, subresources, dry runs,
/// managers, users that are asked for, audit ids.
#[tokio::test]
async fn requests_of_any_names_are_counted_in_a_bounded_number_of_series() {
    let port = Port::open(Settings::default()).await;
    let count = async || {
        let text = port.send(None, "GET /metrics", &[]).await;
        assert_eq!(code(&text), 200);
        text.lines().filter(|line| line.contains('{') && !line.contains("_bucket{")).count()
    };
    let round = async |n: usize| {
        let api = "/apis/test.io/v1/namespaces";
        for request in [
            format!("M{n} {api}/ns/gadgets/a"),
            format!("M{n} /p{n}"),
            format!("GET /p{n}"),
            format!("GET /apis/g{n}/v{n}/r{n}"),
            format!("GET {api}/n{n}/gadgets/g{n}"),
            format!("GET {api}/n{n}/gadgets/g{n}/s{n}"),
            format!("GET {api}/n{n}/gadgets?limit={n}&labelSelector=l{n}"),
            format!("DELETE {api}/n{n}/gadgets/g{n}?dryRun=d{n}&propagationPolicy=p{n}"),
            format!("POST {api}/n{n}/gadgets?fieldManager=m{n}&dryRun=d{n}"),
        ] {
            let headers = [("user-agent", format!("agent-{n}")), ("audit-id", format!("id-{n}"))];
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            assert_ne!(code(&port.send(None, &request, &headers).await), 500, "{request}");
        }
    };
    count().await;
    round(0).await;
    let before = count().await;
    for n in 1..12 {
        round(n).await;
    }
    assert_eq!(count().await, before);
}
