//! The example server (conformance/example), which is built over our crates and knows nothing of our kinds: registered
//! in the host, kubectl, kube-rs and client-go use its kind as any other.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::program;
use drydock_testkit::host::audit::AUDITED;
use drydock_testkit::host::{TestHost, free_ports};
use drydock_testkit::informer::{self, Informer, InformerWay};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{api_available, file, schema_served};
use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

use crate::shared::LIMIT;

const PROGRAM: &str = "drydock-example";
const API_SERVICE: &str = "v1alpha1.wardle.example.com";
const GROUP_VERSION: &str = "wardle.example.com/v1alpha1";
const RESOURCE: &str = "flunders.v1alpha1.wardle.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_a_few_lines_serves_its_own_kind_to_every_client() -> Result<()> {
    let host = start().await?;
    let kubectl = Kubectl::new(&host);
    kubectl_uses_the_kind(&kubectl).await?;
    kube_rs_watches_it(&host, &kubectl).await?;
    client_go_watches_it(&host, &kubectl).await
}

async fn kubectl_uses_the_kind(kubectl: &Kubectl) -> Result<()> {
    let mut watch = kubectl.follow(&["get", "flunders", "--watch", "--output-watch-events"])?;
    apply(kubectl, "kubectl", json!({"reference": "b", "tools": [{"name": "saw"}]})).await?;
    watch.line_with(&["ADDED", "a"]).await?;
    let made = kubectl.object("flunder", "a").await?;
    // Both defaults: that of the strategy and that of the schema.
    let spec = json!({"reference": "b", "referenceType": "Flunder", "tools": [{"name": "saw", "count": 1}]});
    assert_eq!((&made["spec"], &made["status"]), (&spec, &json!({})));

    let editor = kubectl.clone().with_editor("sed -i 's/reference: b/reference: c/'");
    editor.ok(&["edit", "flunder", "a"]).await?;
    watch.line_with(&["MODIFIED", "a"]).await?;
    // Another applier adds a tool: the list is merged by its key.
    apply(kubectl, "other", json!({"tools": [{"name": "axe", "count": 3}]})).await?;
    let changed = kubectl.object("flunder", "a").await?;
    assert_eq!(changed["spec"]["reference"], "c");
    assert_eq!(changed["spec"]["tools"], json!([{"name": "saw", "count": 1}, {"name": "axe", "count": 3}]));

    let wrong = kubectl.apply_refused(&flunder("b", json!({"referenceType": "Shark"}))).await?;
    for part in ["spec.referenceType: Unsupported value: \"Shark\"", "spec.reference: Required value"] {
        assert!(wrong.contains(part), "{wrong}");
    }
    let explained = kubectl.ok(&["explain", "flunder.spec.tools"]).await?;
    for part in ["Tools of the Flunder, by their names.", "FIELD: tools <[]Tool>", "count\t<integer>"] {
        assert!(explained.contains(part), "{explained}");
    }
    kubectl.ok(&["delete", "flunder", "a"]).await?;
    watch.line_with(&["DELETED", "a"]).await?;
    Ok(())
}

/// Applies the Flunder `a` on the server's side. (kubectl hands over what it applied on its own side.)
async fn apply(kubectl: &Kubectl, manager: &str, spec: Value) -> Result<()> {
    let manager = format!("--field-manager={manager}");
    let applied = ["apply", "--server-side", &manager, "-f", "-"];
    let said = kubectl.run(&applied, &flunder("a", spec).to_string()).await?;
    ensure!(said.code == 0, "{said:?}");
    Ok(())
}

async fn kube_rs_watches_it(host: &TestHost, kubectl: &Kubectl) -> Result<()> {
    let kind = GroupVersionKind::gvk("wardle.example.com", "v1alpha1", "Flunder");
    let api: Api<DynamicObject> = Api::namespaced_with(
        host.client().await?,
        "default",
        &ApiResource::from_gvk_with_plural(&kind, "flunders"),
    );
    let mut applied = watcher(api, watcher::Config::default()).applied_objects().boxed();
    kubectl.apply(&flunder("rust", json!({}))).await?;
    let seen = tokio::time::timeout(LIMIT, applied.try_next()).await?;
    assert_eq!(seen?.context("the watch ended")?.name_any(), "rust");
    Ok(())
}

async fn client_go_watches_it(host: &TestHost, kubectl: &Kubectl) -> Result<()> {
    let (program, user) =
        (informer::program().await?, host.kubeconfig("informer", &[AUDITED, "system:masters"])?);
    let way = InformerWay { client: "dynamic", watch_list: true };
    let mut informer = Informer::start(&program, &host.dir, &user, way, RESOURCE, "suite=go")?;
    informer.synced().await?;
    let mut object = flunder("go", json!({}));
    object["metadata"]["labels"] = json!({"suite": "go", "step": "1"});
    kubectl.apply(&object).await?;
    assert_eq!(informer.next().await?, "add go 1");
    Ok(())
}

/// Starts a host and the server, as a user with no more rights than it needs, and registers it.
async fn start() -> Result<Arc<TestHost>> {
    let host = TestHost::start().await?;
    grant(&host)?;
    let (port, data) = (free_ports(1)?.first().copied().context("no free port")?, host.dir.join(PROGRAM));
    let kubeconfig = host.kubeconfig("wardle", &[])?;
    let flags = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--secure-port={port}"),
        format!("--data-dir={}", data.display()),
    ];
    host.processes.start(PROGRAM, &program(PROGRAM), &flags)?;
    let ca = data.join("ca.crt");
    file(&ca, &host.processes, PROGRAM, LIMIT).await?;
    register(&host, port, &ca).await.with_context(|| host.processes.log_tail(PROGRAM))?;
    Ok(host)
}

fn grant(host: &TestHost) -> Result<()> {
    let reader =
        ["--role=extension-apiserver-authentication-reader", "--namespace=kube-system", "--user=wardle"];
    for rights in [
        &["clusterrolebinding", "wardle", "--clusterrole=system:auth-delegator", "--user=wardle"][..],
        &[&["rolebinding", "wardle"][..], &reader].concat(),
        &["clusterrole", "wardle", "--verb=get,list,watch", "--resource=namespaces"],
        &["clusterrolebinding", "wardle-namespaces", "--clusterrole=wardle", "--user=wardle"],
    ] {
        host.kubectl(&[&["create"], rights].concat())?;
    }
    Ok(())
}

async fn register(host: &TestHost, port: u16, ca: &Path) -> Result<()> {
    let meta = json!({"name": "wardle", "namespace": "default"});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": meta,
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let registration = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": API_SERVICE},
        "spec": {"group": "wardle.example.com", "version": "v1alpha1", "groupPriorityMinimum": 1000,
                 "versionPriority": 15, "service": {"name": "wardle", "namespace": "default", "port": port},
                 "caBundle": k8s_openapi::ByteString(std::fs::read(ca)?)},
    });
    let kubectl = Kubectl::new(host);
    kubectl.apply(&service).await?;
    kubectl.apply(&registration).await?;
    let client = host.client().await?;
    api_available(&client, API_SERVICE, LIMIT).await?;
    schema_served(&client, GROUP_VERSION, LIMIT).await
}

fn flunder(name: &str, spec: Value) -> Value {
    json!({"apiVersion": GROUP_VERSION, "kind": "Flunder", "metadata": {"name": name}, "spec": spec})
}
