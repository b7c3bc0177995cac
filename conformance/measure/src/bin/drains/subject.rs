//! Who drains: Drydock by one NodeMaintenance, or a bare loop of evictions, which keeps no status and no order and is
//! as fast as the host allows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_testkit::host::{TestHost, config_of};
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance, node_maintenances};
use drydock_testkit::wait::{retry, until};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::workload::{DrainedPod, NAMESPACE, Workload};

/// Who drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DrainSubject {
    /// One NodeMaintenance over all nodes.
    Drydock,
    /// Evictions side by side, each tried until the host accepts it.
    Loop,
}

const NAME: &str = "drains";
/// How long a drain may take.
const LIMIT: Duration = Duration::from_secs(600);
/// Evictions of the loop that are under way at a time.
const IN_FLIGHT: usize = 64;
/// How long one of them waits after a budget's refusal: tries that are refused cost the host, which then is slower.
const PAUSE: Duration = Duration::from_millis(250);

impl DrainSubject {
    /// All subjects.
    pub const ALL: [DrainSubject; 2] = [Self::Drydock, Self::Loop];

    /// Both, with another one first in each round.
    pub fn in_turn(round: usize) -> [DrainSubject; 2] {
        if round.is_multiple_of(2) { Self::ALL } else { [Self::Loop, Self::Drydock] }
    }

    /// The client that it drains with. The loop has one of its own that returns each refusal at once: the
    /// usual client would wait for as long as the host advises, and keep its slot for the same pod.
    pub async fn client(self, host: &TestHost) -> Result<Client> {
        let mut config = config_of(&host.admin()).await?;
        config.default_retry = self == Self::Drydock;
        Ok(Client::try_from(config)?)
    }

    /// What it does before the time counts.
    pub async fn prepare(self, client: &Client, workload: &Workload) -> Result<()> {
        match self {
            Self::Drydock => Ok(()),
            Self::Loop => cordon(client, &workload.nodes).await,
        }
    }

    /// Drains the nodes, and waits until they are empty.
    pub async fn drain(self, client: &Client, workload: &Workload) -> Result<()> {
        let drained = async {
            match self {
                Self::Drydock => maintain(client, &workload.nodes).await,
                Self::Loop => evict_all(client, &workload.pods).await,
            }?;
            workload.gone().await
        };
        match tokio::time::timeout(LIMIT, drained).await {
            Ok(ended) => ended,
            Err(_) => bail!("not drained within {LIMIT:?}"),
        }
    }

    /// How many EvictionRequests are still there after this time; it returns as soon as none is.
    pub async fn requests_left(self, client: &Client, limit: Duration) -> Result<usize> {
        if self == Self::Loop {
            return Ok(0);
        }
        let (requests, mut left) = (eviction_requests(client, NAMESPACE), 0);
        let none = async || {
            left = requests.list(&ListParams::default()).await?.items.len();
            Ok(left == 0)
        };
        // A timeout is an answer here, and not an error.
        let _ = retry(limit, String::new, none).await;
        Ok(left)
    }

    /// Ends what it began. The time of this does not count any more, but its writes do.
    pub async fn release(self, client: &Client) -> Result<()> {
        match self {
            Self::Drydock => complete(client).await,
            Self::Loop => Ok(()),
        }
    }
}

impl fmt::Display for DrainSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drydock => "Drydock",
            Self::Loop => "bare loop",
        })
    }
}

async fn maintain(client: &Client, nodes: &[String]) -> Result<()> {
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let object = serde_json::from_value(named_node_maintenance(NAME, "Drain", &nodes))?;
    let maintenances = node_maintenances(client);
    maintenances.create(&PostParams::default(), &object).await.context("creating the maintenance")?;
    until(maintenances, NAME, LIMIT, "drained", is_drained).await.map(drop)
}

fn is_drained(found: Option<&DynamicObject>) -> bool {
    let conditions = found.and_then(|object| object.data["status"]["conditions"].as_array());
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Drained" && c["status"] == "True"))
}

async fn complete(client: &Client) -> Result<()> {
    let maintenances = node_maintenances(client);
    let patch = Patch::Merge(json!({"spec": {"stage": "Complete"}}));
    maintenances.patch(NAME, &PatchParams::default(), &patch).await.context("completing the maintenance")?;
    let released = |object: Option<&DynamicObject>| {
        object.is_some_and(|found| found.metadata.finalizers.as_ref().is_none_or(Vec::is_empty))
    };
    until(maintenances, NAME, LIMIT, "released", released).await?;
    let requests = eviction_requests(client, NAMESPACE);
    let late = || format!("requests that nobody wants are still there after {LIMIT:?}");
    retry(LIMIT, late, async || Ok(requests.list(&ListParams::default()).await?.iter().all(is_wanted))).await
}

/// A request without requesters is about to be removed, which is a write of ours too.
fn is_wanted(request: &DynamicObject) -> bool {
    request.data["spec"]["requesters"].as_array().is_some_and(|all| !all.is_empty())
}

async fn cordon(client: &Client, names: &[String]) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for name in names {
        nodes.cordon(name).await?;
    }
    Ok(())
}

/// A refused pod goes to the end of the queue: others, of other budgets, have their turn first.
async fn evict_all(client: &Client, pods: &[DrainedPod]) -> Result<()> {
    let queue = Mutex::new(pods.iter().collect::<VecDeque<_>>());
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let work = async || {
        loop {
            let Some(pod) = lock().pop_front() else { return anyhow::Ok(()) };
            let pause = match evict(client, pod).await? {
                Evicted::Yes => continue,
                Evicted::TryAgain(pause) => pause,
            };
            lock().push_back(pod);
            tokio::time::sleep(pause).await;
        }
    };
    try_join_all((0..IN_FLIGHT).map(|_| work())).await.map(drop)
}

enum Evicted {
    Yes,
    TryAgain(Duration),
}

async fn evict(client: &Client, pod: &DrainedPod) -> Result<Evicted> {
    let DrainedPod { name, uid } = pod;
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE},
        "deleteOptions": {"preconditions": {"uid": uid}},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&eviction)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(Evicted::Yes),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Evicted::Yes),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Evicted::TryAgain(PAUSE)),
        // The host lost its races for the budget's status: it has paused itself.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Evicted::TryAgain(Duration::ZERO)),
        Err(error) => Err(error).with_context(|| format!("evicting {name}")),
    }
}
