//! The example server (conformance/example), which is built over our crates and knows nothing of our kinds: registered
//! in the host, kubectl, kube-rs and client-go use its kind as any other.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::program;
use drydock_testkit::host::audit::AUDITED;
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::informer::{self, Informer, InformerWay};
use drydock_testkit::kubectl::{Kubectl, KubectlOutput};
use drydock_testkit::wait::{api_available, file, retry, schema_served};
use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

use crate::shared::LIMIT;

const PROGRAM: &str = "drydock-example";
const GROUP_VERSION: &str = "wardle.example.com/v1alpha1";
/// The second version.
const BETA: &str = "wardle.example.com/v1beta1";
const FLUNDERS_IN_BETA: &str = "flunders.v1beta1.wardle.example.com";
const API_SERVICES: [(&str, &str); 2] =
    [("v1alpha1.wardle.example.com", GROUP_VERSION), ("v1beta1.wardle.example.com", BETA)];
const RESOURCE: &str = "flunders.v1alpha1.wardle.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_a_few_lines_serves_its_own_kind_to_every_client() -> Result<()> {
    let (host, port) = start().await?;
    let kubectl = Kubectl::new(&host);
    kubectl_asks_the_server_itself(&host, &kubectl, port).await?;
    kubectl_uses_the_kind(&kubectl).await?;
    both_versions_are_the_same_objects(&kubectl).await?;
    a_policy_for_one_version_applies_to_the_other(&kubectl).await?;
    kube_rs_watches_it(&host, &kubectl).await?;
    client_go_watches_it(&host, &kubectl).await
}

/// As its README says for a server that is not registered.
async fn kubectl_asks_the_server_itself(host: &TestHost, kubectl: &Kubectl, port: u16) -> Result<()> {
    kubectl.ok(&["create", "serviceaccount", "wardle-admin"]).await?;
    let account = ["--clusterrole=cluster-admin", "--serviceaccount=default:wardle-admin"];
    kubectl.ok(&[&["create", "clusterrolebinding", "wardle-admin"][..], &account].concat()).await?;
    let token = kubectl.ok(&["create", "token", "wardle-admin"]).await?;
    let (server, token) = (format!("--server=https://localhost:{port}"), format!("--token={}", token.trim()));
    let ca = format!("--certificate-authority={}", host.dir.join(PROGRAM).join("ca.crt").display());
    let shown = kubectl.run(&[&server, &ca, &token, "get", "flunders"], "").await?;
    ensure!(shown.err == "No resources found in default namespace.\n", "{shown:?}");
    Ok(())
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

async fn both_versions_are_the_same_objects(kubectl: &Kubectl) -> Result<()> {
    let mut watch = kubectl.follow(&["get", FLUNDERS_IN_BETA, "--watch", "--output-watch-events"])?;
    apply(kubectl, "alpha", json!({"reference": "b", "referenceType": "Fischer"})).await?;
    watch.line_with(&["ADDED", "a"]).await?;
    let shown = kubectl.object(FLUNDERS_IN_BETA, "a").await?;
    assert_eq!(shown["apiVersion"], BETA);
    assert_eq!(shown["spec"], json!({"fischerReference": "b", "referenceType": "Fischer"}));
    for (reference, names) in [("b", "flunder.wardle.example.com/a\n"), ("c", "")] {
        let selector = format!("--field-selector=spec.fischerReference={reference}");
        assert_eq!(kubectl.ok(&["get", FLUNDERS_IN_BETA, &selector, "--output=name"]).await?, names);
    }

    // A conflict names the field as its owner applied it; the items of the list are shared.
    let owned = apply_in(kubectl, BETA, "beta", json!({"fischerReference": "c"})).await?;
    let conflict = "conflict with \"alpha\": .spec.reference";
    ensure!(owned.code != 0 && owned.err.contains(conflict), "{owned:?}");
    apply_in(kubectl, BETA, "beta", json!({"tools": [{"name": "axe"}]})).await?;
    watch.line_with(&["MODIFIED", "a"]).await?;
    apply(kubectl, "alpha", json!({"tools": [{"name": "saw"}]})).await?;
    let shown = kubectl.object("flunder", "a").await?;
    assert_eq!(shown["apiVersion"], GROUP_VERSION);
    // What alpha does not apply any more is gone; what beta applied stays.
    assert_eq!(shown["spec"], json!({"tools": [{"name": "axe", "count": 1}, {"name": "saw", "count": 1}]}));

    let both = json!({"flunderReference": "b", "fischerReference": "c"});
    let wrong = kubectl.apply_refused(&flunder_in(BETA, "b", both)).await?;
    assert!(wrong.contains("spec.fischerReference: Invalid value: \"c\": must not be set"), "{wrong}");
    let explained = kubectl.ok(&["explain", "flunder.spec", "--api-version", BETA]).await?;
    assert!(explained.contains("FischerReference is the name of a Fischer."), "{explained}");
    kubectl.ok(&["delete", FLUNDERS_IN_BETA, "a"]).await?;
    watch.line_with(&["DELETED", "a"]).await?;
    Ok(())
}

/// The policy is written in terms of v1alpha1, and its matchPolicy is Equivalent, the default.
async fn a_policy_for_one_version_applies_to_the_other(kubectl: &Kubectl) -> Result<()> {
    let rule = json!({
        "apiGroups": ["wardle.example.com"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"],
        "resources": ["flunders"],
    });
    let of_kind = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "no-sharks"},
            "spec": spec,
        })
    };
    let policy = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "!has(object.spec.reference) || object.spec.reference != 'shark'",
                         "message": "sharks are not welcome"}],
    });
    kubectl.apply(&of_kind("ValidatingAdmissionPolicy", policy)).await?;
    let binding = json!({"policyName": "no-sharks", "validationActions": ["Deny"]});
    kubectl.apply(&of_kind("ValidatingAdmissionPolicyBinding", binding)).await?;
    let shark = flunder_in(BETA, "shark", json!({"flunderReference": "shark"})).to_string();
    let create = ["create", "--dry-run=server", "-f", "-"];
    retry(
        LIMIT,
        || "the policy does not apply".to_owned(),
        async || {
            let said = kubectl.run(&create, &shark).await?;
            Ok(said.code != 0 && said.err.contains("sharks are not welcome"))
        },
    )
    .await?;
    let trout = flunder_in(BETA, "trout", json!({"flunderReference": "trout"})).to_string();
    let said = kubectl.run(&create, &trout).await?;
    ensure!(said.code == 0, "{said:?}");
    Ok(())
}

/// Applies the Flunder `a` on the server's side. (kubectl hands over what it applied on its own side.)
async fn apply(kubectl: &Kubectl, manager: &str, spec: Value) -> Result<()> {
    let said = apply_in(kubectl, GROUP_VERSION, manager, spec).await?;
    ensure!(said.code == 0, "{said:?}");
    Ok(())
}

async fn apply_in(kubectl: &Kubectl, version: &str, manager: &str, spec: Value) -> Result<KubectlOutput> {
    let manager = format!("--field-manager={manager}");
    let applied = ["apply", "--server-side", &manager, "-f", "-"];
    kubectl.run(&applied, &flunder_in(version, "a", spec).to_string()).await
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

/// Starts a host and the server, installed by `deploy.yaml`, but for what needs a kubelet: it runs here, as its service
/// account.
async fn start() -> Result<(Arc<TestHost>, u16)> {
    let host = TestHost::start().await?;
    let manifest = repository().join("conformance/example/deploy.yaml").display().to_string();
    host.kubectl(&["apply", "--validate=strict", "-f", &manifest])?;
    let (port, data) = (host.free_port()?, host.dir.join(PROGRAM));
    let groups = ["system:serviceaccounts", "system:serviceaccounts:wardle"];
    let kubeconfig = host.kubeconfig("system:serviceaccount:wardle:wardle", &groups)?;
    let flags = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--address=127.0.0.1:{port}"),
        format!("--data-dir={}", data.display()),
    ];
    host.processes.start(PROGRAM, &program(PROGRAM), &flags)?;
    let ca = data.join("ca.crt");
    file(&ca, &host.processes, PROGRAM, LIMIT).await?;
    register(&host, port, &ca).await.with_context(|| host.processes.log_tail(PROGRAM))?;
    Ok((host, port))
}

/// Leads the Service to the process, and gives its certificate to the APIServices.
async fn register(host: &TestHost, port: u16, ca: &Path) -> Result<()> {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "wardle", "namespace": "wardle"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    host.kubectl(&["delete", "service", "wardle", "--namespace=wardle"])?;
    Kubectl::new(host).in_namespace("wardle").apply(&service).await?;
    let bundle = k8s_openapi::ByteString(std::fs::read(ca)?);
    let patch = json!({"spec": {"caBundle": bundle, "service": {"port": port}}}).to_string();
    let client = host.client().await?;
    for (name, version) in API_SERVICES {
        host.kubectl(&["patch", "apiservice", name, "--type=merge", "--patch", &patch])?;
        api_available(&client, name, LIMIT).await?;
        schema_served(&client, version, LIMIT).await?;
    }
    Ok(())
}

fn flunder(name: &str, spec: Value) -> Value {
    flunder_in(GROUP_VERSION, name, spec)
}

fn flunder_in(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": "Flunder", "metadata": {"name": name}, "spec": spec})
}
