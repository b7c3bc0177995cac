//! The status stream of a server that is killed and starts again, on each store.

use std::collections::BTreeSet;

use anyhow::Result;
use drydock_proto::status::v1alpha1::status_service_client::StatusServiceClient;
use drydock_proto::status::v1alpha1::watch_maintenances_response::Event;
use drydock_proto::status::v1alpha1::{WatchMaintenancesRequest, WatchMaintenancesResponse, WatchOptions};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::kubectl::Kubectl;
use serde_json::json;
use tokio_util::bytes::Bytes;
use tonic::Streaming;

use super::audiences::token;
use super::setup::{APISERVER, ProgramSetup};
use crate::status_stream::{connect, next, with_token};

/// What a client keeps from one stream to the next.
#[derive(Default)]
struct Kept {
    names: BTreeSet<String>,
    token: Bytes,
}

impl Kept {
    /// Reads a stream until everything has been delivered that existed when it began.
    async fn read(&mut self, mut stream: Streaming<WatchMaintenancesResponse>) -> Result<()> {
        loop {
            let response = next(&mut stream).await??;
            self.token = response.resume_token;
            match response.event {
                Some(Event::SnapshotStarted(_)) => self.names.clear(),
                Some(Event::Updated(maintenance)) => drop(self.names.insert(maintenance.name)),
                Some(Event::Removed(key)) => drop(self.names.remove(&key.name)),
                Some(Event::SnapshotComplete(_)) => return Ok(()),
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_a_server_that_was_killed_goes_on_where_it_was() -> Result<()> {
    let host = TestHost::shared().await?;
    grant(&host).await?;
    let bearer = token(&host, None).await?;
    let etcd = [format!("--etcd-servers={}", host.etcd), "--etcd-prefix=/stream-restart".to_owned()];
    for (test, store) in [("stream-sqlite", &[][..]), ("stream-etcd", &etcd)] {
        let mut program = ProgramSetup::new(&host, test, APISERVER, &host.url).await?;
        if !store.is_empty() {
            program.flags.retain(|flag| !flag.starts_with("--data-dir"));
        }
        let kubectl = Kubectl::new(&host).with_kubeconfig(&program.admin_kubeconfig(&host)?);
        let mut kept = Kept::default();
        let running = program.start_ready(store).await?;
        for name in ["stays", "goes"] {
            kubectl.apply(&named_node_maintenance(name, "Idle", &["nowhere"])).await?;
        }
        kept.read(watch(&program, &bearer, None).await?).await?;
        assert_eq!(names(&kept), ["goes", "stays"], "{test}");
        running.kill().await?;

        let _again = program.start_ready(store).await?;
        kubectl.ok(&["delete", "nodemaintenance", "goes"]).await?;
        kubectl.apply(&named_node_maintenance("comes", "Idle", &["nowhere"])).await?;
        let resumed = kept.token.clone();
        kept.read(watch(&program, &bearer, Some(resumed)).await?).await?;
        assert_eq!(names(&kept), ["comes", "stays"], "{test}");
    }
    Ok(())
}

fn names(kept: &Kept) -> Vec<&str> {
    kept.names.iter().map(String::as_str).collect()
}

async fn watch(
    program: &ProgramSetup,
    bearer: &str,
    resume_token: Option<Bytes>,
) -> Result<Streaming<WatchMaintenancesResponse>> {
    let url = format!("https://127.0.0.1:{}", program.port);
    let channel = connect(&url, &program.dir.join("certs/ca.crt"), "localhost").await?;
    let options = resume_token.map(|resume_token| WatchOptions { resume_token, ..WatchOptions::default() });
    let message = WatchMaintenancesRequest { options, ..WatchMaintenancesRequest::default() };
    Ok(StatusServiceClient::new(channel).watch_maintenances(with_token(message, bearer)?).await?.into_inner())
}

/// Lets the service account that the token is of watch all maintenances.
async fn grant(host: &TestHost) -> Result<()> {
    let kubectl = Kubectl::new(host);
    let rule =
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["nodemaintenances"], "verbs": ["watch"]});
    // Not by `kubectl create`, which asks whether the host serves the resource.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                      "metadata": {"name": "stream-restart"}, "rules": [rule]});
    kubectl.apply(&role).await?;
    let role = ["--clusterrole=stream-restart", "--serviceaccount=default:default"];
    kubectl.ok(&[&["create", "clusterrolebinding", "stream-restart"], &role[..]].concat()).await.map(drop)
}
