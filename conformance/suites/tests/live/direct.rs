//! The controllers' way to our API server: straight to its Service, and through the aggregator while that fails.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::host::audit::{LoggedRequest, requests};
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::{retry, until};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::shared::{LIMIT, shared};

const MANAGER: &str = "drydock-controller-manager";
const USER: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";
const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";
/// Namespaces of a drain.
const NAMESPACES: usize = 4;

/// A drain from start to end: all that it writes for our kinds is in our audit log and not in the host's. The host gets an
/// eviction of each pod, and is asked nothing about single pods or namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_costs_the_host_an_eviction_of_each_pod_no_write_of_our_kinds_and_no_review_of_a_pod()
-> Result<()> {
    let shared = shared().await?;
    let node = shared.node("direct").await?;
    let mut pods = Vec::new();
    for i in 0..NAMESPACES {
        let namespace = shared.namespace(&format!("direct-{i}")).await?;
        pods.push(namespace.pod("p", &node, Value::Null).await?);
    }
    let kubectl = shared.kubectl();
    kubectl.apply(&node_maintenance("direct", "Drain", &[&node])).await?;
    kubectl.ok(&["wait", "nodemaintenance/direct", "--for=condition=Drained"]).await?;

    let is_of_drain = |request: &LoggedRequest| {
        let name = &request.object_ref.name;
        name == "direct" || pods.contains(name) || request.object_ref.namespace.starts_with("direct-")
    };
    let ours = requests(&shared.drydock.audit_log())?;
    let ours = ours.iter().filter(|request| is_write_of_ours(request) && is_of_drain(request));
    let (straight, through_host): (Vec<_>, Vec<_>) = ours.partition(|request| is_straight(request));
    ensure!(through_host.is_empty(), "through the aggregator: {through_host:?}");
    let expected =
        ["patch evictionrequests", "patch evictionrequests/status", "patch nodemaintenances/status"];
    let is_written = |what: &&str| {
        straight
            .iter()
            .any(|request| what.strip_prefix(&*request.verb).is_some_and(|it| request.is_about(it.trim())))
    };
    ensure!(expected.iter().all(is_written), "{straight:?}");
    let log = requests(&shared.drydock.host.audit_log())?;
    let in_hosts = log.iter().find(|request| is_write_of_ours(request) && is_of_drain(request));
    ensure!(in_hosts.is_none(), "the host's log has {in_hosts:?}");

    let is_eviction =
        |request: &&LoggedRequest| request.is_about("pods/eviction") && request.user.username == USER;
    let evictions = log.iter().filter(|request| is_eviction(request) && request.succeeded());
    let namespaces: BTreeSet<&str> = evictions.map(|request| &*request.object_ref.namespace).collect();
    for i in 0..NAMESPACES {
        let namespace = format!("direct-{i}");
        ensure!(namespaces.contains(&*namespace), "no eviction in {namespace}: {namespaces:?}");
    }

    let reviews = log.iter().filter(|request| request.is_about("subjectaccessreviews"));
    let about = reviews.map(|request| &request.request_object["spec"]).filter(|spec| spec["user"] == USER);
    let about: Vec<&Value> = about.map(|spec| &spec["resourceAttributes"]).collect();
    ensure!(!about.is_empty(), "the host was not asked about the controllers");
    let is_narrow = |about: &&&Value| {
        let namespace = about["namespace"].as_str().unwrap_or_default();
        namespace.starts_with("direct-") || pods.iter().any(|uid| about["name"] == uid.as_str())
    };
    let narrow: Vec<_> = about.iter().filter(is_narrow).collect();
    ensure!(narrow.is_empty(), "reviews of what is allowed in general: {narrow:?}");

    kubectl.ok(&["delete", "nodemaintenance/direct"]).await.map(drop)
}

/// On a host of its own, whose API server is killed and gets another CA.
#[tokio::test(flavor = "multi_thread")]
async fn the_aggregator_is_taken_while_the_direct_route_fails_and_not_for_a_denial() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let site = Site { drydock };
    site.goes_straight("at-first").await?;
    site.returns_when_the_server_does().await?;
    site.follows_the_bundle().await?;
    site.is_left_to_the_aggregator_unless_it_is_verified().await?;
    site.asks_about_a_denial_once().await
}

struct Site {
    drydock: Drydock,
}

impl Site {
    /// The aggregator cannot reach a server that is gone either; what is tested is that the way is taken up again.
    async fn returns_when_the_server_does(&self) -> Result<()> {
        self.drydock.kill_apiserver()?;
        self.is_told("no connection: ").await?;
        self.drydock.start_apiserver().await?;
        self.goes_straight("afterwards").await
    }

    /// A new CA: the old bundle does not verify the server, for the manager as for the aggregator.
    async fn follows_the_bundle(&self) -> Result<()> {
        self.drydock.stop_apiserver().await?;
        std::fs::remove_dir_all(self.drydock.ca().parent().unwrap_or(&self.drydock.ca()))?;
        self.drydock.start_apiserver().await?;
        self.is_told("no TLS connection: ").await?;
        self.drydock.register().await?;
        self.goes_straight("rotated").await
    }

    /// The aggregator does not verify the server then, and reaches it.
    async fn is_left_to_the_aggregator_unless_it_is_verified(&self) -> Result<()> {
        let host = &self.drydock.host;
        let get = ["get", "apiservice", API_SERVICE, "-o", "jsonpath={.spec.caBundle}"];
        let bundle = host.kubectl(&get)?;
        let change = |spec: &Value| {
            let patch = json!({ "spec": spec }).to_string();
            host.kubectl(&["patch", "apiservice", API_SERVICE, "--type=merge", "-p", &patch])
        };
        change(&json!({"insecureSkipTLSVerify": true, "caBundle": null}))?;
        self.is_told("insecureSkipTLSVerify").await?;
        self.is_taken_up("insecure").await?;
        let ways = self.ways("insecure")?;
        ensure!(!ways.contains(&true), "the token was shown to a server that was not verified: {ways:?}");
        change(&json!({"insecureSkipTLSVerify": null, "caBundle": bundle}))?;
        self.goes_straight("verified").await
    }

    /// The right is taken away: the answer of our API server is final.
    async fn asks_about_a_denial_once(&self) -> Result<()> {
        let role: Value = serde_json::from_str(&self.drydock.host.kubectl(&[
            "get",
            "clusterrole",
            MANAGER,
            "-o",
            "json",
        ])?)?;
        let path = path_of(&role, "nodemaintenances/status").context("the role does not name the status")?;
        let right = json!({"path": path, "value": "nodemaintenances/status"});
        let of = |op: &str| {
            let mut operation = right.clone();
            operation["op"] = op.into();
            operation
        };
        let without = json!([of("test"), of("remove")]).to_string();
        self.drydock.host.kubectl(&["patch", "clusterrole", MANAGER, "--type=json", "-p", &without])?;
        // The answer that allowed it is remembered for a while.
        let (late, mut created) = (|| "no write was denied".to_owned(), Vec::new());
        let is_denied = async || {
            created.push(format!("denied-{}", created.len()));
            self.create(&created[created.len() - 1]).await?;
            let log = requests(&self.drydock.audit_log())?;
            Ok(log.iter().any(|request| is_write_of_ours(request) && request.is_forbidden()))
        };
        retry(LIMIT, late, is_denied).await?;
        for name in &created {
            let ways = self.ways(name)?;
            let is_straight = ways.iter().all(|is_straight| *is_straight);
            ensure!(is_straight, "the aggregator was asked about a denial: {name}: {ways:?}");
        }
        Ok(())
    }

    /// Waits until a new maintenance is taken up by writes that come straight. Those of the first may not, as the way is
    /// tried again after a pause.
    async fn goes_straight(&self, name: &str) -> Result<()> {
        let late = || format!("no write goes straight: {}", self.drydock.log_tail());
        let mut count = 0;
        let is_straight = async || {
            count += 1;
            let name = format!("{name}-{count}");
            self.is_taken_up(&name).await?;
            Ok(self.ways(&name)?.iter().all(|is_straight| *is_straight))
        };
        retry(LIMIT, late, is_straight).await
    }

    async fn is_taken_up(&self, name: &str) -> Result<()> {
        self.create(name).await?;
        let all = node_maintenances(&self.drydock.host.client().await?);
        let is_seen = |object: Option<&DynamicObject>| {
            object.is_some_and(|o| o.data["status"]["observedGeneration"] == 1)
        };
        until(all, name, LIMIT, "seen by the manager", is_seen).await.map(drop)
    }

    async fn create(&self, name: &str) -> Result<()> {
        let object = serde_json::from_value(node_maintenance(name, "Idle", &["nowhere"]))?;
        // The aggregator learns a little later that the server is back.
        let direct = node_maintenances(&self.drydock.direct().await?);
        direct.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Whether each of the manager's writes to this maintenance came straight. Our log has all of them.
    fn ways(&self, name: &str) -> Result<Vec<bool>> {
        let log = requests(&self.drydock.audit_log())?;
        let written =
            log.iter().filter(|request| is_write_of_ours(request) && request.object_ref.name == name);
        Ok(written.map(is_straight).collect())
    }

    /// Waits until the manager has logged a line about its way with these words.
    async fn is_told(&self, words: &str) -> Result<()> {
        let log = self.drydock.host.log(MANAGER);
        let is_it = |line: &str| line.contains("coordination.k8s.io/v1alpha1 go") && line.contains(words);
        let late = || format!("{words:?} was not logged: {}", self.drydock.log_tail());
        retry(LIMIT, late, async || Ok(std::fs::read_to_string(&log)?.lines().any(is_it))).await
    }
}

/// Where a role names a resource.
fn path_of(role: &Value, resource: &str) -> Option<String> {
    let rules = role["rules"].as_array()?.iter().enumerate();
    let mut places = rules.filter_map(|(rule, content)| {
        let place = content["resources"].as_array()?.iter().position(|named| named == resource)?;
        Some(format!("/rules/{rule}/resources/{place}"))
    });
    places.next()
}

/// Whether it is a write of the manager's to one of our kinds.
fn is_write_of_ours(request: &LoggedRequest) -> bool {
    let is_kind = ["evictionrequests", "nodemaintenances"].contains(&request.object_ref.resource.as_str());
    is_kind && request.user.username == USER && !["get", "list", "watch"].contains(&request.verb.as_str())
}

/// Whether the manager showed its token: at the host it shows a client certificate, which names no UID.
fn is_straight(request: &LoggedRequest) -> bool {
    !request.user.uid.is_empty()
}
