//! An etcd of one member, in a folder of its own. Revisions and compaction are per server, so each test has one.
// A failed unwrap is an assertion, and a method's name says what it does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::VecDeque;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use drydock_storage::testing::backend_suite::harness::Store;
use parking_lot::Mutex;
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

/// Ports of these tests: below the ephemeral ports of Linux, so that no connection takes the port of an etcd that is down, below
/// those that conformance/testkit gives, and above those of Kubernetes' own programs (10250 to 10259).
const PORTS: Range<u16> = 10_304..12_000;
/// The ports of a block. A process holds the first one open, and has the others then, as in `conformance/testkit`, which no crate
/// of the product may use.
const BLOCK: u16 = 32;

/// The ports of this process.
static OURS: Mutex<EtcdPorts> = Mutex::new(EtcdPorts { guards: Vec::new(), left: VecDeque::new() });

struct EtcdPorts {
    /// The first port of each block, which the kernel closes when the process ends.
    guards: Vec<TcpListener>,
    /// The ports that no etcd has. The one that has been left for longest is given next.
    left: VecDeque<u16>,
}

impl EtcdPorts {
    fn take(&mut self) -> u16 {
        loop {
            for _ in 0..self.left.len() {
                let port = self.left.pop_front().unwrap();
                if bind(port).is_some() {
                    return port;
                }
                self.left.push_back(port);
            }
            self.take_block();
        }
    }

    fn take_block(&mut self) {
        let mut guards: Vec<u16> = PORTS.step_by(usize::from(BLOCK)).collect();
        let first = usize::try_from(std::process::id()).unwrap() % guards.len();
        guards.rotate_left(first);
        let taken = guards.into_iter().find_map(|port| Some((port, bind(port)?)));
        let (port, guard) = taken.unwrap_or_else(|| panic!("no block of ports is free in {PORTS:?}"));
        self.guards.push(guard);
        self.left.extend(port + 1..port + BLOCK);
    }
}

fn bind(port: u16) -> Option<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).ok()
}

impl TestEtcd {
    pub fn start() -> Self {
        Self::start_with("http", &[])
    }

    /// Starts an etcd that clients reach by `scheme`, with more flags.
    pub fn start_with(scheme: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [client, peer] = [(); 2].map(|()| OURS.lock().take());
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
        OURS.lock().left.extend([self.client, self.peer]);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes chose the same port, and a search for a free one where there is none had no end.
    #[test]
    fn no_port_is_given_to_two_processes_and_each_comes_back() {
        let nothing = || EtcdPorts { guards: Vec::new(), left: VecDeque::new() };
        let (mut one, mut other) = (nothing(), nothing());
        let mut ports: Vec<u16> = (0..BLOCK).flat_map(|_| [one.take(), other.take()]).collect();
        ports.sort_unstable();
        let given = ports.len();
        ports.dedup();
        assert_eq!(ports.len(), given);
        assert!(ports.iter().all(|port| PORTS.contains(port)));
        let mut again = nothing();
        for _ in 0..2 * BLOCK {
            let port = again.take();
            again.left.push_back(port);
        }
        assert_eq!(again.guards.len(), 1);
    }
}
