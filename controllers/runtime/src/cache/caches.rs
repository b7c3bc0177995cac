//! All the stores, and the tasks that feed them.

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_serving::tasks::ProgramTasks;
use kube::Client;

use super::cacheable::Cacheable;
use super::reflector::{reflect, reflect_into};
use super::{DaemonSet, Node, Pod, PodDisruptionBudget, PodOwners, Store};

/// The stores. Clones share them.
#[derive(Clone)]
pub struct HostCaches {
    /// Pods of all namespaces; indexed by node and UID.
    pub pods: Store<Pod>,
    /// DaemonSets of all namespaces.
    pub daemon_sets: Store<DaemonSet>,
    /// Which pods belong to DaemonSets that are alive.
    pub owners: PodOwners,
    /// Nodes.
    pub nodes: Store<Node>,
    /// PodDisruptionBudgets of all namespaces.
    pub budgets: Store<PodDisruptionBudget>,
    /// EvictionRequests of all namespaces; the name is the pod's UID.
    pub requests: Store<EvictionRequest>,
    /// NodeMaintenances.
    pub maintenances: Store<NodeMaintenance>,
}

/// Some of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Pods.
    pub pods: bool,
    /// DaemonSets. Without them no pod is known to be one of a DaemonSet's.
    pub daemon_sets: bool,
    /// Nodes.
    pub nodes: bool,
    /// PodDisruptionBudgets.
    pub budgets: bool,
    /// EvictionRequests.
    pub requests: bool,
    /// NodeMaintenances.
    pub maintenances: bool,
}

impl Select {
    /// All of them.
    pub const ALL: Self = Self {
        pods: true,
        daemon_sets: true,
        nodes: true,
        budgets: true,
        requests: true,
        maintenances: true,
    };
    /// None of them.
    pub const NONE: Self = Self {
        pods: false,
        daemon_sets: false,
        nodes: false,
        budgets: false,
        requests: false,
        maintenances: false,
    };
}

impl Default for HostCaches {
    fn default() -> Self {
        let (pods, daemon_sets) = (Store::default(), Store::default());
        Self {
            owners: PodOwners::follow(pods.clone(), daemon_sets.clone()),
            pods,
            daemon_sets,
            nodes: Store::default(),
            budgets: Store::default(),
            requests: Store::default(),
            maintenances: Store::default(),
        }
    }
}

impl HostCaches {
    /// Starts feeding the selected stores until shutdown. Returns at once; nothing need be reachable yet.
    pub fn start(&self, client: &Client, select: Select, tasks: &ProgramTasks) {
        let reflectors = Reflectors { client, tasks };
        reflectors.start(&self.daemon_sets, select.daemon_sets);
        if select.pods {
            reflectors.start_pods(self.clone(), select.daemon_sets);
        }
        reflectors.start(&self.nodes, select.nodes);
        reflectors.start(&self.budgets, select.budgets);
        reflectors.start(&self.requests, select.requests);
        reflectors.start(&self.maintenances, select.maintenances);
    }

    /// Waits until each selected store holds a complete list.
    pub async fn wait_until_synced(&self, select: Select) {
        wait(&self.daemon_sets, select.daemon_sets).await;
        wait(&self.pods, select.pods).await;
        wait(&self.nodes, select.nodes).await;
        wait(&self.budgets, select.budgets).await;
        wait(&self.requests, select.requests).await;
        wait(&self.maintenances, select.maintenances).await;
    }

    /// Whether each selected store holds a complete list.
    pub fn is_synced(&self, select: Select) -> bool {
        (!select.pods || self.pods.is_synced())
            && (!select.daemon_sets || self.daemon_sets.is_synced())
            && (!select.nodes || self.nodes.is_synced())
            && (!select.budgets || self.budgets.is_synced())
            && (!select.requests || self.requests.is_synced())
            && (!select.maintenances || self.maintenances.is_synced())
    }
}

struct Reflectors<'a> {
    client: &'a Client,
    tasks: &'a ProgramTasks,
}

impl Reflectors<'_> {
    fn start<T: Cacheable>(&self, store: &Store<T>, selected: bool) {
        if selected {
            start_reflector(self.client, store, self.tasks);
        }
    }

    /// Feeds the pods when the list of DaemonSets is complete: else each pod of a DaemonSet would be asked about.
    fn start_pods(&self, caches: HostCaches, after_daemon_sets: bool) {
        let (client, stop) = (self.client.clone(), self.tasks.shutdown().clone());
        let feed = async move {
            tokio::select! {
                () = stop.cancelled() => return,
                () = wait(&caches.daemon_sets, after_daemon_sets) => {}
            }
            let owners = caches.owners.clone();
            reflect_into(client, &caches.pods, move |pod| owners.take_in(pod), stop).await;
        };
        self.tasks.spawn(task_name::<Pod>(), feed);
    }
}

/// Starts feeding a store until shutdown. Returns at once.
pub fn start_reflector<T: Cacheable>(client: &Client, store: &Store<T>, tasks: &ProgramTasks) {
    let feed = reflect(client.clone(), store.clone(), tasks.shutdown().clone());
    tasks.spawn(task_name::<T>(), feed);
}

fn task_name<T: Cacheable>() -> String {
    format!("reflector of {}", T::PLURAL)
}

async fn wait<T: Cacheable>(store: &Store<T>, selected: bool) {
    if selected {
        store.wait_until_synced().await;
    }
}
