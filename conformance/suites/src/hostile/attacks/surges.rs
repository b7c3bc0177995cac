//! What a tenant with Deployments makes of surges: opt-ins that come and go, records that it made up, and replicas that never
//! come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::program::Program;
use drydock_testkit::wait::{LIMIT, retry};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::deployments::{
    OPT_IN, autoscaler, autoscalers, budget, budgets, deployment, deployments, empty, may_deploy, nowhere,
    on_nodes, paused,
};
use super::eviction_requests::{Findings, REQUESTER};
use super::store::drained;
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::AttackContext;
use crate::setup::{MemoryGauge, Tenant};

/// Most resident memory of the surge interceptor in MiB. A debug build takes 60 at rest.
const MEMORY: u64 = 192;
/// Requests at a time.
const LANES: usize = 8;
/// Deployments whose opt-in comes and goes, and pods of each.
const FLIPPED: usize = 8;
const PODS: usize = 10;
/// How often it goes, and how long it then stays away, and is back.
const FLIPS: usize = 3;
const FLIP: Duration = Duration::from_secs(1);
/// An opt-in that is away for longer may have its pods written, and written again when it is back.
const LONG_FLIP: Duration = Duration::from_secs(25);
/// Deployments with a surge whose replica finds no node.
const HELD: usize = 3;
/// Autoscalers with forged records.
const AUTOSCALERS: usize = 5;
/// Patches of a pod that are few: a write of its status between may have one refused, which is then made again.
const FEW: u64 = 3;
const RECORD: &str = "surge.coordination.k8s.io/record";
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![Attack::new(
        "surges",
        "hundreds of opt-ins, some of which come and go, forged records, and replicas that never come",
        |f| Box::pin(surges(f)),
    )]
}

/// A few flips of an opt-in made thousands of writes of pods.
async fn surges(context: AttackContext) -> Findings {
    let victim = Victim::make(&context).await?;
    may_deploy(&context).await?;
    let surge = context.setup.surge_interceptor().await?;
    let findings = beside(&context, &victim, surge).await;
    for tenant in [&context.tenant, &victim.tenant] {
        empty(&context, tenant).await?;
    }
    findings
}

/// Attacks while the surge interceptor runs, and looks what it has done.
async fn beside(context: &AttackContext, victim: &Victim, mut surge: Program) -> Findings {
    let memory = MemoryGauge::of(surge.pid()?)?;
    let patched = Patches::of(context).await?;
    let connection = context.connect_through_host().await?;
    let (pod, node) = registered(context, &victim.tenant, "only").await?;
    let (_, forged, ()) = tokio::try_join!(
        opt_in(context, &connection),
        forge(context, &connection, victim, &pod),
        hold(context, &connection)
    )?;
    let maintenance = victim.tenant.namespace.clone();
    context.setup.drain(&maintenance, &node).await?;
    let (long, drained) = tokio::join!(flip(context, &connection), drained(context, &maintenance));
    let long = long?;
    seen(context, &connection).await?;

    let (peak, _) = memory.peak();
    let patches = patched.since(context).await?;
    context.say(format!("{peak} MiB in the surge interceptor, patches {patches:?}"));
    let pods = (FLIPPED * PODS + 2 * HELD + 8) as u64;
    let of_pods = FEW * pods + 2 * long * (FLIPPED * PODS) as u64;
    let of_deployments = 2 * (forged + HELD + 8) as u64;
    let is_untouched = victim.is_untouched(context).await;
    let held = held(context).await;
    Ok(vec![
        Finding::new(drained.is_ok(), format!("the drain of another tenant's Deployment: {drained:?}")),
        Finding::new(is_untouched.is_ok(), format!("another tenant's Deployment: {is_untouched:?}")),
        Finding::new(held.is_ok(), format!("Deployments whose replica finds no node: {held:?}")),
        Finding::new(
            patches.pods <= of_pods,
            format!("{} patches of pods, more than {of_pods}", patches.pods),
        ),
        Finding::new(
            patches.deployments <= of_deployments,
            format!("{} patches of Deployments, more than {of_deployments}", patches.deployments),
        ),
        Finding::new(peak <= MEMORY, format!("{peak} MiB in the surge interceptor, more than {MEMORY}")),
        Finding::new(surge.is_running()? && !surge.has_panicked(), "the surge interceptor ended or panicked"),
    ])
}

/// Another tenant: a Deployment at its budget, which is drained, and one that nobody may scale.
struct Victim {
    tenant: Arc<Tenant>,
    /// UID of the second one.
    still: String,
}

impl Victim {
    async fn make(context: &AttackContext) -> Result<Victim> {
        let name = format!("{}-other", context.tenant.namespace);
        let tenant = Arc::new(context.setup.tenant(&name, 1).await?);
        let nodes = ["a", "b"].map(|node| format!("{name}-{node}"));
        for node in &nodes {
            context.setup.node(node).await?;
        }
        let path = deployments(&tenant);
        context.setup.done(&UserRequest::post(budgets(&tenant), &budget("only"))).await?;
        context.setup.done(&UserRequest::post(&path, &on_nodes(deployment("only", 1), &nodes))).await?;
        let still = paused(deployment("still", 2));
        let still = context.setup.done(&UserRequest::post(&path, &still)).await?;
        Ok(Victim { tenant, still: uid_of(&still)? })
    }

    async fn is_untouched(&self, context: &AttackContext) -> Result<()> {
        let path = format!("{}/still", deployments(&self.tenant));
        let still = context.setup.done(&UserRequest::get(path)).await?;
        ensure!(
            still["metadata"]["generation"] == 1 && still["spec"]["replicas"] == 2,
            "it was scaled: {still}"
        );
        Ok(())
    }
}

/// How many patches the host has answered.
#[derive(Debug)]
struct Patches {
    pods: u64,
    deployments: u64,
    /// Those of Deployments that the attack has made.
    own: u64,
}

impl Patches {
    async fn of(context: &AttackContext) -> Result<Patches> {
        let (pods, deployments) =
            (context.setup.patches("pods").await?, context.setup.patches("deployments").await?);
        Ok(Patches { pods, deployments, own: context.counted("patched") as u64 })
    }

    /// Those of others than the attack since.
    async fn since(&self, context: &AttackContext) -> Result<Patches> {
        let now = Patches::of(context).await?;
        let own = now.own - self.own;
        let (pods, deployments) = (now.pods - self.pods, now.deployments - self.deployments);
        Ok(Patches { pods, deployments: deployments.saturating_sub(own), own })
    }
}

/// Deployments with pods that find no node, once all pods are registered.
async fn opt_in(context: &AttackContext, connection: &UserConnection) -> Result<()> {
    let made = (0..FLIPPED).map(|at| nowhere(deployment(&flipped(at), PODS)));
    create(context, connection, &deployments(&context.tenant), made.collect()).await?;
    let late = || "not all pods are registered".to_owned();
    let all = UserRequest::get(format!("{}?labelSelector=app", context.tenant.pods()));
    let are_registered = async || {
        let found = context.setup.done(&all).await?;
        let pods = found["items"].as_array().into_iter().flatten();
        let registered = pods.filter(|pod| {
            let is_flipped =
                pod["metadata"]["labels"]["app"].as_str().is_some_and(|app| app.starts_with("flipped"));
            is_flipped && pod["metadata"]["annotations"][REGISTERED].is_string()
        });
        Ok(registered.count() == FLIPPED * PODS)
    };
    retry(LIMIT, late, are_registered).await
}

fn flipped(at: usize) -> String {
    format!("flipped-{at}")
}

/// Takes the opt-ins away and gives them again. Returns how often they were away for long, which a busy machine may cause.
async fn flip(context: &AttackContext, connection: &UserConnection) -> Result<u64> {
    let mut long = 0;
    for _ in 0..FLIPS {
        let began = Instant::now();
        for (value, pause) in [(json!(null), FLIP), (json!("true"), Duration::ZERO)] {
            for at in 0..FLIPPED {
                let path = format!("{}/{}", deployments(&context.tenant), flipped(at));
                annotate(context, connection, &path, OPT_IN, &value).await?;
            }
            tokio::time::sleep(pause).await;
        }
        long += u64::from(began.elapsed() > LONG_FLIP);
        tokio::time::sleep(FLIP).await;
    }
    Ok(long)
}

/// Deployments and autoscalers with records that no surge has written. Returns of how many Deployments.
async fn forge(
    context: &AttackContext,
    connection: &UserConnection,
    victim: &Victim,
    pod: &str,
) -> Result<usize> {
    let count = context.pick(200, 2_000);
    let (path, autoscalers) = (deployments(&context.tenant), autoscalers(&context.tenant));
    let made = (0..count).map(|at| paused(deployment(&format!("forged-{at}"), 2)));
    let made = create(context, connection, &path, made.collect()).await?;
    let many: Vec<String> = (0..1_000).map(|at| format!("{at}-{pod}")).collect();
    let records = made.iter().enumerate().map(|(at, own)| {
        let uid = &own["metadata"]["uid"];
        let record = match at % 5 {
            0 => record(1, 2, uid, &json!([pod])),
            1 => record(1, 2, &json!(victim.still), &json!([pod])),
            2 => record(i32::MAX - 1, i32::MAX, uid, &json!(["a"])),
            3 => record(1_000, 1_002, uid, &json!(many)),
            _ => "x".repeat(20_000),
        };
        let path = format!("{path}/{}", own["metadata"]["name"].as_str().unwrap_or_default());
        async move { annotate(context, connection, &path, RECORD, &json!(record)).await }
    });
    stream::iter(records).buffer_unordered(LANES).try_collect::<()>().await?;
    let made = (0..AUTOSCALERS).map(|at| autoscaler(&format!("forged-{at}"), "still"));
    for own in create(context, connection, &autoscalers, made.collect()).await? {
        let forged = record(i32::MAX - 1, i32::MAX, &own["metadata"]["uid"], &json!([pod]));
        let path = format!("{autoscalers}/{}", own["metadata"]["name"].as_str().unwrap_or_default());
        let change = json!({"metadata": {"annotations": {RECORD: forged}}});
        connection.done(&UserRequest::merge(path, &change)).await?;
    }
    Ok(count)
}

fn record(delta: i32, replicas: i32, uid: &Value, pods: &Value) -> String {
    json!({"delta": delta, "replicas": replicas, "uid": uid, "pods": pods, "since": "2999-01-01T00:00:00Z"})
        .to_string()
}

/// Surges that stand: the budget allows no eviction, and the second pod finds no node beside the first one.
async fn hold(context: &AttackContext, connection: &UserConnection) -> Result<()> {
    let node = format!("{}-held", context.tenant.namespace);
    context.setup.node(&node).await?;
    for at in 0..HELD {
        let name = held_name(at);
        let mut alone = on_nodes(deployment(&name, 1), std::slice::from_ref(&node));
        // As long as an i32 says.
        alone["spec"]["progressDeadlineSeconds"] = json!(i32::MAX);
        let term =
            json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}});
        alone["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        let budget = budget(&name);
        connection.done(&UserRequest::post(budgets(&context.tenant), &budget)).await?;
        connection.done(&UserRequest::post(deployments(&context.tenant), &alone)).await?;
    }
    for at in 0..HELD {
        let name = held_name(at);
        let (uid, _) = registered(context, &context.tenant, &name).await?;
        let pod = pod_of(context, &context.tenant, &name).await?;
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
        let request = eviction_request(pod, &uid, REQUESTER);
        connection.done(&UserRequest::post(context.tenant.requests(), &request)).await?;
    }
    let late = || "no surge of a Deployment whose replica finds no node".to_owned();
    retry(LIMIT, late, async || Ok(held(context).await.is_ok())).await
}

fn held_name(at: usize) -> String {
    format!("held-{at}")
}

/// Whether the surges stand, with one replica more.
async fn held(context: &AttackContext) -> Result<()> {
    for at in 0..HELD {
        let path = format!("{}/{}", deployments(&context.tenant), held_name(at));
        let found = context.setup.done(&UserRequest::get(path)).await?;
        let is_recorded = found["metadata"]["annotations"][RECORD].is_string();
        ensure!(is_recorded && found["spec"]["replicas"] == 2, "{found}");
    }
    Ok(())
}

/// Waits until the interceptor has seen what was made last: a record that it takes back.
async fn seen(context: &AttackContext, connection: &UserConnection) -> Result<()> {
    let (path, marker) = (deployments(&context.tenant), paused(deployment("marker", 2)));
    let made = connection.done(&UserRequest::post(&path, &marker)).await?;
    let forged = record(1, 2, &made["metadata"]["uid"], &json!(["a"]));
    let path = format!("{path}/marker");
    annotate(context, connection, &path, RECORD, &json!(forged)).await?;
    let is_taken_back = async || {
        let found = context.setup.done(&UserRequest::get(&path)).await?;
        Ok(found["metadata"]["annotations"].get(RECORD).is_none() && found["spec"]["replicas"] == 1)
    };
    retry(LIMIT, || "a forged record is not taken back".to_owned(), is_taken_back).await
}

/// Waits until the pod of a Deployment of one replica is registered. Returns its UID and its node.
async fn registered(context: &AttackContext, tenant: &Tenant, app: &str) -> Result<(String, String)> {
    let is_registered = async || {
        let pod = pod_of(context, tenant, app).await?;
        Ok(pod["metadata"]["annotations"][REGISTERED].is_string() && pod["status"]["phase"] == "Running")
    };
    retry(LIMIT, || format!("the pod of {app} is not registered"), is_registered).await?;
    let pod = pod_of(context, tenant, app).await?;
    Ok((uid_of(&pod)?, pod["spec"]["nodeName"].as_str().context("no node")?.to_owned()))
}

/// The first pod of a Deployment; null if there is none.
async fn pod_of(context: &AttackContext, tenant: &Tenant, app: &str) -> Result<Value> {
    let path = format!("{}?labelSelector=app%3D{app}", tenant.pods());
    let found = context.setup.done(&UserRequest::get(path)).await?;
    Ok(found["items"][0].clone())
}

fn uid_of(object: &Value) -> Result<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned).context("no UID")
}

/// Creates objects, some at a time, and returns them.
async fn create(
    context: &AttackContext,
    connection: &UserConnection,
    path: &str,
    objects: Vec<Value>,
) -> Result<Vec<Value>> {
    let made = objects.into_iter().map(|object| async move {
        let made = connection.done(&UserRequest::post(path, &object)).await?;
        context.count("made");
        anyhow::Ok(made)
    });
    stream::iter(made).buffered(LANES).try_collect().await
}

/// Sets an annotation of a Deployment.
async fn annotate(
    context: &AttackContext,
    connection: &UserConnection,
    path: &str,
    key: &str,
    value: &Value,
) -> Result<()> {
    let change = json!({"metadata": {"annotations": {key: value}}});
    connection.done(&UserRequest::merge(path, &change)).await?;
    context.count("patched");
    Ok(())
}
