//! Who drains: Drydock by one NodeMaintenance, or one of two programs to compare it with, which keep no status and no
//! order.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_testkit::host::{TestHost, config_of};
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance, node_maintenances};
use drydock_testkit::wait::{self, retry, until};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::json;

use super::eviction_loop::{evict, evict_all};
use super::floor;
use super::workload::{NAMESPACE, Workload};

/// Who drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DrainSubject {
    /// One NodeMaintenance over all nodes.
    Drydock,
    /// Evictions side by side, each tried until the host accepts it.
    Loop,
    /// The same, with our API server and the requests that it gets for each pod from our controllers: the floor of what
    /// our own programs cost.
    Floor,
}

const NAME: &str = "drains";
/// How long a drain may take.
const LIMIT: Duration = Duration::from_secs(1_200);

impl DrainSubject {
    /// All subjects.
    pub const ALL: [DrainSubject; 3] = [Self::Drydock, Self::Loop, Self::Floor];

    /// All, with another one first in each round.
    pub fn in_turn(round: usize) -> [DrainSubject; 3] {
        let mut all = Self::ALL;
        all.rotate_left(round % Self::ALL.len());
        all
    }

    /// The client that it drains with. The loop's returns each refusal at once: the usual client would wait for as long as
    /// the host advises, and keep its slot for the same pod.
    pub async fn client(self, host: &TestHost) -> Result<Client> {
        let mut config = config_of(&host.admin()).await?;
        config.default_retry = self != Self::Loop;
        Ok(Client::try_from(config)?)
    }

    /// What it does before the time counts.
    pub async fn prepare(self, client: &Client, workload: &Workload) -> Result<()> {
        match self {
            Self::Drydock => Ok(()),
            Self::Loop | Self::Floor => cordon(client, &workload.nodes).await,
        }
    }

    /// Drains the nodes, and waits until they are empty.
    pub async fn drain(self, host: &TestHost, client: &Client, workload: &Workload) -> Result<()> {
        let drained = async {
            match self {
                Self::Drydock => maintain(client, &workload.nodes).await,
                Self::Loop => evict_all(&workload.pods, async |pod| evict(client, pod).await).await,
                Self::Floor => floor::drain(host, LIMIT).await,
            }?;
            workload.gone().await
        };
        match tokio::time::timeout(LIMIT, drained).await {
            Ok(ended) => ended,
            Err(_) => bail!("not drained within {LIMIT:?}"),
        }
    }

    /// How many EvictionRequests stay; it returns as soon as there are none.
    pub async fn requests_left(self, client: &Client) -> Result<usize> {
        if self == Self::Loop {
            return Ok(0);
        }
        let (requests, mut left) = (eviction_requests(client, NAMESPACE), 0);
        let none = async || {
            left = requests.list(&ListParams::default()).await?.items.len();
            Ok(left == 0)
        };
        // A timeout is an answer here, and not an error.
        let _ = retry(wait::LIMIT, String::new, none).await;
        Ok(left)
    }

    /// Ends what it began. The time of this does not count any more, but its writes do.
    pub async fn release(self, client: &Client) -> Result<()> {
        match self {
            Self::Drydock => complete(client).await,
            Self::Loop | Self::Floor => Ok(()),
        }
    }
}

impl fmt::Display for DrainSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drydock => "Drydock",
            Self::Loop => "bare loop",
            Self::Floor => "floor",
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
