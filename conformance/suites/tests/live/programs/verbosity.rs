//! What the levels of `-v` show of a drain, and what none shows.

use std::fs;

use anyhow::{Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{schema_served, until};
use http::Request;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::client::Body;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::json;

use super::setup::{APISERVER, MANAGER};
use crate::shared::{LIMIT, Namespace, shared};

/// Lines that only the levels from 2, 4, 6 and 8 on have.
const OF_LEVELS: [&str; 4] = [" drydock_eviction::", " writes: ", " requests: ", " bodies: "];

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_level_shows_all_but_tokens_and_the_default_none_of_it() -> Result<()> {
    let drydock =
        Drydock::start(TestHost::start().await?, Options { verbosity: 8, ..Options::default() }).await?;
    let client = drydock.host.client().await?;
    schema_served(&client, drydock_api::API_VERSION, LIMIT).await?;
    let node = create_nodes(&client, "verbose", 1).await?.remove(0);
    let kubectl = Kubectl::new(&drydock.host);
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
    let namespace = Namespace { name: "default".into(), client, kubectl: Kubectl::new(&drydock.host) };
    namespace.pod("shown", &node, json!({})).await?;
    kubectl.apply(&named_node_maintenance("verbose", "Drain", &[&node])).await?;
    kubectl.ok(&["wait", "nodemaintenance/verbose", "--for=condition=Drained"]).await?;
    // Whoever asks with a token has it reviewed by the host.
    let token = kubectl.ok(&["create", "token", "default", "-n", "default"]).await?.trim().to_owned();
    let mut file = Kubeconfig::read_from(drydock.host.admin())?;
    for user in &mut file.auth_infos {
        user.auth_info = Some(AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() });
    }
    let list = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";
    let answer = drydock.direct_as(file).await?.send(Request::get(list).body(Body::empty())?).await?;
    ensure!(answer.status() == 403, "the token is reviewed, and its user may nothing: {}", answer.status());
    let log = |drydock: &Drydock, name: &str| fs::read_to_string(drydock.host.log(name));
    for (name, shown) in [(MANAGER, OF_LEVELS.as_slice()), (APISERVER, &OF_LEVELS[1..])] {
        let verbose = log(&drydock, name)?;
        ensure!(!verbose.contains(&token), "{name} tells a token");
        let lacking: Vec<_> = shown.iter().filter(|line| !verbose.contains(**line)).collect();
        ensure!(lacking.is_empty(), "{name} has no {lacking:?}");
        let plain = log(&shared().await?.drydock, name)?;
        ensure!(!plain.contains("DEBUG"), "{name} shows more than it is asked for");
    }
    Ok(())
}
