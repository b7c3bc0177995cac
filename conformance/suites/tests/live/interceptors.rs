//! The example interceptors in Rust, Go, Python and bash, each as a ServiceAccount with the rights of its manifest: a
//! turn that they take, go on with after a restart, and end, and one that is withdrawn.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::repository;
use drydock_testkit::kinds::{eviction_request, eviction_request_resource};
use drydock_testkit::program::Program;
use drydock_testkit::wait::{allowed, retry};
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::shared::{LIMIT, Namespace, Shared, shared};

const ACCOUNT: &str = "checkpoint";
const NAME: &str = "checkpoint.example.com";
const EXAMPLES: &str = "controllers/interceptor-runtime/examples";

#[tokio::test(flavor = "multi_thread")]
async fn the_interceptor_in_rust_takes_its_turns() -> Result<()> {
    let program = drydock_testkit::drydock::program("examples/checkpoint");
    takes_its_turns("interceptor-rust", vec![program.display().to_string()]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_interceptor_in_go_takes_its_turns() -> Result<()> {
    let program = shared().await?.drydock.host.dir.join("go-checkpoint");
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    let built =
        go.env("CGO_ENABLED", "0").current_dir(repository().join(EXAMPLES).join("go")).output().await?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    takes_its_turns("interceptor-go", vec![program.display().to_string()]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_interceptor_in_python_takes_its_turns() -> Result<()> {
    takes_its_turns("interceptor-python", vec!["python3".to_owned(), example("checkpoint.py")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_interceptor_in_bash_takes_its_turns() -> Result<()> {
    takes_its_turns("interceptor-bash", vec![example("checkpoint.sh")]).await
}

/// A line break in the progress that a pod reports began a line that named another request, and what followed was cut off.
#[tokio::test(flavor = "multi_thread")]
async fn a_progress_with_a_line_break_forged_a_turn_of_the_interceptor_in_bash() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("interceptor-forged").await?;
    let node = shared.node("interceptor-forged").await?;
    let account = ServiceAccount::create(shared, &namespace).await?;
    let interceptor = account.start(shared, &namespace.name, &[example("checkpoint.sh")])?;
    let uid = requested(&namespace, "hostile", &node).await?;
    for hostile in [
        "half \"of\" it\nforged forged-uid hostile - it\\",
        "', uid: \"$(id)\" } # \u{1b}[2J\t \u{1f600}",
        "plain",
    ] {
        annotate(&namespace, "hostile", &format!("progress={hostile}"), &["--overwrite"]).await?;
        let late = || format!("{hostile:?} is not reported: {:#?}", interceptor.lines());
        retry(LIMIT, late, async || {
            let request = namespace.kubectl.object("evreq", &uid).await?;
            Ok(request["status"]["interceptors"][0]["message"] == hostile)
        })
        .await?;
    }
    ensure!(interceptor.said(&["forged"]) == 0, "{:#?}", interceptor.lines());
    Ok(())
}

fn example(name: &str) -> String {
    repository().join(EXAMPLES).join(name).display().to_string()
}

async fn takes_its_turns(name: &str, command: Vec<String>) -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace(name).await?;
    let node = shared.node(name).await?;
    let account = ServiceAccount::create(shared, &namespace).await?;
    let start = || account.start(shared, &namespace.name, &command);
    a_turn_ends_in_the_eviction(&namespace, &node, start).await?;
    a_turn_that_is_withdrawn_is_over(&namespace, &node, &start()?).await
}

/// The interceptor is killed in the middle of the turn, and another run ends it.
async fn a_turn_ends_in_the_eviction(
    namespace: &Namespace,
    node: &str,
    start: impl Fn() -> Result<Program>,
) -> Result<()> {
    let interceptor = start()?;
    let (uid, kubectl) = (requested(namespace, "done", node).await?, &namespace.kubectl);
    annotate(namespace, "done", "progress=half of it", &[]).await?;
    wait(namespace, &format!("evreq/{uid}"), "{.status.interceptors[0].message}=half of it").await?;
    interceptor.kill().await?;
    let begun = kubectl.object("evreq", &uid).await?["status"]["interceptors"][0].take();
    annotate(namespace, "done", "done=true", &[]).await?;
    let _interceptor = start()?;
    kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Evicted"]).await?;
    let request = kubectl.object("evreq", &uid).await?;
    let entry = &request["status"]["interceptors"][0];
    assert_eq!((&entry["name"], &entry["message"]), (&json!(NAME), &json!("checkpoint written")));
    assert_eq!((&entry["startTime"], entry["completionTime"].is_string()), (&begun["startTime"], true));
    let processed = json!([NAME, "imperative-eviction.k8s.io"]);
    assert_eq!(request["status"]["processedInterceptors"], processed);
    Ok(())
}

async fn a_turn_that_is_withdrawn_is_over(
    namespace: &Namespace,
    node: &str,
    interceptor: &Program,
) -> Result<()> {
    let (uid, kubectl) = (requested(namespace, "withdrawn", node).await?, &namespace.kubectl);
    let nobody = r#"{"spec":{"requesters":[]}}"#;
    kubectl.ok(&["patch", "evreq", &uid, "--type=merge", "--patch", nobody]).await?;
    kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Canceled"]).await?;
    interceptor.says(&[&uid, "is over"], 1).await?;
    // What the pod says now is of no request.
    annotate(namespace, "withdrawn", "done=true", &[]).await?;
    let request = kubectl.object("evreq", &uid).await?;
    assert_eq!(request["status"]["interceptors"][0].get("completionTime"), None, "{request}");
    Ok(())
}

/// A pod that names the interceptor, and a request that it has begun; returns the pod's UID.
async fn requested(namespace: &Namespace, pod: &str, node: &str) -> Result<String> {
    let key = format!("interceptor.evictionrequest.coordination.k8s.io/priority_{NAME}");
    let uid = namespace.pod(pod, node, json!({key: "10/controller"})).await?;
    namespace.kubectl.apply(&eviction_request(pod, &uid, "test.example.com")).await?;
    let asked = r"{.metadata.annotations.checkpoint\.example\.com/requested}=true";
    wait(namespace, &format!("pod/{pod}"), asked).await?;
    let begun = "{.status.interceptors[0].message}=waiting for the pod to write a checkpoint";
    wait(namespace, &format!("evreq/{uid}"), begun).await?;
    Ok(uid)
}

async fn wait(namespace: &Namespace, object: &str, path: &str) -> Result<()> {
    let state = format!("--for=jsonpath={path}");
    namespace.kubectl.ok(&["wait", object, &state]).await.map(drop)
}

/// The pod's container, or a program beside it, writes this in life.
async fn annotate(namespace: &Namespace, pod: &str, answer: &str, flags: &[&str]) -> Result<()> {
    let answer = format!("{NAME}/{answer}");
    namespace.kubectl.ok(&[&["annotate", "pod", pod, &answer], flags].concat()).await.map(drop)
}

/// The account of the manifest, with what a pod finds of it.
struct ServiceAccount {
    /// The folder that a pod has at /var/run/secrets/kubernetes.io/serviceaccount, and a kubeconfig.
    folder: PathBuf,
    server: String,
}

impl ServiceAccount {
    /// Creates it in a namespace, and waits until the host knows of its rights.
    async fn create(shared: &Shared, namespace: &Namespace) -> Result<ServiceAccount> {
        let (host, kubectl) = (&shared.drydock.host, &namespace.kubectl);
        let roles = repository().join("deploy/base/rbac-users.yaml");
        host.kubectl(&["apply", "--server-side", "-f", &roles.to_string_lossy()])?;
        let manifest = std::fs::read_to_string(repository().join(EXAMPLES).join("rbac.yaml"))?;
        let manifest = manifest.replace("namespace: shop", &format!("namespace: {}", namespace.name));
        let applied = kubectl.run(&["apply", "-f", "-"], &manifest).await?;
        ensure!(applied.code == 0, "{applied:?}");
        let token = kubectl.ok(&["create", "token", ACCOUNT]).await?;
        let group = eviction_request_resource().group;
        for (group, resource, subresource, verb, name) in [
            (group.as_str(), "evictionrequests", "", "watch", ""),
            (&group, "evictionrequests", "status", "patch", ""),
            (&group, "evictionrequests", "interceptor", "patch", NAME),
            ("", "pods", "", "patch", ""),
        ] {
            let spec = json!({
                "user": format!("system:serviceaccount:{}:{ACCOUNT}", namespace.name),
                "resourceAttributes": {"group": group, "resource": resource, "subresource": subresource,
                                       "verb": verb, "name": name, "namespace": namespace.name},
            });
            let review = serde_json::from_value(json!({"spec": spec}))?;
            allowed(&namespace.client, &review, LIMIT).await?;
        }
        let folder = host.dir.join(format!("{}-account", namespace.name));
        std::fs::create_dir_all(&folder)?;
        let admin = serde_json::to_value(Kubeconfig::read_from(host.admin())?)?;
        let cluster = &admin["clusters"][0]["cluster"];
        let server = cluster["server"].as_str().context("a cluster without server")?.to_owned();
        std::fs::write(folder.join("token"), token.trim())?;
        write_ca(cluster, &folder.join("ca.crt"))?;
        let kubeconfig = kubeconfig(&server, &folder.join("ca.crt"), token.trim());
        std::fs::write(folder.join("kubeconfig"), kubeconfig.to_string())?;
        Ok(ServiceAccount { folder, server })
    }

    /// Starts an interceptor of a namespace as this account.
    fn start(&self, shared: &Shared, namespace: &str, command: &[String]) -> Result<Program> {
        let address = self.server.trim_start_matches("https://");
        let (host, port) = address.rsplit_once(':').context("a server without port")?;
        let bin = shared.drydock.host.bin.display();
        let mut args = vec![
            format!("PATH={bin}:{}", std::env::var("PATH").unwrap_or_default()),
            format!("KUBECONFIG={}", self.folder.join("kubeconfig").display()),
            format!("SERVICE_ACCOUNT={}", self.folder.display()),
            format!("KUBERNETES_SERVICE_HOST={host}"),
            format!("KUBERNETES_SERVICE_PORT={port}"),
            "INTERVAL=1".to_owned(),
        ];
        args.extend_from_slice(command);
        args.push(namespace.to_owned());
        Program::start(Path::new("/usr/bin/env"), &self.folder, &args)
    }
}

/// A file, as the kubeconfig names or contains it.
fn write_ca(cluster: &Value, path: &Path) -> Result<()> {
    let file =
        cluster["certificate-authority"].as_str().context("a kubeconfig without the file of its CA")?;
    std::fs::copy(file, path).map(drop).with_context(|| format!("{file} is not copied"))
}

fn kubeconfig(server: &str, ca: &Path, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": ACCOUNT,
        "clusters": [{"name": ACCOUNT, "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": ACCOUNT, "context": {"cluster": ACCOUNT, "user": ACCOUNT}}],
    })
}
