//! A cluster of etcd whose members and connections can fail.
//!
//! ```text
//!   server ──> proxy of each member ──> member ──> proxy of each peer ──> peer
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use drydock_storage::backend::Backend;
use drydock_storage_etcd::{EtcdBackend, EtcdConfig};
use drydock_testkit::host::{OwnPorts, Processes};
use drydock_testkit::wait::LIMIT;
use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::StorePlace;
use super::links::{CLIENTS, Links};
use crate::recorder::Recorder;

/// A running cluster.
pub struct Etcd {
    members: Vec<EtcdMember>,
    links: Links,
    processes: Processes,
    directory: TempDir,
    servers: usize,
    prefix: String,
    /// Dropped after the processes have ended.
    _ports: OwnPorts,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.links.end();
    }
}

/// Ports of one member: its own, and those of the proxies before it.
struct EtcdMember {
    name: String,
    client: u16,
    peer: u16,
    client_way: u16,
    peer_way: u16,
}

impl Etcd {
    /// Starts a cluster that `servers` use.
    pub async fn start(members: usize, servers: usize, prefix: &str) -> Result<Arc<Self>> {
        let directory = tempfile::Builder::new().prefix("drydock-history-").tempdir()?;
        let processes = Processes::new(&directory.path().join("etcd"))?;
        let ports = OwnPorts::take(4 * members)?;
        let member = |(at, p): (usize, &[u16])| EtcdMember {
            name: format!("member-{at}"),
            client: p[0],
            peer: p[1],
            client_way: p[2],
            peer_way: p[3],
        };
        let members: Vec<EtcdMember> = ports.chunks(4).enumerate().map(member).collect();
        let links = Links::new();
        let prefix = prefix.to_owned();
        let etcd = Self { members, links, processes, directory, servers, prefix, _ports: ports };
        for (at, member) in etcd.members.iter().enumerate() {
            etcd.links.lead(member.client_way, at, Some(CLIENTS), member.client).await?;
            etcd.links.lead(member.peer_way, at, None, member.peer).await?;
            etcd.run(at)?;
        }
        etcd.learn_ids().await?;
        Ok(Arc::new(etcd))
    }

    /// URLs of all members, through their proxies.
    pub fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("http://127.0.0.1:{}", member.client_way)).collect()
    }

    fn run(&self, at: usize) -> Result<()> {
        let member = &self.members[at];
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peers: Vec<String> =
            self.members.iter().map(|member| format!("{}={}", member.name, url(member.peer_way))).collect();
        let flags = [
            format!("--name={}", member.name),
            format!("--data-dir={}", self.directory.path().join(&member.name).display()),
            format!("--listen-client-urls={}", url(member.client)),
            format!("--advertise-client-urls={}", url(member.client_way)),
            format!("--listen-peer-urls={}", url(member.peer)),
            format!("--initial-advertise-peer-urls={}", url(member.peer_way)),
            format!("--initial-cluster={}", peers.join(",")),
            "--log-level=error".to_owned(),
        ];
        let bin = std::env::var_os("DRYDOCK_HOST_BIN")
            .context("DRYDOCK_HOST_BIN must name the folder that conformance/host/build prints")?;
        self.processes.start(&member.name, &std::path::Path::new(&bin).join("etcd"), &flags)
    }

    /// The members' ids are known once they have a leader.
    async fn learn_ids(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.ids().await {
                Ok(ids) if ids.len() == self.members.len() => {
                    ids.into_iter().for_each(|(id, at)| self.links.name(id, at));
                    return Ok(());
                }
                _ if began.elapsed() > LIMIT => bail!("etcd does not answer: {}", self.log_tail()),
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn ids(&self) -> Result<Vec<(u64, usize)>> {
        let url = format!("http://127.0.0.1:{}", self.members[0].client);
        let mut client = etcd_client::Client::connect([url], None).await?;
        let list = tokio::time::timeout(Duration::from_secs(5), client.member_list()).await??;
        let at = |name: &str| self.members.iter().position(|member| member.name == name);
        Ok(list.members().iter().filter_map(|member| Some((member.id(), at(member.name())?))).collect())
    }

    /// Waits until each member answers with the others' agreement.
    async fn settle(&self) -> Result<()> {
        let began = Instant::now();
        for member in &self.members {
            while let Err(error) = agrees(member.client).await {
                if began.elapsed() > LIMIT {
                    return Err(error).context(self.log_tail());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        self.members.iter().map(|member| self.processes.log_tail(&member.name)).collect()
    }

    fn signal(&self, at: usize, signal: Signal) -> Result<()> {
        let pid = self.processes.pid(&self.members[at].name).context("the member does not run")?;
        let pid = Pid::from_raw(i32::try_from(pid)?).context("no pid")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Kills a member (SIGKILL), and starts it again after a while.
    pub async fn kill(&self, at: usize, down: Duration) -> Result<()> {
        self.processes.kill(&self.members[at].name)?;
        tokio::time::sleep(down).await;
        self.run(at)
    }

    /// Stops a member for a while (SIGSTOP).
    pub async fn pause(&self, at: usize, down: Duration) -> Result<()> {
        self.signal(at, Signal::STOP)?;
        tokio::time::sleep(down).await;
        self.signal(at, Signal::CONT)
    }

    /// Partitions a member from its peers for a while, and from the clients too if asked to.
    pub async fn partition(&self, at: usize, from_clients: bool, down: Duration) {
        let peers = (0..self.members.len()).filter(|peer| *peer != at).map(|peer| (peer, at));
        self.links.hold(peers.chain(from_clients.then_some((CLIENTS, at))));
        tokio::time::sleep(down).await;
        self.links.mend();
    }

    /// Partitions every member from every other.
    pub async fn partition_all(&self, down: Duration) {
        let count = self.members.len();
        self.links.hold((0..count).flat_map(|one| (0..one).map(move |other| (one, other))));
        tokio::time::sleep(down).await;
        self.links.mend();
    }
}

#[async_trait]
impl StorePlace for Etcd {
    fn servers(&self) -> usize {
        self.servers
    }

    async fn open(&self, _which: usize) -> Result<Arc<dyn Backend>> {
        let config =
            EtcdConfig { servers: self.urls(), prefix: self.prefix.clone(), ..EtcdConfig::default() };
        let began = Instant::now();
        loop {
            match EtcdBackend::connect(&config).await {
                Ok(backend) => return Ok(Arc::new(backend)),
                Err(error) if began.elapsed() > LIMIT => return Err(error).context(self.log_tail()),
                Err(_) => {}
            }
        }
    }

    fn survives(&self) -> bool {
        self.members.len() > 2
    }

    /// The next one comes when all members are well again: two at a time would be most of three.
    async fn fault(&self, rng: &mut StdRng, recorder: &Recorder) -> Result<Option<&'static str>> {
        let at = rng.random_range(0..self.members.len());
        let down = Duration::from_millis(rng.random_range(50..3_000));
        let kinds = if self.survives() { 7 } else { 4 };
        let began = recorder.fault();
        let what = match rng.random_range(0..kinds) {
            0 => {
                self.kill(at, down / 4).await?;
                "members killed"
            }
            1 => {
                self.pause(at, down).await?;
                "members paused"
            }
            2 => {
                self.links.cut(at);
                "connections cut"
            }
            3 => {
                self.links.hold([(CLIENTS, at)]);
                tokio::time::sleep(down).await;
                self.links.mend();
                "connections held up"
            }
            4 => {
                self.partition(at, false, down * 2).await;
                "members parted from the others"
            }
            5 => {
                self.partition(at, true, down * 2).await;
                "members parted from all"
            }
            _ => {
                self.partition_all(down).await;
                "majorities lost"
            }
        };
        self.settle().await?;
        if what == "majorities lost" {
            recorder.outage(began);
        }
        Ok(Some(what))
    }

    async fn mend(&self) -> Result<()> {
        self.links.mend();
        for at in 0..self.members.len() {
            match self.processes.runs(&self.members[at].name) {
                true => self.signal(at, Signal::CONT)?,
                false => self.run(at)?,
            }
        }
        Ok(())
    }
}

/// A linearizable read by one member.
async fn agrees(port: u16) -> Result<()> {
    let mut client = etcd_client::Client::connect([format!("http://127.0.0.1:{port}")], None).await?;
    tokio::time::timeout(Duration::from_secs(2), client.get("health", None)).await??;
    Ok(())
}
