//! Random writes, and clients with different filters that read, fall behind, leave, and resume on the same hub, a new
//! one or another replica. In the end each must have the state of the model. Runs with an injected fault must fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drydock_stream::{Config, StatusStream, TombstoneLimit};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::time::timeout;
use tonic::Code;

use crate::client::{Client, Kept, Said, Watch};
use crate::model::{Model, ModelEviction, ModelMaintenance, told, version};
use crate::shaky::Shaky;
use crate::watches::watches;
use crate::world::World;

const STEPS: usize = 250;
/// This number of heartbeats in a row without the right state is a fault: a minute of them.
const HEARTBEATS: usize = 1200;
const HEARTBEATS_OF_FAULT: usize = 6;
const NAMESPACES: [&str; 2] = ["a", "b"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const MAINTENANCES: [&str; 3] = ["m1", "m2", "m3"];

/// Faults that are injected between server and client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    LostRemoval,
    ExitNotTold,
    OlderAfterNewer,
    TokenTooFar,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_ends_up_with_what_the_model_says() {
    let mut ways = Ways::default();
    for seed in 0..4 {
        let (count, bytes) = if seed % 3 == 2 { (3, 1 << 20) } else { (10_000, 1 << 20) };
        let mut run = Run::new(seed, None, TombstoneLimit { count, bytes }).await;
        run.all().await.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        ways.add(run.ways);
    }
    // Otherwise the test would show nothing.
    let Ways { same, restarted, replica, expired } = ways;
    assert!(same > 20 && restarted > 20 && replica > 20 && expired > 5, "{ways:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_removal_is_found() {
    assert_found(Fault::LostRemoval).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_from_the_filter_that_is_not_told_is_found() {
    assert_found(Fault::ExitNotTold).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_comes_before_an_older_one_is_found() {
    assert_found(Fault::OlderAfterNewer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_one_response_too_far_is_found() {
    assert_found(Fault::TokenTooFar).await;
}

async fn assert_found(fault: Fault) {
    for seed in 0..8 {
        let limit = TombstoneLimit { count: 10_000, bytes: 1 << 20 };
        if Run::new(seed, Some(fault), limit).await.all().await.is_err() {
            return;
        }
    }
    panic!("{fault:?} was not found");
}

/// How often clients resumed in each way.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    same: usize,
    restarted: usize,
    replica: usize,
    expired: usize,
}

impl Ways {
    fn add(&mut self, other: Self) {
        self.same += other.same;
        self.restarted += other.restarted;
        self.replica += other.replica;
        self.expired += other.expired;
    }
}

struct Run {
    world: World,
    random: StdRng,
    model: Model,
    version: u64,
    fault: Option<Fault>,
    /// The stream that restarts, and that of another replica.
    streams: [Arc<StatusStream>; 2],
    of_replica: Arc<Shaky>,
    clients: Vec<Reader>,
    ways: Ways,
}

/// A client, perhaps a faulty one.
struct Reader {
    watch: Watch,
    client: Client,
    /// The index of the stream that it reads.
    at: usize,
    /// How often it reads, of 10 times.
    eager: u32,
    versions: BTreeMap<String, u64>,
    held: BTreeMap<String, (Bytes, Said)>,
}

impl Run {
    async fn new(seed: u64, fault: Option<Fault>, tombstones: TombstoneLimit) -> Self {
        let heartbeat = Duration::from_millis(50);
        let world = World::with(Config { heartbeat, tombstones, ..Config::default() }).await;
        let (replica, of_replica) = world.shaky_replica().await;
        let streams = [world.stream.clone(), replica];
        let mut random = StdRng::seed_from_u64(seed);
        let mut clients = Vec::new();
        for watch in watches() {
            let client = Client::open(&streams[0], &watch).await.unwrap();
            let eager = random.random_range(1..10);
            let (versions, held) = Default::default();
            clients.push(Reader { watch, client, at: 0, eager, versions, held });
        }
        let (model, ways) = Default::default();
        Self { world, random, model, version: 0, fault, streams, of_replica, clients, ways }
    }

    /// Runs all steps.
    ///
    /// # Errors
    /// What is wrong with a client.
    async fn all(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            self.write().await;
            if step % 100 == 99 {
                // The process restarts, so its new hub knows no earlier changes.
                self.streams[0] = self.world.restarted();
            }
            self.shake();
            for n in 0..self.clients.len() {
                if self.random.random_range(0..10) < self.clients[n].eager {
                    self.read(n).await?;
                }
                if self.random.random_range(0..60) == 0 {
                    self.come_back(n).await;
                }
            }
        }
        self.release();
        for n in 0..self.clients.len() {
            self.settle(n).await?;
        }
        Ok(())
    }

    fn storages(&self) -> [Arc<Shaky>; 3] {
        [self.world.maintenances.clone(), self.world.evictions.clone(), self.of_replica.clone()]
    }

    /// Lets watches fall behind each other, catch up, and sometimes end.
    fn shake(&mut self) {
        for storage in self.storages() {
            match self.random.random_range(0..100) {
                0..5 => storage.hold(true),
                5..25 => storage.hold(false),
                25 => storage.fail(),
                _ => {}
            }
        }
    }

    fn release(&self) {
        self.storages().iter().for_each(|storage| storage.hold(false));
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())]
    }

    async fn write(&mut self) {
        self.version += 1;
        match self.random.random_range(0..10) {
            0 => {
                let key = self.eviction_key();
                self.world.delete_eviction(&key).await;
                self.model.evictions.remove(&key);
            }
            1 => {
                let name = self.one_of(&MAINTENANCES);
                self.world.delete_maintenance(name).await;
                self.model.maintenances.remove(name);
            }
            2..5 => self.write_maintenance().await,
            _ => self.write_eviction().await,
        }
    }

    fn eviction_key(&mut self) -> String {
        format!("{}/{}", self.one_of(&NAMESPACES), self.random.random_range(0..4))
    }

    async fn write_eviction(&mut self) {
        let key = self.eviction_key();
        let state = ModelEviction {
            version: self.version,
            team: self.one_of(&["web", "db"]).to_owned(),
            node: self.one_of(&["", "n1", "n2", "n3"]).to_owned(),
            is_blocked: self.random.random(),
            maintenances: MAINTENANCES
                .iter()
                .filter(|_| self.random.random())
                .map(|name| (*name).to_owned())
                .collect(),
        };
        let named: Vec<_> = state.maintenances.iter().map(|name| json!({"name": name})).collect();
        let blocked = state.is_blocked.then(|| json!({"reason": "Other"}));
        let stored = state.clone();
        let change = move |object: &mut serde_json::Value| {
            object["metadata"]["labels"] = json!({"team": stored.team});
            object["metadata"]["annotations"] =
                json!({"nodemaintenance.k8s.io/maintenances": json!(named).to_string()});
            object["spec"]["target"] = json!({"pod": {"name": format!("v{}", stored.version), "uid": "u"}});
            object["status"] = json!({
                "podInfo": {"nodeName": stored.node, "podType": "Default", "priority": 0},
                "activeInterceptors": ["imperative-eviction.k8s.io"],
                "interceptors": [{"name": "imperative-eviction.k8s.io", "message": "", "blocked": blocked}],
            });
        };
        self.world.put_eviction(&key, change).await;
        self.model.evictions.insert(key, state);
    }

    async fn write_maintenance(&mut self) {
        let name = self.one_of(&MAINTENANCES);
        let nodes =
            NODES.iter().filter(|_| self.random.random()).map(|node| (*node).to_owned()).collect::<Vec<_>>();
        let state = ModelMaintenance {
            version: self.version,
            team: self.one_of(&["web", "db"]).to_owned(),
            nodes: nodes.into_iter().map(|node| (node, self.random.random_range(0..2))).collect(),
        };
        let stored = state.clone();
        let change = move |object: &mut serde_json::Value| {
            let message = format!("v{}", stored.version);
            let status = |(node, blocked): (&String, &i32)| json!({"nodeRef": {"name": node}, "drainMessage": message, "blockedPods": blocked});
            object["metadata"]["labels"] = json!({"team": stored.team});
            object["spec"]["reason"] = json!(message);
            object["status"]["nodeStatuses"] = stored.nodes.iter().map(status).collect();
        };
        self.world.put_maintenance(name, change).await;
        self.model.maintenances.insert(name.to_owned(), state);
    }

    /// Reads for a moment.
    async fn read(&mut self, n: usize) -> Result<(), String> {
        for _ in 0..self.random.random_range(1..20) {
            let Ok((token, said)) = timeout(Duration::from_millis(1), self.clients[n].client.read()).await
            else {
                break;
            };
            self.clients[n].take(self.fault, &self.model, token, said)?;
        }
        Ok(())
    }

    /// The client leaves, and resumes on one of the streams.
    async fn come_back(&mut self, n: usize) {
        let reader = &mut self.clients[n];
        if self.fault == Some(Fault::TokenTooFar)
            && let Ok((token, _)) = timeout(Duration::from_millis(20), reader.client.read()).await
        {
            reader.client.kept.token = token;
        }
        let kept = std::mem::take(&mut reader.client.kept);
        // A snapshot waits for every acknowledged write, so no watch may be held back.
        self.release();
        let reader = &mut self.clients[n];
        let to = self.random.random_range(0..2);
        let was = Arc::as_ptr(&self.streams[reader.at]);
        let stream = self.streams[to].clone();
        match Client::resume(&stream, &reader.watch, kept).await {
            Ok(client) => {
                reader.client = client;
                match (to, std::ptr::eq(was, Arc::as_ptr(&stream))) {
                    (1, false) => self.ways.replica += 1,
                    (0, false) => self.ways.restarted += 1,
                    (_, true) => self.ways.same += 1,
                    _ => {}
                }
            }
            Err(status) => {
                assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
                self.ways.expired += 1;
                reader.client = Client::resume(&stream, &reader.watch, Kept::default()).await.unwrap();
            }
        }
        reader.at = to;
    }

    /// Reads until the client has the state of the model.
    async fn settle(&mut self, n: usize) -> Result<(), String> {
        let most = if self.fault.is_some() { HEARTBEATS_OF_FAULT } else { HEARTBEATS };
        let reader = &mut self.clients[n];
        let mut heartbeats = 0;
        loop {
            let (token, said) = reader.client.read().await;
            heartbeats = if said == Said::Heartbeat { heartbeats + 1 } else { 0 };
            reader.take(self.fault, &self.model, token, said)?;
            let expected = self.model.expected(&reader.watch);
            let entities = reader.client.kept.entities.iter();
            let told: BTreeMap<_, _> =
                entities.map(|(key, message)| (key.clone(), told(&reader.watch, message))).collect();
            if heartbeats > 0 && told == expected && reader.client.kept.completed > 0 {
                return Ok(());
            }
            if heartbeats > most {
                return Err(format!("{:?}\nhas      {told:?}\nand not {expected:?}", reader.watch));
            }
        }
    }
}

impl Reader {
    /// Applies a response, unless the fault changes it.
    ///
    /// # Errors
    /// A response that no server may send.
    fn take(&mut self, fault: Option<Fault>, model: &Model, token: Bytes, said: Said) -> Result<(), String> {
        match (fault, &said) {
            (Some(Fault::LostRemoval), Said::Removed(_)) => {
                self.client.kept.token = token;
                return Ok(());
            }
            (Some(Fault::ExitNotTold), Said::Removed(key))
                if model.evictions.contains_key(key) || model.maintenances.contains_key(key) =>
            {
                self.client.kept.token = token;
                return Ok(());
            }
            (Some(Fault::OlderAfterNewer), Said::Updated(key, _)) => match self.held.remove(key) {
                None => {
                    self.held.insert(key.clone(), (token, said));
                    return Ok(());
                }
                Some((older_token, older)) => {
                    self.check(&said)?;
                    self.client.kept.take(token, said);
                    self.check(&older)?;
                    self.client.kept.take(older_token, older);
                    return Ok(());
                }
            },
            _ => {}
        }
        self.check(&said)?;
        self.client.kept.take(token, said);
        Ok(())
    }

    /// The versions of a key never go back.
    fn check(&mut self, said: &Said) -> Result<(), String> {
        match said {
            Said::Started => self.versions.clear(),
            Said::Updated(key, message) => {
                let now = version(&self.watch, message);
                let before = self.versions.insert(key.clone(), now).unwrap_or_default();
                if now < before {
                    return Err(format!("{key} went back from v{before} to v{now}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
