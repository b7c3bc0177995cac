//! What is drained: Deployments whose pods are all on the nodes to drain, budgets over them, and as many
//! nodes more with room for the pods that replace them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::host::TestHost;
use drydock_testkit::wait::{retry, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::form::BudgetForm;

/// Where the pods are.
pub const NAMESPACE: &str = "drains";

/// What the names of the nodes to drain begin with.
pub const DRAINED: &str = "drained";

/// How many Deployments there are, each with the same number of pods.
pub const DEPLOYMENTS: usize = 20;

/// How long the host may take for anything.
const LIMIT: Duration = Duration::from_secs(600);

/// How large it is.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadSize {
    /// Pods of all Deployments.
    pub pods: usize,
    /// Nodes to drain.
    pub nodes: usize,
    /// Percent of a budget's pods that may be away.
    pub room: u8,
}

/// A cluster with work on it, ready to be drained.
pub struct Workload {
    /// The nodes to drain.
    pub nodes: Vec<String>,
    /// The pods on them.
    pub pods: Vec<DrainedPod>,
    client: Client,
}

/// A pod that is to leave.
#[derive(Clone, Debug)]
pub struct DrainedPod {
    /// Its name, which no other pod gets.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl Workload {
    /// Creates everything and waits until each pod is ready and each budget knows it.
    pub async fn create(host: &TestHost, form: BudgetForm, size: WorkloadSize) -> Result<Workload> {
        let client = host.client().await?;
        let nodes = create_nodes(&client, DRAINED, size.nodes).await?;
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests(form, size)});
        let path = host.dir.join("drains.json");
        std::fs::write(&path, list.to_string())?;
        host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
        let mut workload = Workload { nodes, pods: Vec::new(), client };
        workload.complete().await.with_context(|| host.processes.ended_processes())?;
        workload.budgets_are_counted(form, size).await?;
        let pods = workload.api::<Pod>().list(&ListParams::default()).await?;
        workload.pods = pods.iter().map(DrainedPod::read).collect::<Result<_>>()?;
        ensure!(workload.pods.len() == size.pods, "{} pods instead of {}", workload.pods.len(), size.pods);
        create_nodes(&workload.client, "spare", size.nodes).await?;
        Ok(workload)
    }

    /// Waits until every Deployment has all of its pods.
    pub async fn complete(&self) -> Result<()> {
        for index in 0..DEPLOYMENTS {
            until(self.api(), &name(index), LIMIT, "complete", is_complete).await?;
        }
        Ok(())
    }

    /// Waits until no pod is on the nodes.
    pub async fn gone(&self) -> Result<()> {
        for node in &self.nodes {
            let late = || format!("{node} still has pods after {LIMIT:?}");
            retry(LIMIT, late, async || Ok(self.pods_on(node).await?.is_empty())).await?;
        }
        Ok(())
    }

    /// The pods that are on the nodes, by the host's own list.
    pub async fn left(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for node in &self.nodes {
            left.extend(self.pods_on(node).await?);
        }
        Ok(left)
    }

    /// The names of the pods.
    pub fn names(&self) -> BTreeSet<String> {
        self.pods.iter().map(|pod| pod.name.clone()).collect()
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<String>> {
        let there = ListParams::default().fields(&format!("spec.nodeName={node}"));
        Ok(self.api::<Pod>().list(&there).await?.iter().map(ResourceExt::name_any).collect())
    }

    /// A budget that has not counted its pods yet refuses every eviction.
    async fn budgets_are_counted(&self, form: BudgetForm, size: WorkloadSize) -> Result<()> {
        for (name, _, pods) in budgets(form, size.pods) {
            let allowed = i32::try_from(pods - least(pods, size.room))?;
            let counted = |budget: Option<&PodDisruptionBudget>| {
                let status = budget.and_then(|budget| budget.status.as_ref());
                status.is_some_and(|status| status.disruptions_allowed == allowed)
            };
            until(self.api(), &name, LIMIT, "counted", counted).await?;
        }
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

impl DrainedPod {
    /// Reads its name and its UID.
    pub fn read(pod: &Pod) -> Result<DrainedPod> {
        Ok(DrainedPod { name: pod.name_any(), uid: pod.uid().context("a pod without a UID")? })
    }
}

fn is_complete(found: Option<&Deployment>) -> bool {
    let Some(Deployment { spec: Some(spec), status: Some(status), .. }) = found else { return false };
    spec.replicas.is_some() && spec.replicas == status.available_replicas && spec.replicas == status.replicas
}

fn manifests(form: BudgetForm, size: WorkloadSize) -> Vec<Value> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let deployments = (0..DEPLOYMENTS).map(|index| deployment(index, size.pods / DEPLOYMENTS));
    let budgets = budgets(form, size.pods)
        .into_iter()
        .map(|(name, labels, pods)| budget(&name, &labels, least(pods, size.room)));
    std::iter::once(namespace).chain(deployments).chain(budgets).collect()
}

/// Name, labels and number of pods of each budget.
fn budgets(form: BudgetForm, pods: usize) -> Vec<(String, Value, usize)> {
    let of_deployment = |index| (name(index), json!({"app": name(index)}), pods / DEPLOYMENTS);
    match form {
        BudgetForm::None => Vec::new(),
        BudgetForm::Twenty => (0..DEPLOYMENTS).map(of_deployment).collect(),
        BudgetForm::One => vec![("all".to_owned(), json!({"set": "drains"}), pods)],
    }
}

/// How many pods a budget of so many keeps; it lets one go at the least.
fn least(pods: usize, room: u8) -> usize {
    (pods - pods * usize::from(room) / 100).min(pods.saturating_sub(1))
}

fn name(deployment: usize) -> String {
    format!("app-{deployment:02}")
}

fn deployment(index: usize, replicas: usize) -> Value {
    let labels = json!({"app": name(index), "set": "drains"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name(index), "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name(index)}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
            },
        },
    })
}

/// A number for minAvailable is what the observer judges by.
fn budget(name: &str, labels: &Value, least: usize) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minAvailable": least, "selector": {"matchLabels": labels}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_keeps_its_share_and_lets_one_go_at_the_least() {
        assert_eq!(least(600, 10), 540);
        assert_eq!(least(30, 50), 15);
        assert_eq!(least(5, 10), 4);
    }

    #[test]
    fn each_form_has_its_budgets_over_all_pods() {
        for (form, count) in [(BudgetForm::None, 0), (BudgetForm::Twenty, 20), (BudgetForm::One, 1)] {
            let found = budgets(form, 600);
            assert_eq!(found.len(), count);
            let covered: usize = found.iter().map(|(_, _, pods)| pods).sum();
            assert_eq!(covered, if count == 0 { 0 } else { 600 });
        }
    }
}
