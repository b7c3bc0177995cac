//! What the tests share: one Drydock in one host, and small things to try it on.

use anyhow::{Context, Result};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kubectl::Kubectl;
pub use drydock_testkit::wait::LIMIT;
use drydock_testkit::wait::{schema_served, until};
use drydock_testkit::{cluster, kinds};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// An interceptor that does not run: a request for a pod that names it stays with it for 20 minutes.
pub const ABSENT_INTERCEPTOR: &str = "absent.example.com";

/// The annotation with which a kubelet marks the mirror of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// The Drydock that tests share which leave it as it is, and what the host was before it came.
pub struct Shared {
    pub drydock: Drydock,
    pub before: Before,
}

/// What kubectl printed on the host alone.
pub struct Before {
    pub api_resources: String,
    pub leases: String,
}

/// A namespace of a test's own.
pub struct Namespace {
    pub name: String,
    pub client: Client,
    /// The admin's kubectl, in it.
    pub kubectl: Kubectl,
}

/// Starts it for the first that asks.
pub async fn shared() -> Result<&'static Shared> {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    SHARED.get_or_try_init(start).await
}

async fn start() -> Result<Shared> {
    let host = TestHost::shared().await?;
    let kubectl = Kubectl::new(&host);
    let before = Before::read(&kubectl).await?;
    let drydock = Drydock::start(host, Options::default()).await?;
    schema_served(&drydock.host.client().await?, drydock_api::API_VERSION, LIMIT).await?;
    // kubectl remembers what it found before; this makes it look again.
    kubectl.ok(&["api-resources"]).await?;
    Ok(Shared { drydock, before })
}

impl Before {
    /// The arguments of `kubectl get leases` that print the same at any time.
    pub const LEASES: [&str; 3] = ["get", "leases", "--output=name"];

    async fn read(kubectl: &Kubectl) -> Result<Before> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "as-before"},
            "spec": {"holderIdentity": "someone"},
        });
        kubectl.apply(&lease).await?;
        Ok(Before {
            api_resources: kubectl.ok(&["api-resources", "--output=wide"]).await?,
            leases: kubectl.ok(&Before::LEASES).await?,
        })
    }
}

impl Shared {
    /// The admin's kubectl.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.drydock.host)
    }

    /// Makes a namespace and waits until pods can be created in it.
    pub async fn namespace(&self, name: &str) -> Result<Namespace> {
        let kubectl = self.kubectl();
        kubectl.ok(&["create", "namespace", name]).await?;
        let client = self.drydock.host.client().await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
        until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
        Ok(Namespace { name: name.into(), client, kubectl: kubectl.in_namespace(name) })
    }

    /// Makes a node of the given name, or close to it, and returns its name.
    pub async fn node(&self, prefix: &str) -> Result<String> {
        let made = cluster::create_nodes(&self.drydock.host.client().await?, prefix, 1).await?;
        made.into_iter().next().context("no node")
    }
}

impl Namespace {
    /// The namespace `default` of a Drydock of a test's own, when the API is served and pods can be created.
    pub async fn default_of(drydock: &Drydock) -> Result<Namespace> {
        let client = drydock.host.client().await?;
        schema_served(&client, drydock_api::API_VERSION, LIMIT).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
        Ok(Namespace { name: "default".into(), client, kubectl: Kubectl::new(&drydock.host) })
    }

    /// Creates a running pod with an interceptor that does not run, which holds it back; returns its UID.
    pub async fn held_pod(&self, name: &str, node: &str) -> Result<String> {
        let key = format!("interceptor.evictionrequest.coordination.k8s.io/priority_{ABSENT_INTERCEPTOR}");
        self.pod(name, node, json!({key: "10/controller"})).await
    }

    /// A running pod; returns its uid.
    pub async fn pod(&self, name: &str, node: &str, annotations: Value) -> Result<String> {
        self.pod_of(name, node, annotations, json!([])).await
    }

    /// A running pod as a kubelet writes the mirror of a static one; returns its uid.
    pub async fn mirror_pod(&self, name: &str, node: &str) -> Result<String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let uid = nodes.get(node).await?.uid().context("a node without uid")?;
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true});
        self.pod_of(name, node, json!({MIRROR: "a-hash"}), json!([owner])).await
    }

    /// A running pod with owners; returns its uid.
    pub async fn pod_of(&self, name: &str, node: &str, annotations: Value, owners: Value) -> Result<String> {
        let metadata = json!({"name": name, "annotations": annotations, "labels": {"app": name}, "ownerReferences": owners});
        let pod: Pod = serde_json::from_value(json!({
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}],
                     "tolerations": [{"operator": "Exists"}]},
        }))?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let made = pods.create(&PostParams::default(), &pod).await?;
        let running = |pod: Option<&Pod>| phase(pod) == Some("Running");
        until(pods, name, LIMIT, "running", running).await?;
        made.uid().context("a pod without uid")
    }

    /// A held pod with a request for it that has reached the interceptor; returns the uid of the pod, which is the
    /// name of the request.
    pub async fn held_request(&self, pod: &str, node: &str) -> Result<String> {
        let uid = self.held_pod(pod, node).await?;
        self.kubectl.apply(&kinds::eviction_request(pod, &uid, "test.example.com")).await?;
        self.kubectl
            .ok(&["wait", "evreq", &uid, "--for=jsonpath={.status.activeInterceptors[0]}=absent.example.com"])
            .await?;
        Ok(uid)
    }
}

fn phase(pod: Option<&Pod>) -> Option<&str> {
    pod?.status.as_ref()?.phase.as_deref()
}
