//! Which user a request is from, and what the host is asked about the user.

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::certificates::Authority;
use super::fixture::{Port, Settings, code};

const GADGETS: &str = "GET /apis/test.io/v1/namespaces/ns/gadgets";

#[tokio::test]
async fn headers_of_a_front_proxy_are_believed_with_its_certificate_alone() {
    let port = Port::open(Settings::default()).await;
    let headers = [
        ("x-remote-user", "jane"),
        ("X-Remote-Group", "a"),
        ("x-remote-group", "b"),
        ("X-REMOTE-EXTRA-Scopes%2Fx", "read"),
    ];
    let proxy = port.proxies.issue("front-proxy", "");
    assert_eq!(code(&port.send(Some(&proxy), GADGETS, &headers).await), 200);
    let spec = port.asked().remove(0);
    assert_eq!(
        (&spec["user"], &spec["groups"]),
        (&json!("jane"), &json!(["a", "b", "system:authenticated"]))
    );
    assert_eq!(spec["extra"], json!({"scopes/x": ["read"]}));

    // Each asks something else: answers are remembered.
    port.send(None, &format!("{GADGETS}/nobody"), &headers).await;
    assert_eq!(port.asked()[0]["user"], "system:anonymous");
    let client = port.clients.issue("front-proxy", "g");
    port.send(Some(&client), &format!("{GADGETS}/client"), &headers).await;
    assert_eq!(port.asked()[0]["user"], "front-proxy");
    let another = port.proxies.issue("another", "system:masters");
    let answer = port.send(Some(&another), &format!("{GADGETS}/another"), &headers).await;
    assert_eq!((code(&answer), port.asked()), (401, vec![]), "{answer}");
}

/// A stranger's chain of 100 certificates was verified against each CA, at the cost of many handshakes.
#[tokio::test]
async fn a_chain_of_too_many_certificates_ends_the_handshake() {
    let port = Port::open(Settings::default()).await;
    let stranger = |times| Authority::new().issue("ann", "people").repeated(times);
    assert_eq!(code(&port.send(Some(&stranger(4)), GADGETS, &[]).await), 401);
    let mut answer = Vec::new();
    let refused = port.connect(Some(&stranger(5)), "http/1.1").await.read_to_end(&mut answer).await;
    assert!(refused.unwrap_err().to_string().contains("CertificateUnknown"));
    assert_eq!(port.asked(), [] as [serde_json::Value; 0]);
}

#[tokio::test]
async fn a_wrong_token_is_401_and_a_good_one_names_its_user() {
    let port = Port::open(Settings::default()).await;
    let answer = port.send(None, GADGETS, &[("authorization", "Bearer bad")]).await;
    assert_eq!(code(&answer), 401, "{answer}");
    let answer = port.send(None, GADGETS, &[("authorization", "bearer good")]).await;
    assert_eq!(code(&answer), 200, "{answer}");
    assert_eq!(port.asked()[0]["user"], "tokened");
}

#[tokio::test]
async fn impersonation_needs_leave_for_everything_that_it_names() {
    let rule = |spec: &serde_json::Value| {
        let asked = &spec["resourceAttributes"];
        let constrained = asked["verb"].as_str().is_some_and(|verb| verb.starts_with("impersonate-on:"));
        !constrained && (asked["verb"] != "impersonate" || asked["name"] != "admins")
    };
    let port = Port::open(Settings { rule, ..Settings::default() }).await;
    let caller = port.clients.issue("caller", "callers");
    let answer = port.send(Some(&caller), GADGETS, &[("impersonate-user", "jane")]).await;
    assert_eq!(code(&answer), 200, "{answer}");
    let asked = port.asked();
    let what = |i: usize, field: &str| asked[i]["resourceAttributes"][field].clone();
    assert_eq!(
        (what(0, "verb"), what(0, "resource")),
        (json!("impersonate-on:user-info:list"), json!("gadgets"))
    );
    assert_eq!(
        (&asked[1]["user"], what(1, "verb"), what(1, "name")),
        (&json!("caller"), json!("impersonate"), json!("jane"))
    );
    assert_eq!((&asked[2]["user"], what(2, "verb")), (&json!("jane"), json!("list")));
    assert_eq!(asked[2]["groups"], json!(["system:authenticated"]));

    let both = [("impersonate-user", "jane"), ("impersonate-group", "admins")];
    let answer = port.send(Some(&caller), GADGETS, &both).await;
    assert_eq!(code(&answer), 403, "{answer}");
    assert!(answer.contains(r#"User \"caller\" cannot impersonate resource \"groups\""#), "{answer}");
    let answer = port.send(Some(&caller), GADGETS, &[("impersonate-group", "system:masters")]).await;
    assert_eq!(code(&answer), 400, "{answer}");
}

/// What the host was asked about is what is served, however the path is written.
#[tokio::test]
async fn a_path_is_authorized_as_it_is_served() {
    let rule = |spec: &serde_json::Value| spec["resourceAttributes"]["namespace"] == "mine";
    let port = Port::open(Settings { rule, ..Settings::default() }).await;
    for path in [
        "/apis/test.io/v1/namespaces/ns/gadgets",
        "/apis/test.io/v1/namespaces/ns%2Fgadgets",
        "/apis/test.io/v1/namespaces/mine/../ns/gadgets/x",
        "/apis/test.io/v1/namespaces/mine%2F..%2Fns/gadgets/x",
        "/apis/test.io/v1/namespaces//gadgets",
        "//apis/test.io/v1/namespaces/ns/gadgets/",
        "/apis/test.io/v1/gadgets?namespace=mine",
        "/apis/test.io/v1/gadgets?fieldSelector=metadata.namespace%3Dmine",
        "/apis/test.io/v1/NAMESPACES/mine/gadgets",
        "/healthz/../apis/test.io/v1/gadgets",
        "/healthz%2F..%2Fmetrics",
        "/metrics",
        "/metrics/",
    ] {
        let answer = port.send(None, &format!("GET {path}"), &[]).await;
        assert!(matches!(code(&answer), 403 | 404), "{path}: {answer}");
    }
    let answer = port.send(None, "GET /apis/test.io/v1/namespaces/mine/gadgets/", &[]).await;
    assert_eq!(code(&answer), 200, "{answer}");
}

#[tokio::test]
async fn a_refusal_comes_in_the_form_that_was_asked_for() {
    let port = Port::open(Settings { rule: |_| false, ..Settings::default() }).await;
    let answer = port.send(None, GADGETS, &[("accept", "application/yaml")]).await;
    assert_eq!(code(&answer), 403);
    assert!(
        answer.contains("content-type: application/yaml") && answer.contains("reason: Forbidden"),
        "{answer}"
    );
    let answer = port
        .send(
            None,
            GADGETS,
            &[("authorization", "Bearer bad"), ("accept", "application/vnd.kubernetes.protobuf")],
        )
        .await;
    assert!(answer.contains("application/vnd.kubernetes.protobuf") && answer.contains("k8s\0"), "{answer}");
}

#[tokio::test]
async fn a_user_may_be_in_hundreds_of_groups() {
    let port = Port::open(Settings::default()).await;
    let proxy = port.proxies.issue("front-proxy", "");
    let groups: Vec<String> = (0..500).map(|i| format!("cn=group-{i},ou=groups,dc=example,dc=com")).collect();
    let headers: Vec<(&str, &str)> = std::iter::once(("x-remote-user", "jane"))
        .chain(groups.iter().map(|group| ("x-remote-group", group.as_str())))
        .collect();
    let answer = port.send(Some(&proxy), GADGETS, &headers).await;
    assert_eq!(code(&answer), 200, "{answer}");
    assert_eq!(port.asked()[0]["groups"].as_array().unwrap().len(), 501);
}
