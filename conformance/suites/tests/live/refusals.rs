//! Our port and the host's give the same refusals: status code, Status, and the headers beside it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::{CertificateFiles, Pki, TestHost, kubeconfig};
use drydock_testkit::wait::{allowed, until_some};
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::shared::{LIMIT, Shared, shared};

/// A kind of ours, and one of the host's that it is compared with.
const OURS: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";
const HOSTS: &str = "/apis/node.k8s.io/v1/runtimeclasses";

/// What each refused caller asks: method and path, in which `{}` stands for that of the kind.
const QUESTIONS: [(&str, &str); 7] = [
    ("GET", "{}"),
    ("GET", "{}/x?pretty=true"),
    ("GET", "{}?watch=true"),
    ("POST", "{}"),
    ("PATCH", "{}/x/status"),
    ("DELETE", "{}"),
    ("GET", "/nowhere/<&>"),
];

/// A caller who must be refused: the certificate that it shows, and the headers that it sends.
struct RefusedCaller<'a> {
    name: &'a str,
    identity: Option<&'a CertificateFiles>,
    headers: Vec<(&'a str, &'a str)>,
}

const IMPOSTOR: [(&str, &str); 2] = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_as_the_host_refuses_them() -> Result<()> {
    let shared = shared().await?;
    let host = &shared.drydock.host;
    let others = Pki::create(&host.dir.join("refused"))?;
    let forged = others.client(&host.dir, "refused-forged", "admin", &["system:masters"])?;
    let plain = host.pki.client(&host.dir, "refused-plain", "plain-<user>", &["plain"])?;
    let server = Some(&host.pki.server);
    let basic = vec![("authorization", "Basic YWRtaW46YWRtaW4=")];
    let unsigned = vec![("authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.")];
    let caller = |name, identity, headers| RefusedCaller { name, identity, headers };
    let callers = [
        caller("nobody", None, vec![]),
        caller("nobody with the headers of a front proxy", None, IMPOSTOR.to_vec()),
        caller("a user with the headers of a front proxy", Some(&plain), IMPOSTOR.to_vec()),
        caller("a certificate of another CA", Some(&forged), vec![]),
        caller("a front proxy of another CA", Some(&others.front_proxy), IMPOSTOR.to_vec()),
        caller("a certificate for serving", server, vec![]),
        caller("nonsense for a token", None, vec![("authorization", "Bearer nonsense")]),
        caller("an unsigned token", None, unsigned),
        caller("an empty token", None, vec![("authorization", "Bearer ")]),
        caller("a password", None, basic),
    ];
    compare(shared, &callers).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_act_as_another_is_refused_as_the_host_refuses_them() -> Result<()> {
    let shared = shared().await?;
    let host = &shared.drydock.host;
    let plain = host.pki.client(&host.dir, "refused-actor", "actor", &["plain"])?;
    let acts = |name, headers| RefusedCaller { name, identity: Some(&plain), headers };
    let jane = ("impersonate-user", "jane");
    let callers = [
        acts("a user", vec![jane]),
        acts("an admin", vec![jane, ("impersonate-group", "system:masters")]),
        acts("a service account", vec![("impersonate-user", "system:serviceaccount:kube-system:default")]),
        acts("a node", vec![("impersonate-user", "system:node:n1")]),
        acts("a group of nobody", vec![("impersonate-group", "system:masters")]),
        acts("a uid of nobody", vec![("impersonate-uid", "7")]),
        acts("an extra of nobody", vec![("impersonate-extra-scopes", "all")]),
    ];
    compare(shared, &callers).await?;
    // These may act as jane, without or with constraints, but as nobody who has more than jane's
    // name.
    for (actor, verb, group) in [
        ("legacy-actor", "impersonate", ""),
        ("other-actor", "impersonate:user-info", "authentication.k8s.io"),
    ] {
        let on = json!({"apiGroups": ["node.k8s.io", "coordination.k8s.io"], "verbs": ["impersonate-on:user-info:list"],
                        "resources": ["runtimeclasses", "nodemaintenances"]});
        let leave =
            json!({"apiGroups": [group], "resources": ["users"], "resourceNames": ["jane"], "verbs": [verb]});
        let api = "rbac.authorization.k8s.io";
        let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": actor},
                          "rules": [leave, on]});
        let kubectl = shared.kubectl();
        kubectl.apply(&role).await?;
        let [role, user] = [format!("--clusterrole={actor}"), format!("--user={actor}")];
        kubectl.ok(&["create", "clusterrolebinding", actor, &role, &user]).await?;
        let about = json!({"verb": verb, "group": group, "resource": "users", "name": "jane"});
        let review = json!({"metadata": {}, "spec": {"user": actor, "resourceAttributes": about}});
        allowed(&host.client().await?, &serde_json::from_value(review)?, LIMIT).await?;
        let identity = host.pki.client(&host.dir, &format!("refused-{actor}"), actor, &[])?;
        let acts = |name, headers| RefusedCaller { name, identity: Some(&identity), headers };
        let callers = [
            acts("jane, who may nothing", vec![jane]),
            acts("jane of a group", vec![jane, ("impersonate-group", "g")]),
            acts("jane of masters", vec![jane, ("impersonate-group", "system:masters")]),
            acts("jane with a uid", vec![jane, ("impersonate-uid", "7")]),
            acts("jane with an extra", vec![jane, ("impersonate-extra-a.io%2fb", "c")]),
            acts("jane with a bad extra", vec![jane, ("impersonate-extra-scopes", "c")]),
        ];
        compare(shared, &callers).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_were_good_once_are_refused_as_the_host_refuses_them() -> Result<()> {
    let shared = shared().await?;
    let kubectl = shared.kubectl();
    let namespace = shared.namespace("refused-tokens").await?;
    let kubectl_in = kubectl.in_namespace(&namespace.name);
    kubectl_in.ok(&["create", "serviceaccount", "leaver"]).await?;
    kubectl_in.ok(&["create", "secret", "generic", "bound"]).await?;
    let leaver = kubectl_in.ok(&["create", "token", "leaver"]).await?;
    let bound = ["create", "token", "default", "--bound-object-kind=Secret", "--bound-object-name=bound"];
    let bound = kubectl_in.ok(&bound).await?;
    for token in [&leaver, &bound] {
        assert_eq!(code(shared, token.trim()).await?, [403, 403], "the token is good at first");
    }
    kubectl_in.ok(&["delete", "serviceaccount/leaver", "secret/bound"]).await?;
    let expired = expired_token(&shared.drydock.host)?;
    for token in [leaver.trim(), bound.trim(), &expired] {
        // Good answers are remembered for a while, by the host too.
        let late = || "the token is still good".to_owned();
        let refused = async || Ok((code(shared, token).await? == [401, 401]).then_some(()));
        until_some(LIMIT, late, refused).await?;
        let value = format!("Bearer {token}");
        let headers = vec![("authorization", value.as_str())];
        compare(shared, &[RefusedCaller { name: "a token of the past", identity: None, headers }]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_is_asked_about_selectors_too() -> Result<()> {
    let shared = shared().await?;
    let host = &shared.drydock.host;
    let selective = host.pki.client(&host.dir, "refused-selective", "selective", &[])?;
    let caller = RefusedCaller { name: "selective", identity: Some(&selective), headers: Vec::new() };
    let path = "{}?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx";
    let answer = ask(&port(shared, &caller).await?, &caller, ("GET", path), OURS).await?;
    assert_eq!(answer.0, 403);
    let log = std::fs::read_to_string(host.audit_log())?;
    let reviews = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut specs = reviews.map(|mut event| event["requestObject"]["spec"].take());
    let about = |spec: &Value| spec["user"] == "selective";
    let spec = specs.find(about).context("the host was not asked")?;
    assert_eq!(spec["resourceAttributes"]["labelSelector"]["rawSelector"], "a=b");
    assert_eq!(spec["resourceAttributes"]["fieldSelector"]["rawSelector"], "metadata.name=x");
    Ok(())
}

async fn code(shared: &Shared, token: &str) -> Result<[u16; 2]> {
    let value = format!("Bearer {token}");
    let caller = RefusedCaller { name: "", identity: None, headers: vec![("authorization", &value)] };
    let (ours, host) = (port(shared, &caller).await?, hosts(&shared.drydock.host, &caller).await?);
    let ask = async |client: &Client, kind| ask(client, &caller, QUESTIONS[0], kind).await;
    Ok([ask(&ours, OURS).await?, ask(&host, HOSTS).await?].map(|answer| answer.0))
}

/// A token of the admins' namespace that the host signed with its own key, and whose time is over.
fn expired_token(host: &TestHost) -> Result<String> {
    let claims = json!({
        "iss": "https://kubernetes.default.svc", "aud": ["https://kubernetes.default.svc"],
        "sub": "system:serviceaccount:default:default", "iat": 1_700_000_000, "exp": 1_700_003_600,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "default", "uid": "u"}},
    });
    let dir = host.dir.join("expired-token");
    std::fs::create_dir_all(&dir)?;
    let encode = |bytes: &[u8]| base64(bytes);
    let signed =
        format!("{}.{}", encode(br#"{"alg":"ES256","typ":"JWT"}"#), encode(claims.to_string().as_bytes()));
    let (input, output): (PathBuf, PathBuf) = (dir.join("signed"), dir.join("signature"));
    std::fs::write(&input, &signed)?;
    let made = Command::new("openssl")
        .args(["dgst", "-sha256", "-sign"])
        .arg(&host.pki.service_accounts.key)
        .arg("-out")
        .args([&output, &input])
        .status()
        .context("openssl does not start")?;
    ensure!(made.success(), "openssl did not sign");
    Ok(format!("{signed}.{}", encode(&joined(&std::fs::read(output)?))))
}

/// The two numbers of an ECDSA signature in DER, of 32 bytes each, as a JWT has them.
fn joined(der: &[u8]) -> Vec<u8> {
    let number = |at: usize| {
        let length = usize::from(der[at + 1]);
        let digits = &der[at + 2..at + 2 + length];
        let digits = &digits[digits.len().saturating_sub(32)..];
        [vec![0; 32 - digits.len()], digits.to_vec()].concat()
    };
    let second = 2 + 2 + usize::from(der[3]);
    [number(2), number(second)].concat()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |chunk: &[u8], at: usize| {
        let bits = chunk.iter().chain(&[0, 0]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63])
    };
    bytes.chunks(3).flat_map(|chunk| (0..=chunk.len()).map(move |at| digit(chunk, at))).collect()
}

/// Each caller asks both servers everything, and must get the same answers.
async fn compare(shared: &Shared, callers: &[RefusedCaller<'_>]) -> Result<()> {
    let mut wrong = Vec::new();
    for caller in callers {
        let (ours, host) = (port(shared, caller).await?, hosts(&shared.drydock.host, caller).await?);
        for question in QUESTIONS {
            let found = ask(&ours, caller, question, OURS).await?;
            let expected = ask(&host, caller, question, HOSTS).await?;
            if found != expected {
                wrong.push(format!("{}: {question:?}: {found:#?} and not {expected:#?}", caller.name));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let list = shared.kubectl().ok(&["get", "nm", "--output=name"]).await?;
    ensure!(!list.contains("/x\n"), "a stranger has written");
    Ok(())
}

/// Status code, body, and headers, with what differs between the kinds replaced.
async fn ask(
    client: &Client,
    caller: &RefusedCaller<'_>,
    (method, path): (&str, &str),
    kind: &str,
) -> Result<(u16, Value, Vec<String>)> {
    let path = path.replace("{}", kind).replace('<', "%3C").replace('>', "%3E");
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in &caller.headers {
        request = request.header(*name, *value);
    }
    if method != "GET" {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let answer = client.send(request.body(b"{}".to_vec().into())?).await?;
    let (parts, body) = answer.into_parts();
    let shown =
        ["content-type", "cache-control", "x-content-type-options", "retry-after", "www-authenticate"];
    let headers = shown.iter().filter_map(|name| {
        let value = parts.headers.get(*name)?;
        Some(format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
    });
    let body = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
    let words: Vec<&str> = kind.split('/').collect();
    let body = body.replace(words[4], "RESOURCE").replace(words[2], "GROUP");
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    Ok((parts.status.as_u16(), body, headers.collect()))
}

/// The caller's client to our port.
async fn port(shared: &Shared, caller: &RefusedCaller<'_>) -> Result<Client> {
    shared.drydock.direct_as(shows(&shared.drydock.host, caller)?).await.context("a client to our port")
}

/// The caller's client to the host's.
async fn hosts(host: &TestHost, caller: &RefusedCaller<'_>) -> Result<Client> {
    let file = shows(host, caller)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("a client to the host")
}

fn shows(host: &TestHost, caller: &RefusedCaller<'_>) -> Result<Kubeconfig> {
    let shown = caller.identity.unwrap_or(&host.pki.front_proxy);
    let mut file = Kubeconfig::from_yaml(&kubeconfig(&host.url, &host.pki.ca, shown))?;
    if caller.identity.is_none() {
        file.auth_infos.iter_mut().for_each(|user| user.auth_info = Some(Default::default()));
    }
    Ok(file)
}
