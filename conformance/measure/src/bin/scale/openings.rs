//! Budgets that let one pod go, one budget after another, and when that was seen.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::workload::{BUDGET, GuardedNamespace, ScaleWorkload};

/// How long the host and our controllers may take until a pod is gone.
const LIMIT: Duration = Duration::from_secs(600);

/// A budget that let a pod go.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Its namespace.
    pub namespace: String,
    /// When a watch showed that it allows a disruption.
    pub at: Timestamp,
}

/// What a watch shows of a budget.
struct BudgetState {
    namespace: String,
    allowed: i32,
    expected: i32,
    at: Timestamp,
}

/// A watch of all budgets.
pub struct BudgetWatch {
    states: mpsc::Receiver<BudgetState>,
    /// Ends when this is dropped: while the host ends, each attempt to go on watching fails at once.
    _watch: JoinSet<()>,
}

impl BudgetWatch {
    /// Starts it.
    pub fn start(client: &Client) -> BudgetWatch {
        let (sender, states) = mpsc::channel(1000);
        let budgets = watcher(Api::<PodDisruptionBudget>::all(client.clone()), watcher::Config::default());
        let mut watch = JoinSet::new();
        watch.spawn(async move {
            // After an error the watcher lists anew.
            let mut budgets = std::pin::pin!(budgets.default_backoff());
            while let Some(event) = budgets.next().await {
                let Ok(Event::Apply(budget) | Event::InitApply(budget)) = event else { continue };
                let namespace = budget.namespace().unwrap_or_default();
                let Some(status) = budget.status else { continue };
                let (allowed, expected) = (status.disruptions_allowed, status.expected_pods);
                let state = BudgetState { namespace, allowed, expected, at: Timestamp::now() };
                if sender.send(state).await.is_err() {
                    return;
                }
            }
        });
        BudgetWatch { states, _watch: watch }
    }

    /// Waits until this budget allows a disruption, and returns when that was seen.
    pub async fn is_open(&mut self, guarded: &GuardedNamespace) -> Result<Timestamp> {
        self.until(guarded, "open", |state| state.allowed > 0).await
    }

    /// Waits until the pod that it let go is gone.
    pub async fn is_closed(&mut self, guarded: &GuardedNamespace) -> Result<Timestamp> {
        let left = i32::try_from(guarded.left)?;
        self.until(guarded, "closed", |state| state.allowed == 0 && state.expected == left).await
    }

    async fn until(
        &mut self,
        guarded: &GuardedNamespace,
        what: &str,
        is_so: impl Fn(&BudgetState) -> bool,
    ) -> Result<Timestamp> {
        let GuardedNamespace { namespace, left } = guarded;
        let found = async {
            while let Some(state) = self.states.recv().await {
                if state.namespace == *namespace && is_so(&state) {
                    return Ok(state.at);
                }
            }
            anyhow::bail!("the watch of budgets ended")
        };
        let found = tokio::time::timeout(LIMIT, found).await;
        found.with_context(|| {
            format!("the budget of {namespace}, of {left} pods, is not {what} within {LIMIT:?}")
        })?
    }
}

/// Lets so many pods go, one after another, each by another budget than the one before.
pub async fn all(
    client: &Client,
    workload: &mut ScaleWorkload,
    budgets: &mut BudgetWatch,
    openings: usize,
    opened: &mut Vec<Opening>,
) -> Result<()> {
    let count = workload.guarded.len();
    for index in 0..openings {
        let guarded = &mut workload.guarded[index % count];
        lower(client, guarded).await?;
        let at = budgets.is_open(guarded).await?;
        opened.push(Opening { namespace: guarded.namespace.clone(), at });
        budgets.is_closed(guarded).await?;
    }
    Ok(())
}

/// Makes a budget keep one pod less.
pub async fn lower(client: &Client, guarded: &mut GuardedNamespace) -> Result<()> {
    guarded.left -= 1;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), &guarded.namespace);
    let patch = Patch::Merge(json!({"spec": {"minAvailable": guarded.left}}));
    budgets.patch(BUDGET, &PatchParams::default(), &patch).await.context("lowering a budget")?;
    Ok(())
}
