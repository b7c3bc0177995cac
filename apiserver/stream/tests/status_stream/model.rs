//! The state that a client must have in the end. Written from the comments of the .proto file alone, without code of
//! the stream.

use std::collections::BTreeMap;

use bytes::Bytes;
use drydock_proto::status::v1alpha1 as api;
use drydock_proto::status::v1alpha1::EvictionState;
use prost::Message;

use crate::client::Watch;

/// The modelled part of an EvictionRequest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelEviction {
    pub version: u64,
    pub team: String,
    pub node: String,
    pub is_blocked: bool,
    pub maintenances: Vec<String>,
}

/// The modelled part of a NodeMaintenance: blocked pods by node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelMaintenance {
    pub version: u64,
    pub team: String,
    pub nodes: BTreeMap<String, i32>,
}

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub evictions: BTreeMap<String, ModelEviction>,
    pub maintenances: BTreeMap<String, ModelMaintenance>,
}

impl Model {
    /// What a client of a Watch must have, in words.
    pub fn expected(&self, watch: &Watch) -> BTreeMap<String, String> {
        match watch {
            Watch::Evictions(request) => {
                let wanted = self.evictions.iter().filter(|(key, eviction)| {
                    is(&request.namespace, key.split('/').next().unwrap())
                        && is(&request.node, &eviction.node)
                        && (request.maintenance.is_empty()
                            || eviction.maintenances.contains(&request.maintenance))
                        && (request.label_selector.is_empty()
                            || request.label_selector == format!("team={}", eviction.team))
                        && (!request.only_blocked || eviction.is_blocked)
                });
                wanted.map(|(key, eviction)| (key.clone(), told_of_eviction(eviction))).collect()
            }
            Watch::Maintenances(request) => {
                let wanted = self.maintenances.iter().filter(|(name, maintenance)| {
                    is(&request.maintenance, name)
                        && (request.node.is_empty() || maintenance.nodes.contains_key(&request.node))
                        && (request.label_selector.is_empty()
                            || request.label_selector == format!("team={}", maintenance.team))
                        && (!request.only_blocked || maintenance.nodes.values().any(|blocked| *blocked > 0))
                });
                wanted.map(|(name, maintenance)| (name.clone(), told_of_maintenance(maintenance))).collect()
            }
            Watch::Nodes(request) => {
                let names = self.maintenances.values().flat_map(|maintenance| maintenance.nodes.keys());
                let nodes: BTreeMap<String, String> =
                    names.filter_map(|name| Some((name.clone(), self.node(name, request)?))).collect();
                nodes
            }
        }
    }

    fn node(&self, name: &str, request: &api::WatchNodesRequest) -> Option<String> {
        let said: BTreeMap<_, _> = self
            .maintenances
            .iter()
            .filter_map(|(maintenance, state)| Some((maintenance, (state.version, *state.nodes.get(name)?))))
            .collect();
        let on_node = self.evictions.values().filter(|eviction| eviction.node == name);
        let (blocked, others): (Vec<_>, Vec<_>) = on_node.partition(|eviction| eviction.is_blocked);
        let is_blocked = !blocked.is_empty() || said.values().any(|(_, blocked)| *blocked > 0);
        let is_wanted = is(&request.node, name)
            && (request.maintenance.is_empty() || said.contains_key(&request.maintenance))
            && (!request.only_blocked || is_blocked);
        let said: Vec<_> =
            said.iter().map(|(name, (version, blocked))| format!("{name} v{version} {blocked}")).collect();
        is_wanted.then(|| format!("{} blocked={} others={}", said.join(","), blocked.len(), others.len()))
    }
}

fn is(wanted: &str, found: &str) -> bool {
    wanted.is_empty() || wanted == found
}

fn told_of_eviction(eviction: &ModelEviction) -> String {
    let ModelEviction { version, node, is_blocked, maintenances, .. } = eviction;
    format!("v{version} {node} {is_blocked} {maintenances:?}")
}

fn told_of_maintenance(maintenance: &ModelMaintenance) -> String {
    let blocked: i32 = maintenance.nodes.values().sum();
    format!("v{} nodes={} blocked={blocked}", maintenance.version, maintenance.nodes.len())
}

/// What a client has, in the same words.
pub fn told(watch: &Watch, message: &Bytes) -> String {
    match watch {
        Watch::Evictions(_) => {
            let eviction = api::Eviction::decode(message.clone()).unwrap();
            told_of_eviction(&ModelEviction {
                version: version(watch, message),
                team: String::new(),
                is_blocked: eviction.state() == EvictionState::Blocked,
                node: eviction.node,
                maintenances: eviction.maintenances.into_iter().map(|maintenance| maintenance.name).collect(),
            })
        }
        Watch::Maintenances(_) => {
            let maintenance = api::Maintenance::decode(message.clone()).unwrap();
            let version = version(watch, message);
            format!("v{version} nodes={} blocked={}", maintenance.nodes, maintenance.blocked)
        }
        Watch::Nodes(_) => {
            let node = api::Node::decode(message.clone()).unwrap();
            let mut said: Vec<_> = node
                .progress
                .iter()
                .map(|said| format!("{} {} {}", said.maintenance, said.message, said.blocked))
                .collect();
            said.sort();
            let counts = node.evictions.unwrap();
            let others = counts.pending + counts.intercepting + counts.evicting;
            format!("{} blocked={} others={others}", said.join(","), counts.blocked)
        }
    }
}

/// The version of an object; 0 for a node, which has none.
pub fn version(watch: &Watch, message: &Bytes) -> u64 {
    let text = match watch {
        Watch::Evictions(_) => api::Eviction::decode(message.clone()).unwrap().pod,
        Watch::Maintenances(_) => api::Maintenance::decode(message.clone()).unwrap().reason,
        Watch::Nodes(_) => return 0,
    };
    text.strip_prefix('v').unwrap().parse().unwrap()
}
