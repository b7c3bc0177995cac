//! The drain of one small node: maintenance, requests, evictions, pods gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::client::UserRequest;
use crate::setup::cluster::{has_condition, maintenance};
use crate::setup::{AttackSetup, Tenant};

/// Pods on the node.
const PODS: usize = 3;
/// A drain that has not ended by then never will.
const GUARD: Duration = Duration::from_secs(600);
/// How often the maintenance is read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A drain to be made.
pub struct SmallDrain {
    /// Name of the maintenance and of its node.
    pub name: String,
    /// The owner of its pods.
    pub tenant: Arc<Tenant>,
}

/// How a drain went.
#[derive(Clone, Debug, Default)]
pub struct SmallDrainResult {
    /// From the maintenance to Drained.
    pub took: Duration,
    /// Why it did not end.
    pub failure: Option<String>,
}

impl SmallDrainResult {
    /// The result of a drain that did not end.
    pub fn failed(error: &anyhow::Error) -> SmallDrainResult {
        SmallDrainResult { took: GUARD, failure: Some(format!("{error:#}")) }
    }
}

impl SmallDrain {
    /// Makes the node and its pods.
    pub async fn prepare(&self, setup: &AttackSetup) -> Result<()> {
        setup.node(&self.name).await?;
        let admin = setup.admin().await?;
        for at in 0..PODS {
            let pod = json!({
                "metadata": {"name": format!("{}-{at}", self.name)},
                "spec": {"nodeName": self.name, "automountServiceAccountToken": false,
                         "serviceAccountName": "account-0", "terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "c", "image": "none"}]},
            });
            admin.done(&UserRequest::post(self.tenant.pods(), &pod)).await?;
        }
        Ok(())
    }

    /// Drains it and completes the maintenance.
    pub async fn run(self, setup: Arc<AttackSetup>) -> Result<SmallDrainResult> {
        let began = Instant::now();
        setup.drain(&self.name, &self.name).await?;
        let path = maintenance(&self.name);
        let mut last = Value::Null;
        while began.elapsed() < GUARD {
            // An error of the aggregator is not counted: only that the drain ends.
            if let Ok(found) = setup.done(&UserRequest::get(&path)).await {
                last = found;
            }
            if has_condition(&last, "Drained") {
                let took = began.elapsed();
                setup.done(&UserRequest::merge(&path, &json!({"spec": {"stage": "Complete"}}))).await?;
                setup.done(&UserRequest::delete(&path)).await?;
                return Ok(SmallDrainResult { took, failure: None });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!("not drained within {GUARD:?}: {}", last["status"]["nodeStatuses"])
    }
}
