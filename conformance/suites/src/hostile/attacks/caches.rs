//! The largest objects that a host takes, in the caches of the controllers: both programs stay within a bound of memory, see
//! what comes after such objects, and start again with them.

use std::time::Instant;

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;
use drydock_testkit::proc;
use drydock_testkit::program::Program;
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::json;

use super::eviction_requests::Findings;
use super::large_objects::{LargeObjects, deployment};
use super::store::drained;
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;
use crate::setup::cluster::pod;

/// MiB by which the memory of a program of controllers may grow: pages of six lists, of 8 MiB at most each, and what is decoded
/// of them. Caches that keep the objects whole grow by 180 and more.
const GROWTH: u64 = 96;
/// The programs of controllers.
const PROGRAMS: [&str; 2] = ["the controller manager", "the surge interceptor"];
/// Caches of the surge interceptor.
const SURGE_CACHES: usize = 6;
/// The annotation by which the surge interceptor registers on the pods of a Deployment.
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";
/// The budget that keeps one pod.
const KEEPER: &str = "keeper";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![Attack::new(
        "largest-objects",
        "nodes, pods, budgets, workloads and our own kinds as large as the host takes them",
        |f| Box::pin(largest_objects(f)),
    )]
}

/// A budget whose selector has 480,000 values took 18 MiB in the cache, a pod with 70,000 labels 10 MiB: with a few dozen of them
/// the controllers were killed, and again at each start.
async fn largest_objects(context: AttackContext) -> Findings {
    let objects = LargeObjects::of(&context).await?;
    let findings = in_the_caches(&context, &objects).await;
    let removed = timed(&context, "removed", objects.remove()).await;
    // What later attacks measure begins small.
    context.setup.restart_manager().await?;
    let findings = findings?;
    removed?;
    Ok(findings)
}

/// Makes the objects, looks at the programs, and looks again after a start.
async fn in_the_caches(context: &AttackContext, objects: &LargeObjects) -> Findings {
    let controllers = timed(context, "started", Controllers::start(context)).await?;
    let at_rest = controllers.peaks()?;
    timed(context, "filled", objects.make()).await?;
    let seen = timed(context, "seen", seen(context, objects)).await;
    let filled = controllers.peaks()?;
    controllers.surge.kill().await?;

    // Again at each start: all objects are listed at once.
    let controllers = timed(context, "started again", Controllers::start(context)).await?;
    let seen_again = timed(context, "seen again", seen_again(context, objects)).await;
    let listed = controllers.peaks()?;
    let names = PROGRAMS.join(" and ");
    context.say(format!("MiB of {names}: {at_rest:?} at rest, {filled:?} filled, {listed:?} after a start"));
    let grown = (0..PROGRAMS.len()).map(|at| {
        let grown = filled[at].max(listed[at]).saturating_sub(at_rest[at]);
        Finding::new(grown <= GROWTH, format!("{} grew by {grown} MiB, more than {GROWTH}", PROGRAMS[at]))
    });
    let judged = [
        Finding::new(seen.is_ok(), format!("what is seen after the large objects: {seen:?}")),
        Finding::new(seen_again.is_ok(), format!("what is seen after a start: {seen_again:?}")),
    ];
    Ok(grown.chain(judged).collect())
}

/// Both programs of controllers, started anew.
struct Controllers {
    manager: u32,
    surge: Program,
}

impl Controllers {
    /// Starts both, and waits until their caches are complete.
    async fn start(context: &AttackContext) -> Result<Controllers> {
        let surge = context.setup.surge_interceptor().await?;
        context.setup.restart_manager().await?;
        surge.says(&["cache is complete"], SURGE_CACHES).await?;
        Ok(Controllers { manager: context.setup.manager_pid()?, surge })
    }

    /// Returns the most memory of each since its start, in MiB. Fails if one has ended.
    fn peaks(&self) -> Result<[u64; 2]> {
        let manager = proc::memory(self.manager).context(PROGRAMS[0])?;
        let surge = proc::memory(self.surge.pid()?).context(PROGRAMS[1])?;
        Ok([manager, surge].map(|memory| memory.peak / 1024))
    }
}

/// Waits until both programs have seen what was made last: the surge interceptor has registered on a new pod, and a maintenance
/// names a small budget that keeps a pod.
async fn seen(context: &AttackContext, objects: &LargeObjects) -> Result<()> {
    tokio::try_join!(registered(context, objects, "before"), kept(context)).map(drop)
}

/// The same of programs that have started with the large objects. Without its budget, the pod leaves.
async fn seen_again(context: &AttackContext, objects: &LargeObjects) -> Result<()> {
    let leaves = async {
        let keeper = format!("{}/{KEEPER}", LargeObjects::budgets_of(&context.tenant));
        context.setup.done(&UserRequest::delete(keeper)).await?;
        drained(context, &context.tenant.namespace).await
    };
    tokio::try_join!(registered(context, objects, "after"), leaves).map(drop)
}

/// Makes a Deployment, and waits until the surge interceptor has registered on its pod.
async fn registered(context: &AttackContext, objects: &LargeObjects, name: &str) -> Result<()> {
    let mut made = deployment(name, 1);
    // No scheduler puts it on the node that is drained.
    made["spec"]["template"]["spec"]["nodeName"] = json!(objects.node());
    context.setup.done(&UserRequest::post(LargeObjects::deployments_of(&context.tenant), &made)).await?;
    let pods = UserRequest::get(format!("{}?labelSelector=app%3D{name}", context.tenant.pods()));
    let is_registered = async || {
        let found = context.setup.done(&pods).await?;
        Ok(found["items"][0]["metadata"]["annotations"][REGISTERED].is_string())
    };
    let late = || format!("the surge interceptor does not register on the pod of {name}");
    retry(LIMIT, late, is_registered).await
}

/// Makes a pod and its budget, drains its node, and waits until the maintenance names the budget.
async fn kept(context: &AttackContext) -> Result<()> {
    let name = &context.tenant.namespace;
    context.setup.node(name).await?;
    let mut kept = pod("kept", name, &json!({}));
    kept["metadata"]["labels"] = json!({"app": "kept"});
    context.setup.done(&UserRequest::post(context.tenant.pods(), &kept)).await?;
    context.setup.until_running(&context.tenant, "kept").await?;
    let spec = json!({"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": 1});
    let keeper = json!({"metadata": {"name": KEEPER}, "spec": spec});
    context.setup.done(&UserRequest::post(LargeObjects::budgets_of(&context.tenant), &keeper)).await?;
    context.setup.drain(name, name).await?;
    context.setup.blocker(name, "PodDisruptionBudget", &[KEEPER]).await
}

/// Waits for a part of the attack, and says how long it took.
async fn timed<T>(context: &AttackContext, what: &str, part: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = part.await;
    context.say(format!("{what} in {:.1} s", began.elapsed().as_secs_f64()));
    done
}
