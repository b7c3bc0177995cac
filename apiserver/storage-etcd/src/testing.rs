//! An etcd of one member, in a folder of its own. Revisions and compaction are per server, so each test has one.
// A failed unwrap is an assertion, and a method's name says what it does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use drydock_storage::testing::backend_suite::harness::Store;
use tempfile::TempDir;

use crate::{EtcdBackend, EtcdConfig};

/// A running etcd; it is killed when dropped.
pub struct TestEtcd {
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

/// Ports of these tests: below the ephemeral ports of Linux, so that no connection takes the port of an etcd that is down,
/// and below those that conformance/testkit gives.
const PORTS: Range<u32> = 10_000..12_000;

/// Returns two free ports. No two calls of a process return the same one, and processes begin at different ones.
fn ports() -> (u16, u16) {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let next = || {
        let nth = std::process::id().wrapping_mul(97).wrapping_add(GIVEN.fetch_add(1, Relaxed));
        u16::try_from(PORTS.start + nth % (PORTS.end - PORTS.start)).unwrap()
    };
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = std::iter::repeat_with(next).filter(free);
    (ports.next().unwrap(), ports.next().unwrap())
}

impl TestEtcd {
    pub fn start() -> Self {
        Self::start_with("http", &[])
    }

    /// Starts an etcd that clients reach by `scheme`, with more flags.
    pub fn start_with(scheme: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (client, peer) = ports();
        let process = run(directory.path(), scheme, client, peer, flags);
        Self { process, client, peer, directory }
    }

    /// The port for clients.
    pub fn client_port(&self) -> u16 {
        self.client
    }

    pub fn config(&self, prefix: &str) -> EtcdConfig {
        let servers = vec![format!("http://127.0.0.1:{}", self.client)];
        EtcdConfig { servers, prefix: prefix.to_owned(), ..EtcdConfig::default() }
    }

    /// Returns a backend on this server. Retries up to the deadline of a read until the server answers.
    pub async fn backend(&self, prefix: &str) -> Store {
        Arc::new(EtcdBackend::connect(&self.config(prefix)).await.expect("etcd answers"))
    }

    /// Kills the server and starts it again on the same data and port.
    pub fn restart(&mut self) {
        self.kill();
        self.process = run(self.directory.path(), "http", self.client, self.peer, &[]);
    }

    /// Stops the process: its port accepts connections, but nothing is answered.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Continues a paused process.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for TestEtcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(directory: &Path, scheme: &str, client: u16, peer: u16, more: &[&str]) -> Child {
    let (client, peer) = (format!("{scheme}://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    Command::new(binary())
        .args(["--name", "one", "--data-dir"])
        .arg(directory.join("data"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}"), "--log-level", "error"])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("etcd starts")
}
