//! Clients of the status stream beside the drain. Each is started before the maintenance, prints it as it
//! goes, and must end with the numbers that the object has.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_testkit::drydock::Drydock;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::LIMIT;
use serde_json::json;

use super::maintenance::{Maintenance, NAME};
use super::screen::Screen;

/// The account of the clients: it may watch NodeMaintenances and nothing else.
const ACCOUNT: &str = "stream-reader";
/// How often it is asked whether a client has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Clients that run. They are killed when this is dropped.
pub struct StreamClients(Vec<StreamClient>);

struct StreamClient {
    command: String,
    child: Child,
    output: PathBuf,
}

impl StreamClients {
    /// Starts a client for each command, which gets address, CA file, server name, token file and maintenance
    /// as further arguments.
    pub fn start(drydock: &Drydock, commands: &[String]) -> Result<StreamClients> {
        if commands.is_empty() {
            return Ok(StreamClients(Vec::new()));
        }
        let token = token_file(drydock)?;
        let address = drydock.url().trim_start_matches("https://").to_owned();
        let ca = drydock.ca();
        let arguments = [
            address.as_ref(),
            ca.as_os_str(),
            drydock.server_name().as_ref(),
            token.as_os_str(),
            NAME.as_ref(),
        ]
        .map(std::ffi::OsStr::to_owned);
        let start = |(i, command): (usize, &String)| {
            let output = drydock.host.dir.join(format!("stream-client-{i}.log"));
            let mut words = command.split_whitespace();
            let program = words.next().context("--stream-client is empty")?;
            let child = Command::new(program)
                .args(words)
                .args(&arguments)
                .stdin(Stdio::null())
                .stdout(File::create(&output)?)
                .stderr(File::options().append(true).open(&output)?)
                .spawn()
                .with_context(|| format!("--stream-client {command:?} does not start"))?;
            Ok(StreamClient { command: command.clone(), child, output })
        };
        commands.iter().enumerate().map(start).collect::<Result<_>>().map(StreamClients)
    }

    /// Deletes the maintenance, waits until each client has ended, prints what it said, and compares its last
    /// line with the object.
    pub async fn finish(self, screen: &Screen, maintenance: &Maintenance) -> Result<Vec<Finding>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let expected = numbers_of(&maintenance.delete().await?);
        let mut findings = Vec::new();
        for mut client in self.0 {
            let is_good = client.ended().await?;
            let said = fs::read_to_string(&client.output)?;
            screen.say(&format!("what {} printed:", client.command));
            eprint!("{said}");
            let last = said.lines().last().unwrap_or_default();
            let what = format!("{} ends with {last:?}; the object has {expected:?}", client.command);
            findings.push(Finding::new(is_good && last == expected, what));
        }
        Ok(findings)
    }
}

impl StreamClient {
    /// Whether it ended well; waits for its end.
    async fn ended(&mut self) -> Result<bool> {
        let by = Instant::now() + LIMIT;
        while Instant::now() < by {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!(
            "{} runs on {LIMIT:?} after its maintenance was deleted:\n{}",
            self.command,
            fs::read_to_string(&self.output)?
        )
    }
}

impl Drop for StreamClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line of a client.
fn numbers_of(maintenance: &NodeMaintenance) -> String {
    let status = &maintenance.status;
    let left: i32 =
        status.node_statuses.iter().map(|node| node.pods_pending_evacuation + node.pods_evacuating).sum();
    let outcomes = &status.outcomes;
    format!(
        "final evicted={} canceled={} passed_over={} returned={} drained_nodes={} left={left}",
        outcomes.evicted, outcomes.canceled, outcomes.passed_over, outcomes.returned, status.drained_nodes
    )
}

/// A file with a token of an account that may watch NodeMaintenances.
fn token_file(drydock: &Drydock) -> Result<PathBuf> {
    let host = &drydock.host;
    let meta = json!({ "name": ACCOUNT });
    let rule = json!({"apiGroups": [drydock_api::GROUP], "resources": ["nodemaintenances"], "verbs": ["get", "watch"]});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT});
    let subject = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"});
    let version = "rbac.authorization.k8s.io/v1";
    let items = json!([
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": "default"}},
        {"apiVersion": version, "kind": "ClusterRole", "metadata": meta, "rules": [rule]},
        {"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": meta, "roleRef": role, "subjects": [subject]},
    ]);
    let path = host.dir.join("stream-reader.json");
    fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
    let token = host.dir.join("stream-reader.token");
    fs::write(&token, host.kubectl(&["create", "token", ACCOUNT, "-n", "default"])?)?;
    Ok(token)
}
