//! The suite on etcd: each test has a server of its own, as revisions and compaction are a server's.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use drydock_storage::etcd::{EtcdBackend, EtcdConfig};
use tempfile::TempDir;

use crate::harness::Store;

behaviours!(crate::etcd::start);

/// A running etcd; it is killed when dropped.
pub struct Etcd {
    process: Child,
    client: u16,
    peer: u16,
    directory: TempDir,
}

fn binary() -> PathBuf {
    let path = std::env::var_os("DRYDOCK_ETCD").expect(
        "DRYDOCK_ETCD must name an etcd binary: `conformance/test storage` builds one and sets it; \
         or run conformance/host/build, which prints the folder that has it",
    );
    assert!(Path::new(&path).is_file(), "DRYDOCK_ETCD names no file: {}", path.display());
    path.into()
}

/// Two ports that were free a moment ago.
fn ports() -> (u16, u16) {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (free(), free());
    (one.local_addr().unwrap().port(), other.local_addr().unwrap().port())
}

impl Etcd {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (client, peer) = ports();
        let process = run(directory.path(), client, peer);
        Self { process, client, peer, directory }
    }

    pub fn config(&self, prefix: &str) -> EtcdConfig {
        let servers = vec![format!("http://127.0.0.1:{}", self.client)];
        EtcdConfig { servers, prefix: prefix.to_owned(), ..EtcdConfig::default() }
    }

    /// A backend on this server. It waits for the server by asking until the deadline of a read.
    pub async fn backend(&self, prefix: &str) -> Store {
        Arc::new(EtcdBackend::connect(&self.config(prefix)).await.expect("etcd answers"))
    }

    /// Kills the server and starts it again on the same data and port.
    pub fn restart(&mut self) {
        self.kill();
        self.process = run(self.directory.path(), self.client, self.peer);
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(directory: &Path, client: u16, peer: u16) -> Child {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    Command::new(binary())
        .args(["--name", "one", "--data-dir"])
        .arg(directory.join("data"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}"), "--log-level", "error"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("etcd starts")
}

pub async fn start() -> (Store, Etcd) {
    let etcd = Etcd::start();
    (etcd.backend("/suite").await, etcd)
}
