//! deploy/ on a real host.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::{PROGRAMS, grant};
use drydock_testkit::host::{TestHost, client_of, repository};
use drydock_testkit::wait::until_some;
use http::Request;

use crate::shared::{LIMIT, shared};

const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";
const SURGE: &str = "drydock-surge-interceptor";

#[tokio::test(flavor = "multi_thread")]
async fn a_host_takes_every_installation() -> Result<()> {
    let host = TestHost::shared().await?;
    // A dry run makes no namespace for what stands in it.
    grant(&host)?;
    for folder in [".", "overlays/sqlite", "overlays/etcd"] {
        let path = deploy().join(folder).display().to_string();
        let said = host.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-k", &path])?;
        for object in [API_SERVICE, "deployment.apps/drydock-apiserver", "networkpolicy", "flowschema"] {
            assert!(said.contains(object), "{folder} has no {object}:\n{said}");
        }
    }
    Ok(())
}

/// A list of flags in an overlay took the place of the base's: without `--controller-users` the controllers'
/// writes, which are made in terms of their lease, were all forbidden.
#[tokio::test(flavor = "multi_thread")]
async fn every_installation_has_the_flags_of_the_base() -> Result<()> {
    let host = TestHost::shared().await?;
    let flags = |folder: &str| -> Result<Vec<String>> {
        let made = host.kubectl(&["kustomize", &deploy().join(folder).display().to_string()])?;
        let is_server = |document: &&str| {
            document.contains("kind: Deployment") && document.contains("- drydock-apiserver\n")
        };
        let server = made.split("---\n").find(is_server).context("no Deployment of the API server")?;
        let flags = server.lines().filter_map(|line| line.trim().strip_prefix("- --"));
        Ok(flags.map(str::to_owned).collect())
    };
    let base = flags("base")?;
    ensure!(base.iter().any(|flag| flag.starts_with("controller-users=")), "{base:?}");
    for (folder, own) in [("overlays/sqlite", "data-dir="), ("overlays/etcd", "etcd-servers=")] {
        let flags = flags(folder)?;
        assert!(base.iter().all(|flag| flags.contains(flag)), "{folder}: {flags:?}");
        assert!(flags.iter().any(|flag| flag.starts_with(own)), "{folder}: {flags:?}");
    }
    Ok(())
}

/// A program that asks for another audience than that of Prometheus' token would not be scraped, and nothing
/// would say why.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_has_a_token_for_the_audience_of_all_programs() -> Result<()> {
    let read = |file: &str| std::fs::read_to_string(deploy().join(file)).with_context(|| file.to_owned());
    let audience = "https://drydock-apiserver.drydock-system.svc";
    for file in ["base/apiserver.yaml", "base/controller-manager.yaml", "components/surge/surge.yaml"] {
        assert!(read(file)?.contains(&format!("- --api-audiences={audience}\n")), "{file}");
    }
    let volume = read("components/monitoring/prometheus-volume.yaml")?;
    assert!(
        volume.contains(&format!("serviceAccountToken: {{audience: {audience}, path: token}}")),
        "{volume}"
    );
    let folder = volume.split("mountPath: ").nth(1).and_then(|rest| rest.split(',').next());
    let file = format!("bearerTokenFile: {}/token\n", folder.context("the volume is mounted")?);
    let monitors = read("components/monitoring/monitors.yaml")?;
    assert_eq!(monitors.matches(&file).count(), PROGRAMS.len(), "{file} in {monitors}");
    assert!(read("components/surge-monitoring/monitor.yaml")?.contains(&file));
    Ok(())
}

/// Without them each request for our kinds would cost the host another one, and only a line in the log would say so.
#[tokio::test(flavor = "multi_thread")]
async fn the_controller_manager_has_its_own_way_its_token_and_its_lines_in_the_audit_log() -> Result<()> {
    let read = |file: &str| std::fs::read_to_string(deploy().join(file)).with_context(|| file.to_owned());
    let manager = read("base/controller-manager.yaml")?;
    for words in [
        "- --direct-to-apiservice=true\n",
        "- --apiservice-token-file=/var/run/secrets/drydock/token\n",
        "- {name: token, mountPath: /var/run/secrets/drydock, readOnly: true}\n",
        "serviceAccountToken: {audience: https://drydock-apiserver.drydock-system.svc, path: token}\n",
    ] {
        assert!(manager.contains(words), "{words}");
    }
    let apiserver = read("base/apiserver.yaml")?;
    let user = "system:serviceaccount:drydock-system:drydock-controller-manager";
    assert!(apiserver.contains(&format!("- --controller-users={user}\n")), "{apiserver}");
    assert!(read("base/audit-policy.yaml")?.contains(&format!("users: [\"{user}\"]\n")));
    let file = "- --audit-policy-file=/etc/drydock/audit/policy.yaml\n";
    assert!(apiserver.contains(file) && apiserver.contains("configMap: {name: drydock-audit-policy}\n"));
    Ok(())
}

/// cert-manager and the Prometheus operator are not in the host: what can be tested is that the components
/// fit.
#[tokio::test(flavor = "multi_thread")]
async fn the_components_go_with_every_installation() -> Result<()> {
    let host = TestHost::shared().await?;
    let deploy = from_root(&deploy())?;
    for overlay in ["sqlite", "etcd"] {
        let folder = host.dir.join(format!("with-components-{overlay}"));
        std::fs::create_dir_all(&folder)?;
        // kustomize takes no absolute path.
        let up = "../".repeat(from_root(&folder)?.components().count());
        let at = format!("{up}{}", deploy.display());
        let kustomization = format!(
            "resources: [{at}/overlays/{overlay}]\ncomponents: [{at}/components/cert-manager, \
             {at}/components/monitoring, {at}/components/surge, {at}/components/surge-monitoring, \
             {at}/components/ingress-sources]\n"
        );
        std::fs::write(folder.join("kustomization.yaml"), kustomization)?;
        let made = host.kubectl(&["kustomize", &folder.display().to_string()])?;
        assert!(made.contains("cert-manager.io/inject-ca-from: drydock-system/drydock-apiserver"), "{made}");
        for program in PROGRAMS.into_iter().chain([SURGE]) {
            // The pod takes the certificate, cert-manager makes it, and Prometheus verifies it.
            let secret = format!("{program}-tls");
            assert!(made.matches(&secret).count() >= 3, "{secret} in:\n{made}");
            assert!(made.contains(&format!("serverName: {program}.drydock-system.svc")), "{made}");
        }
        assert!(!made.contains("insecureSkipVerify"), "{made}");
        assert_eq!(made.matches("cidr: 192.0.2.0/24").count(), PROGRAMS.len() + 1, "{made}");
        // The removal finds cluster-scoped objects by this label.
        for object in made.split("\n---\n") {
            assert!(object.contains("\n    app.kubernetes.io/part-of: drydock\n"), "{object}");
        }
    }
    Ok(())
}

/// On a host of its own: the others of this process have their server's certificate in the APIService.
#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_that_is_made_is_the_one_that_the_aggregator_expects() -> Result<()> {
    let host = TestHost::start().await?;
    host.kubectl(&["apply", "-k", &deploy().display().to_string()])?;
    certificates(&host)?;
    let first = bundle(&host)?;
    verify(&host)?;

    certificates(&host)?;
    verify(&host)?;
    let renewed = bundle(&host)?;
    assert!(renewed.trim_end().ends_with(first.trim_end()), "who trusts the old one still does:\n{renewed}");
    assert_eq!(renewed.matches("BEGIN CERTIFICATE").count(), 2);
    Ok(())
}

/// Our requests do not use the host's level workload-low, which a tenant can fill.
#[tokio::test(flavor = "multi_thread")]
async fn the_host_serves_us_by_the_flow_schemas() -> Result<()> {
    let shared = shared().await?;
    let host = &shared.drydock.host;
    let tenant = host.kubeconfig("flow-schema-tester", &[])?;
    let requests = "/apis/coordination.k8s.io/v1alpha1/namespaces/default/evictionrequests";
    let asked = client_of(&tenant).await?.request_text(Request::get(requests).body(Vec::new())?).await;
    ensure!(asked.is_err(), "the host was asked, and says that nobody gave the right");
    let levels = [("drydock-apiserver-reviews", "exempt"), ("drydock", "workload-high")];
    let of = levels.map(|(schema, level)| {
        format!("dispatched_requests_total{{flow_schema=\"{schema}\",priority_level=\"{level}\"}}")
    });
    let client = host.client().await?;
    let counted = async || {
        let metrics = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
        Ok(of.iter().all(|series| metrics.contains(series)).then_some(()))
    };
    until_some(LIMIT, || format!("{of:?} are not counted"), counted).await
}

fn deploy() -> PathBuf {
    repository().join("deploy")
}

/// The path below `/`.
fn from_root(path: &Path) -> Result<PathBuf> {
    Ok(path.canonicalize()?.strip_prefix("/")?.to_owned())
}

fn certificates(host: &TestHost) -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let made = Command::new(deploy().join("certificates"))
        .env("KUBECONFIG", host.admin())
        .env("PATH", format!("{}:{path}", host.bin.display()))
        .output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

fn bundle(host: &TestHost) -> Result<String> {
    let encoded = host.kubectl(&["get", "apiservice", API_SERVICE, "-o", "jsonpath={.spec.caBundle}"])?;
    decode(&encoded)
}

/// Whether the certificates in the Secrets are for the names that their clients ask for, by the APIService's CAs.
fn verify(host: &TestHost) -> Result<()> {
    let (ca, certificate) = (host.dir.join("bundle.crt"), host.dir.join("serving.crt"));
    std::fs::write(&ca, bundle(host)?)?;
    for program in PROGRAMS {
        let secret = format!("{program}-tls");
        let get = ["get", "secret", &secret, "-n", "drydock-system", "-o", "jsonpath={.data.tls\\.crt}"];
        std::fs::write(&certificate, decode(&host.kubectl(&get)?)?)?;
        let verified = openssl_verify(&ca, &certificate, &format!("{program}.drydock-system.svc"))?;
        ensure!(verified.status.success(), "{program}: {}", String::from_utf8_lossy(&verified.stderr));
    }
    Ok(())
}

fn openssl_verify(ca: &Path, certificate: &Path, name: &str) -> Result<std::process::Output> {
    Command::new("openssl")
        .args(["verify", "-purpose", "sslserver", "-verify_hostname", name])
        .arg("-CAfile")
        .args([ca, certificate])
        .stdin(Stdio::null())
        .output()
        .context("openssl is missing: install it and run this again")
}

fn decode(base64: &str) -> Result<String> {
    let value = serde_json::json!(base64.trim());
    let bytes: k8s_openapi::ByteString = serde_json::from_value(value)?;
    Ok(String::from_utf8(bytes.0)?)
}
