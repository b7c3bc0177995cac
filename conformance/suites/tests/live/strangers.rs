//! Strangers who come straight to our port: each gets the answer that Kubernetes gives, and nothing changes.

use anyhow::{Context, Result};
use drydock_testkit::host::{CertificateFiles, Pki, kubeconfig};
use drydock_testkit::kinds::node_maintenance;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::shared::{Shared, shared};

const MAINTENANCES: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";

/// What came back: the status code and the body.
type Answer = (u16, Value);

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_anonymous_and_may_only_see_whether_we_are_well() -> Result<()> {
    let shared = shared().await?;
    let nobody = direct(shared, None).await?;
    assert_forbidden(&attempts(&nobody, &[]).await?, "system:anonymous");
    let (code, _) = send(&nobody, Request::get("/readyz").body(Vec::new())?).await?;
    assert_eq!(code, 200);
    assert_untouched(shared).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_ca_is_unauthorized() -> Result<()> {
    let shared = shared().await?;
    let other_ca = Pki::create(&shared.drydock.host.dir.join("strangers"))?;
    let admin = other_ca.client(&shared.drydock.host.dir, "forged", "admin", &["system:masters"])?;
    let forged = direct(shared, Some(&admin)).await?;
    assert_unauthorized(&attempts(&forged, &[]).await?);
    // The headers do not count either with a front proxy's certificate of that CA.
    let proxy = direct(shared, Some(&other_ca.front_proxy)).await?;
    assert_unauthorized(&attempts(&proxy, &IMPOSTOR).await?);
    assert_untouched(shared).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_headers_of_a_front_proxy_mean_nothing_without_its_certificate() -> Result<()> {
    let shared = shared().await?;
    let nobody = direct(shared, None).await?;
    assert_forbidden(&attempts(&nobody, &IMPOSTOR).await?, "system:anonymous");
    let host = &shared.drydock.host;
    let user = host.pki.client(&host.dir, "plain-user", "plain-user", &[])?;
    let user = direct(shared, Some(&user)).await?;
    assert_forbidden(&attempts(&user, &IMPOSTOR).await?, "plain-user");
    // With the real front proxy's they do, as with the aggregator's.
    let proxy = direct(shared, Some(&host.pki.front_proxy)).await?;
    let mut request = Request::get(MAINTENANCES);
    for (name, value) in IMPOSTOR {
        request = request.header(name, value);
    }
    assert_eq!(send(&proxy, request.body(Vec::new())?).await?.0, 200);
    assert_untouched(shared).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_token_is_unauthorized_and_a_good_one_is_its_owner() -> Result<()> {
    let shared = shared().await?;
    let nobody = direct(shared, None).await?;
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.";
    for token in ["nonsense", unsigned] {
        let value = format!("Bearer {token}");
        assert_unauthorized(&attempts(&nobody, &[(header::AUTHORIZATION.as_str(), &value)]).await?);
    }
    let token = shared.kubectl().ok(&["create", "token", "default"]).await?;
    let bearer = format!("Bearer {}", token.trim());
    let answers = attempts(&nobody, &[(header::AUTHORIZATION.as_str(), &bearer)]).await?;
    assert_forbidden(&answers, "system:serviceaccount:default:default");
    assert_untouched(shared).await
}

/// The headers of a caller who claims to be the admin.
const IMPOSTOR: [(&str, &str); 2] = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];

/// Reads, creates and deletes, with some headers.
async fn attempts(client: &Client, headers: &[(&str, &str)]) -> Result<Vec<Answer>> {
    let object = node_maintenance("by-a-stranger", "Idle", &["nowhere"]).to_string();
    let requests = [
        Request::get(MAINTENANCES).body(Vec::new())?,
        Request::post(MAINTENANCES)
            .header(header::CONTENT_TYPE, "application/json")
            .body(object.into_bytes())?,
        Request::delete(MAINTENANCES).body(Vec::new())?,
    ];
    let mut answers = Vec::new();
    for mut request in requests {
        for (name, value) in headers {
            let name: header::HeaderName = name.parse()?;
            request.headers_mut().insert(name, value.parse()?);
        }
        answers.push(send(client, request).await?);
    }
    Ok(answers)
}

fn assert_forbidden(answers: &[Answer], user: &str) {
    for (code, status) in answers {
        assert_eq!(
            (*code, &status["code"], &status["reason"]),
            (403, &json!(403), &json!("Forbidden")),
            "{status}"
        );
        let message = status["message"].as_str().unwrap_or_default();
        let start = format!("nodemaintenances.coordination.k8s.io is forbidden: User \"{user}\" cannot ");
        assert!(message.starts_with(&start), "{message}");
    }
}

fn assert_unauthorized(answers: &[Answer]) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    for answer in answers {
        assert_eq!(answer, &(401, status.clone()));
    }
}

async fn assert_untouched(shared: &Shared) -> Result<()> {
    let found = shared.kubectl().refused(&["get", "nm", "by-a-stranger"]).await?;
    assert!(found.contains("NotFound"), "{found}");
    Ok(())
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<Answer> {
    let response = client.send(request.map(Into::into)).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&body).unwrap_or_default()))
}

/// A client to our port that shows this certificate, or none.
async fn direct(shared: &Shared, identity: Option<&CertificateFiles>) -> Result<Client> {
    let host = &shared.drydock.host;
    let shown = identity.unwrap_or(&host.pki.front_proxy);
    let mut file: Kubeconfig = Kubeconfig::from_yaml(&kubeconfig(&host.url, &host.pki.ca, shown))?;
    if identity.is_none() {
        file.auth_infos.iter_mut().for_each(|user| user.auth_info = Some(Default::default()));
    }
    shared.drydock.direct_as(file).await.context("a client to our port")
}
