//! Who is measured. All of a row's subjects run at the same time, each with an etcd of its own where it needs one,
//! all on the server CPU; only one of them is loaded at a time.
//!
//! ```text
//!   host: kube-apiserver + etcd     answers D and G about users and namespaces, and is itself K
//!   D     drydock-apiserver         on SQLite, and once more on an etcd; and on SQLite with a slow disk
//!   G     sample-apiserver + etcd
//!   E     etcd
//!   F     the lower bound           Drydock's libraries without Drydock
//! ```

mod crd;
mod drydock;
mod etcd;
mod host;
mod lower_bound;
mod sample;
mod slow_disk;
mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use drydock_testkit::host::TestHost;
use drydock_testkit::proc;
use drydock_testkit::wait::https_answers;
use serde::Serialize;

use crate::client::{ConnectionWindows, Credentials, EtcdClient, HttpClient, SubjectClient};
use crate::machine;
use crate::object::{self, ObjectApi};
use start::ServerCommand;
pub use start::Settings;

/// The name of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Drydock on SQLite.
    Sqlite,
    /// The same where each fsync takes a millisecond more.
    SlowDisk,
    /// Drydock on etcd.
    Etcd,
    /// kube-apiserver with a CRD.
    Kube,
    /// sample-apiserver.
    Sample,
    /// etcd itself.
    Raw,
    /// The libraries under Drydock by themselves.
    LowerBound,
}

impl Who {
    /// Everyone, in the order of the report.
    pub const ALL: [Who; 7] =
        [Who::Sqlite, Who::SlowDisk, Who::Etcd, Who::Kube, Who::Sample, Who::Raw, Who::LowerBound];

    /// Whether it serves a Kubernetes API, on a disk as it is.
    pub fn is_api(self) -> bool {
        matches!(self, Self::Sqlite | Self::Etcd | Self::Kube | Self::Sample)
    }

    /// Whether it is ours.
    pub fn is_drydock(self) -> bool {
        matches!(self, Self::Sqlite | Self::SlowDisk | Self::Etcd)
    }

    /// As it stands in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "D on SQLite",
            Self::SlowDisk => "D on SQLite, fsync + 1 ms",
            Self::Etcd => "D on etcd",
            Self::Kube => "K (CRD)",
            Self::Sample => "G (sample)",
            Self::Raw => "E (etcd)",
            Self::LowerBound => "F (lower bound)",
        }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |n| n.get_name()))
    }
}

/// How long a program may take to start.
const LIMIT: Duration = Duration::from_secs(180);

/// One who is measured.
pub struct SubjectServer {
    /// The name of the subject.
    pub who: Who,
    /// The API of its objects.
    pub api: ObjectApi,
    host: Arc<TestHost>,
    port: u16,
    credentials: Credentials,
    /// Name of the server's process.
    server: String,
    /// Name of its etcd's, if it has one beside.
    etcd: Option<String>,
    /// How it was started, if it may be started anew: others need some of the servers.
    command: Option<ServerCommand>,
}

/// CPU time used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// By the server.
    pub server: Duration,
    /// By its etcd.
    pub etcd: Duration,
}

impl SubjectServer {
    /// Opens connections to it.
    pub async fn connect(&self, lanes: usize) -> Result<Arc<dyn SubjectClient>> {
        let credentials = &self.credentials;
        Ok(match self.who {
            Who::Raw => {
                let url = format!("https://127.0.0.1:{}", self.port);
                Arc::new(EtcdClient::connect(&url, credentials, self.api, lanes).await?)
            }
            _ => Arc::new(self.http(lanes, ConnectionWindows::USUAL).await?),
        })
    }

    /// Opens connections of a client to whom little can be sent before it reads.
    pub async fn connect_sluggish(&self, lanes: usize) -> Result<Arc<dyn SubjectClient>> {
        Ok(Arc::new(self.http(lanes, ConnectionWindows::SMALL).await?))
    }

    /// Opens connections of another ordinary user with the rights of the one who makes the load.
    pub async fn connect_as(&self, user: &str, lanes: usize) -> Result<HttpClient> {
        let credentials = credentials(&self.host, user, &[BENCHERS])?;
        HttpClient::connect(self.port, &credentials, self.api, lanes, ConnectionWindows::USUAL).await
    }

    /// Opens connections to an API server, with everything that can be asked by HTTP.
    pub async fn http(&self, lanes: usize, windows: ConnectionWindows) -> Result<HttpClient> {
        HttpClient::connect(self.port, &self.credentials, self.api, lanes, windows).await
    }

    /// Kills the server and starts it again with the same flags, but for those of `instead`; the time from its start until
    /// it is ready.
    pub async fn restart(&self, instead: &[&str]) -> Result<Duration> {
        let command = self.command.as_ref().with_context(|| format!("{} is not started anew", self.who))?;
        self.host.processes.kill(&self.server)?;
        let began = Instant::now();
        command.with(instead).start(&self.host, &self.server)?;
        while !matches!(https_answers(self.port, "/readyz").await, Ok(200)) {
            ensure!(began.elapsed() < LIMIT, "{} is not ready again after {LIMIT:?}", self.who);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(began.elapsed())
    }

    /// CPU time of its processes.
    pub fn used(&self) -> Result<Used> {
        let etcd = self.etcd.as_ref().map(|name| proc::cpu(self.pid(name)?)).transpose()?;
        Ok(Used { server: proc::cpu(self.pid(&self.server)?)?, etcd: etcd.unwrap_or_default() })
    }

    /// Memory of the server.
    pub fn memory(&self) -> Result<proc::ResidentMemory> {
        proc::memory(self.pid(&self.server)?)
    }

    /// Starts the peak of the server's memory anew.
    pub fn forget_peak(&self) -> Result<()> {
        proc::forget_peak(self.pid(&self.server)?)
    }

    fn pid(&self, name: &str) -> Result<u32> {
        self.host.processes.pid(name).with_context(|| format!("{name} does not run"))
    }
}

/// The subjects of one row, freshly started. They end when this is dropped.
pub struct Fleet {
    /// In the order of the report.
    pub servers: Vec<SubjectServer>,
}

impl Fleet {
    /// Starts those asked for, and the host.
    pub async fn start(who: &[Who], settings: Settings) -> Result<Fleet> {
        let host = machine::on_cpu(settings.cpu, host::lay_out)?;
        let servers = Self::start_in(&host, who, settings).await?;
        Ok(Fleet { servers })
    }

    async fn start_in(host: &Arc<TestHost>, who: &[Who], settings: Settings) -> Result<Vec<SubjectServer>> {
        let cpu = settings.cpu;
        let kube = host::start(host, settings).await?;
        host::open_to_bench(host).await?;
        let sqlite = drydock::start(host, Who::Sqlite, settings).await?;
        crd::install(host, &sqlite).await?;
        let mut servers = Vec::new();
        for who in who {
            servers.push(match who {
                Who::Sqlite => continue,
                Who::Kube => continue,
                Who::Etcd | Who::SlowDisk => drydock::start(host, *who, settings).await?,
                Who::Sample => sample::start(host, cpu).await?,
                Who::Raw => etcd::server(host, cpu).await?,
                Who::LowerBound => lower_bound::start(host, cpu).await?,
            });
        }
        servers.extend([sqlite, kube].into_iter().filter(|c| who.contains(&c.who)));
        servers.sort_by_key(|c| c.who);
        Ok(servers)
    }
}

/// The files of a client whom the host knows as `user`.
fn credentials(host: &TestHost, user: &str, groups: &[&str]) -> Result<Credentials> {
    let identity = host.pki.client(&host.dir.join("pki"), user, user, groups)?;
    Ok(Credentials { ca: host.pki.ca.clone(), cert: identity.cert, key: identity.key })
}

/// The group of users who have the rights of [`BENCH_USER`].
const BENCHERS: &str = "benchers";

/// Name of the user who makes the load: an ordinary service account, with rights by RBAC.
const BENCH_USER: &str = "system:serviceaccount:bench:bench";

/// The credentials of [`BENCH_USER`].
fn bench_user(host: &TestHost) -> Result<Credentials> {
    credentials(host, BENCH_USER, &["system:serviceaccounts", "system:serviceaccounts:bench"])
}

/// What D serves.
const DRYDOCK_API: ObjectApi = ObjectApi {
    group: "coordination.k8s.io",
    version: "v1alpha1",
    kind: "EvictionRequest",
    resource: "evictionrequests",
    has_status: true,
    spec: object::eviction_request,
};
