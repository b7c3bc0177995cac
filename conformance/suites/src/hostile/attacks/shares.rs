//! A tenant with many accounts gets no larger share than one with a single account, and a load does not stop a drain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::finding::Finding;
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::eviction_requests::{Findings, create_requests, no_findings, request, uid};
use super::store::drained;
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::{ATTACKER_ADDRESS, AttackContext};
use crate::setup::{Account, Tenant};

/// Reads at a time of each tenant; both together want more places than there are.
const LANES: usize = 400;
/// Requests at a time of the noisy user: ten times an equal share of five users.
const NOISE: usize = 540;
/// Streams on a connection.
const STREAMS: usize = 100;

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("many-accounts", "a tenant with a thousand accounts beside one with one", |f| {
            Box::pin(many_accounts(f))
        }),
        Attack::new("noise-beside-a-drain", "540 requests at a time beside a drain of 100 pods", |f| {
            Box::pin(noise_beside_a_drain(f))
        }),
    ]
}

/// Prints how long a drain takes without the load and beside it. Judges only that it ends.
async fn noise_beside_a_drain(context: AttackContext) -> Findings {
    let pods = context.pick(100, 3_000);
    let other = format!("{}-drained", context.tenant.namespace);
    let other = context.setup.tenant(&other, 1).await?;
    let calm = drained_in(&context, &other, "calm", pods).await?;
    let stop = CancellationToken::new();
    let noise = async {
        let lanes = (0..NOISE).map(|lane| noise(&context, lane, &stop));
        join_all(lanes).await;
    };
    let drained = async {
        let took = drained_in(&context, &other, "noisy", pods).await;
        stop.cancel();
        took
    };
    let ((), beside) = tokio::join!(noise, drained);
    let pace = |took: Duration| pods as f64 / took.as_secs_f64();
    context.say(format!("{:.1} pods/s without, {:.1} beside it", pace(calm), pace(beside?)));
    no_findings()
}

/// An ordinary client that sends too much: it retries after Retry-After.
async fn noise(context: &AttackContext, lane: usize, stop: &CancellationToken) {
    let path = format!("{}?dryRun=All", context.tenant.requests());
    let ask = async {
        for round in 0.. {
            let connection = match context.connect().await {
                Ok(connection) => connection,
                Err(_) => continue,
            };
            for turn in 0..100 {
                let object = request((lane * 1_000 + round) * 100 + turn);
                for ask in [UserRequest::post(&path, &object), UserRequest::get(context.tenant.requests())] {
                    context.note(&connection.ask_again(&ask).await);
                }
            }
        }
    };
    stop.run_until_cancelled(ask).await;
}

/// Pods of a tenant on a node of their own, and the time from the maintenance until it is drained.
async fn drained_in(context: &AttackContext, tenant: &Tenant, which: &str, pods: usize) -> Result<Duration> {
    let name = format!("{}-{which}", tenant.namespace);
    context.setup.node(&name).await?;
    context.setup.named_pods(tenant, &name, which, pods).await?;
    let began = Instant::now();
    context.setup.drain(&name, &name).await?;
    drained(context, &name).await?;
    Ok(began.elapsed())
}

/// Both tenants read one request, on as many streams of as many connections. The many accounts together may get twice as
/// much as the one, which is chance; as a flow each they would get two hundred times as much.
async fn many_accounts(context: AttackContext) -> Findings {
    let name = format!("{}-many", context.tenant.namespace);
    let many = context.of(Arc::new(context.setup.tenant(&name, context.pick(200, 1_000)).await?));
    create_requests(&context, 1, 10_000).await?;
    create_requests(&many, 1, 10_000).await?;
    // The tokens are reviewed first, so that no request has to wait for the host.
    let connection = context.stranger(&context.setup.direct, ATTACKER_ADDRESS).await?;
    for account in &many.tenant.accounts {
        connection.ask_again(&read(&many, account)).await?;
    }
    let (one, all) = tokio::join!(reads(&context), reads(&many));
    let (one, all) = (one?, all?);
    context.say(format!("one account got {one} reads, many got {all}"));
    let text = format!("one account got {one} reads, many accounts of one tenant {all}");
    Ok(vec![Finding::new(all <= 2 * one, text)])
}

/// The answers that a tenant gets until the time is over.
async fn reads(context: &AttackContext) -> Result<usize> {
    let count = LANES / STREAMS;
    let connections =
        join_all((0..count).map(|_| context.stranger(&context.setup.direct, ATTACKER_ADDRESS))).await;
    let connections = Arc::new(connections.into_iter().collect::<Result<Vec<UserConnection>>>()?);
    let (each, got) = (context.clone(), Arc::new(AtomicUsize::new(0)));
    let total = got.clone();
    context
        .repeat(LANES, move |lane, round| {
            let (context, connections, got) = (each.clone(), connections.clone(), got.clone());
            async move {
                let accounts = &context.tenant.accounts;
                let ask = read(&context, &accounts[(lane + round) % accounts.len()]);
                let answer = connections[lane % count].ask(&ask).await;
                let good = answer.as_ref().is_ok_and(|answer| answer.code.is_success());
                got.fetch_add(usize::from(good), Ordering::Relaxed);
                context.note(&answer);
                answer.map(drop)
            }
        })
        .await;
    Ok(total.load(Ordering::Relaxed))
}

fn read(context: &AttackContext, account: &Account) -> UserRequest {
    UserRequest::get(context.tenant.request(&uid(0)))
        .with("authorization", format!("Bearer {}", account.token))
}
