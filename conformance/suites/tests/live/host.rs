//! The host itself: if these fail, no other live test says anything.

use anyhow::Result;
use drydock_testkit::cluster;
use drydock_testkit::host::TestHost;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams};

#[tokio::test(flavor = "multi_thread")]
async fn host_comes_up_and_serves_nodes() -> Result<()> {
    let host = TestHost::shared().await?;
    let client = host.client().await?;
    let created = cluster::create_nodes(&client, "up", 3).await?;
    let nodes: Api<Node> = Api::all(client);
    for name in &created {
        assert!(cluster::is_ready(&nodes.get(name).await?));
    }
    assert!(host.kubectl(&["version"])?.contains("Server Version: v1.36."));
    for name in &created {
        nodes.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_host_leaves_no_process_and_no_folder() -> Result<()> {
    let host = TestHost::start().await?;
    let pid = host.processes.pid("etcd").map(|pid| pid.to_string()).unwrap_or_default();
    let dir = host.dir.clone();
    drop(host);
    let alive = std::process::Command::new("kill").args(["-0", &pid]).output()?.status.success();
    assert!(!alive, "etcd {pid} outlived its host");
    assert!(!dir.exists(), "{} was left behind", dir.display());
    Ok(())
}
