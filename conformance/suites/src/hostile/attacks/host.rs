//! Attacks through the host, which is between tenants and Drydock, and attacks by maintainers of nodes.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, create_requests, no_findings, request, uid};
use crate::attack::Attack;
use crate::client::{FlowWindows, RawFrames, UserConnection, UserRequest, fields};
use crate::context::{ATTACKER_ADDRESS, AttackContext};
use crate::setup::MemoryGauge;
use crate::setup::cluster::maintenance;

/// Requests at a time, by each of two ways: more than the seats of the host's priority level workload-low
/// (245 of 600), and more than those of our level for ordinary users.
const LANES: usize = 320;
/// Requests at a time of a maintainer of nodes.
const PLANNERS: usize = 8;
/// Connections to the manager whose answers wait, and a number above those of the streams on each.
const UNREAD: (usize, u32) = (60, 1_000);
/// MiB that the manager may take.
const MANAGER: u64 = 256;
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "host-queues",
            "the host's level workload-low and our queues are full of one tenant's requests",
            |f| Box::pin(host_queues(f)),
        ),
        Attack::new("manager-metrics", "new tokens for the controller manager's metrics", |f| {
            Box::pin(manager_metrics(f))
        })
        .by_strangers(),
        Attack::new(
            "manager-streams",
            "answers of the controller manager that nobody reads, to strangers and to a tenant",
            |f| Box::pin(manager_streams(f)),
        )
        .by_strangers(),
        Attack::new(
            "many-maintenances",
            "maintenances of many nodes that are nowhere, made and deleted",
            |f| Box::pin(many_maintenances(f)),
        ),
    ]
}

/// The garbage collector's requests pass through the same host to the same server.
async fn host_queues(context: AttackContext) -> Findings {
    create_requests(&context, 50, 40_000).await?;
    let owned = owned(&context).await?;
    let each = context.clone();
    let requests = context.tenant.requests();
    let fill = context.repeat(2 * LANES, move |lane, round| {
        let (context, path) = (each.clone(), requests.clone());
        async move {
            let connection =
                if lane < LANES { context.connect_through_host().await? } else { context.connect().await? };
            for turn in 0..10 {
                let fresh = request(1_000_000 + (lane * 1_000 + round) * 100 + turn);
                let create = UserRequest::post(format!("{path}?dryRun=All"), &fresh);
                for ask in [create, UserRequest::get(&path)] {
                    context.note(&connection.ask(&ask).await);
                }
            }
            Ok(())
        }
    });
    let collected = async {
        context.is_under_way(LANES).await?;
        collected(&context, &owned).await
    };
    let (_, collected) = tokio::join!(fill, collected);
    Ok(vec![Finding::new(collected.is_ok(), format!("the garbage collector: {collected:?}"))])
}

/// A request that belongs to a ConfigMap: the path of each.
async fn owned(context: &AttackContext) -> Result<(String, String)> {
    let path = format!("/api/v1/namespaces/{}/configmaps", context.tenant.namespace);
    let owner =
        context.setup.done(&UserRequest::post(&path, &json!({"metadata": {"name": "owner"}}))).await?;
    let mut object = request(999_999);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    context.setup.done(&UserRequest::post(context.tenant.requests(), &object)).await?;
    Ok((format!("{path}/owner"), context.tenant.request(&uid(999_999))))
}

async fn collected(context: &AttackContext, (owner, object): &(String, String)) -> Result<()> {
    let admin = context.setup.admin().await?;
    admin.done(&UserRequest::delete(owner)).await?;
    retry(
        LIMIT,
        || "the request outlives its owner".to_owned(),
        async || Ok(admin.ask_again(&UserRequest::get(object)).await?.code == StatusCode::NOT_FOUND),
    )
    .await
}

async fn manager_metrics(context: AttackContext) -> Findings {
    let (endpoint, each) = (context.setup.manager(false)?, context.clone());
    context
        .repeat(16, move |lane, round| {
            let (endpoint, context) = (endpoint.clone(), each.clone());
            async move {
                let connection =
                    UserConnection::open(&endpoint, ATTACKER_ADDRESS, None, FlowWindows::USUAL).await?;
                for turn in 0..50 {
                    let token = format!("Bearer junk-{lane}-{round}-{turn}");
                    context.note(
                        &connection.ask(&UserRequest::get("/metrics").with("authorization", token)).await,
                    );
                }
                Ok(())
            }
        })
        .await;
    let read = context.setup.manager_series().await;
    Ok(vec![Finding::new(read.is_ok(), format!("the metrics for system:masters: {read:?}"))])
}

/// The windows of all streams have 0 bytes.
async fn manager_streams(context: AttackContext) -> Findings {
    let endpoint = context.setup.manager(false)?;
    let memory = MemoryGauge::of(context.setup.manager_pid()?)?;
    let token = format!("Bearer {}", context.tenant.account().token);
    let hold = async |from: Ipv4Addr, more: &[(&str, &str)]| {
        let (block, mut held) = (fields(&endpoint.authority(), "/metrics", more), Vec::new());
        for _ in 0..UNREAD.0 {
            let opened = async {
                // SETTINGS_INITIAL_WINDOW_SIZE.
                let mut frames = RawFrames::open(&endpoint, from, &[(4, 0)]).await?;
                for stream in (1..UNREAD.1).step_by(2) {
                    frames.request(stream, &block).await?;
                }
                frames.flush().await?;
                anyhow::Ok(frames)
            };
            match opened.await {
                Ok(frames) => {
                    context.count("unread");
                    held.push(frames);
                }
                Err(_) => context.count("broken"),
            }
        }
        held
    };
    let strangers = hold(ATTACKER_ADDRESS, &[]).await;
    let users = hold(Ipv4Addr::new(127, 0, 1, 1), &[("authorization", token.as_str())]).await;
    context.wait().await;
    let ended = join_all(strangers.into_iter().map(async |mut frames| frames.pong_until_ended().await));
    let ended = tokio::time::timeout(LIMIT, ended).await.is_ok();
    drop(users);
    let (peak, killed) = memory.peak();
    context.say(format!("the manager's peak is {peak} MiB"));
    let read = context.setup.manager_series().await;
    Ok(vec![
        Finding::new(ended, "connections without a user stay although they were retired".to_owned()),
        Finding::new(peak <= MANAGER && !killed, format!("the manager took {peak} MiB, more than {MANAGER}")),
        Finding::new(read.is_ok(), format!("the metrics for system:masters: {read:?}")),
    ])
}

async fn many_maintenances(context: AttackContext) -> Findings {
    allow_maintenances(&context, &[json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]})])
        .await?;
    let connection = context.connect().await.context("no connection")?;
    let nodes: Vec<String> = (0..100).map(|at| format!("nowhere-{at}")).collect();
    let (path, prefix) = (maintenance(""), context.tenant.namespace.clone());
    let path = path.trim_end_matches('/').to_owned();
    retry(
        LIMIT,
        || "no rights".to_owned(),
        async || {
            Ok(connection.ask_again(&UserRequest::get(format!("{path}?limit=1"))).await?.code.is_success())
        },
    )
    .await?;
    let each = context.clone();
    let made = path.clone();
    context
        .repeat(PLANNERS, move |lane, round| {
            let (context, path, connection) = (each.clone(), made.clone(), connection.clone());
            let name = format!("{prefix}-{lane}-{round}");
            let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
            let object = node_maintenance(&name, "Drain", &nodes);
            async move {
                context.note(&connection.ask_again(&UserRequest::post(&path, &object)).await);
                let complete = json!({"spec": {"stage": "Complete"}});
                context.note(
                    &connection.ask_again(&UserRequest::merge(format!("{path}/{name}"), &complete)).await,
                );
                context.note(&connection.ask_again(&UserRequest::delete(format!("{path}/{name}"))).await);
                Ok(())
            }
        })
        .await;
    no_findings()
}

/// Lets the tenant write NodeMaintenances, and what else these rules give.
pub async fn allow_maintenances(context: &AttackContext, others: &[Value]) -> Result<()> {
    let name = &context.tenant.namespace;
    let ours = json!({"apiGroups": [drydock_api::GROUP], "resources": ["nodemaintenances"], "verbs": ["*"]});
    let rules = [&[ours], others].concat();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [context.tenant.subject()],
    });
    context.setup.done(&UserRequest::post(format!("{RBAC}/clusterroles"), &role)).await?;
    context.setup.done(&UserRequest::post(format!("{RBAC}/clusterrolebindings"), &binding)).await.map(drop)
}
