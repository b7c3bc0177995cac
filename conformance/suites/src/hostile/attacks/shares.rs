//! A tenant with many accounts gets no larger share than one with a single account, and a load does not stop a drain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::eviction_requests::{Findings, create_requests, no_findings, request, uid};
use super::store::drained;
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::{ATTACKER_ADDRESS, AttackContext, RETRY_PAUSE};
use crate::setup::{Account, Tenant};

/// Reads at a time of each tenant; both together want more places than there are.
const LANES: usize = 400;
/// Requests at a time of the noisy user: ten times an equal share of five users.
const NOISE: usize = 540;
/// Answers of both together that are compared.
const READS: usize = 4_000;
/// Answers one after the other of which the shares are looked at.
const STRETCH: usize = 200;
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
        let took = async {
            context.is_under_way(NOISE).await?;
            drained_in(&context, &other, "noisy", pods).await
        };
        let took = took.await;
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
            let Ok(connection) = context.connect().await else {
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
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

/// Both tenants read one request, on as many streams of as many connections, until they have so many answers together. In most
/// stretches the many accounts may get twice as many as the one, which is chance; as a flow each they would get two hundred
/// times as many. Stretches without an answer for the one do not count: every ten seconds all its reads wait for one review of
/// its token, and how long the host takes for that is no share of ours.
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
    let answered = Mutex::new(Vec::new());
    let one = TenantReads::connect(&context, Reader::One, &answered).await?;
    let all = TenantReads::connect(&many, Reader::Many, &answered).await?;
    let read = async {
        let got = || answered.lock().len();
        retry(LIMIT, || format!("only {} reads are answered", got()), async || Ok(got() >= READS)).await
    };
    tokio::select! {
        read = read => read?,
        () = one.read() => {}
        () = all.read() => {}
    }
    let answered = answered.lock();
    let one = of_the_one(&answered);
    let text = format!("one account got {one} reads, many accounts of one tenant {}", answered.len() - one);
    context.say(text.clone());
    Ok(vec![Finding::new(is_shared(&answered), text)])
}

/// Who got an answer.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    One,
    Many,
}

fn of_the_one(answered: &[Reader]) -> usize {
    answered.iter().filter(|reader| **reader == Reader::One).count()
}

/// Whether the one got a third or more in the middle one of the stretches, ordered by its share, in which it got any.
fn is_shared(answered: &[Reader]) -> bool {
    let stretches = answered.chunks_exact(STRETCH).map(of_the_one);
    let mut shares: Vec<usize> = stretches.filter(|one| *one > 0).collect();
    shares.sort_unstable();
    shares.get(shares.len() / 2).is_some_and(|middle| 3 * middle >= STRETCH)
}

/// The reads of a tenant.
struct TenantReads<'c> {
    context: &'c AttackContext,
    connections: Vec<UserConnection>,
    reader: Reader,
    /// The readers of the answers so far, in their order.
    answered: &'c Mutex<Vec<Reader>>,
}

impl<'c> TenantReads<'c> {
    async fn connect(
        context: &'c AttackContext,
        reader: Reader,
        answered: &'c Mutex<Vec<Reader>>,
    ) -> Result<TenantReads<'c>> {
        let open = (0..LANES / STREAMS).map(|_| context.stranger(&context.setup.direct, ATTACKER_ADDRESS));
        let connections = join_all(open).await.into_iter().collect::<Result<_>>()?;
        Ok(TenantReads { context, connections, reader, answered })
    }

    /// Reads without an end, so many at a time, and counts the answers.
    async fn read(&self) {
        join_all((0..LANES).map(|lane| self.read_on(lane))).await;
    }

    async fn read_on(&self, lane: usize) {
        let accounts = &self.context.tenant.accounts;
        for round in 0.. {
            let ask = read(self.context, &accounts[(lane + round) % accounts.len()]);
            let answer = self.connections[lane % self.connections.len()].ask(&ask).await;
            if answer.as_ref().is_ok_and(|answer| answer.code.is_success()) {
                self.answered.lock().push(self.reader);
            }
            self.context.note(&answer);
            if answer.is_err() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

fn read(context: &AttackContext, account: &Account) -> UserRequest {
    UserRequest::get(context.tenant.request(&uid(0)))
        .with("authorization", format!("Bearer {}", account.token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stretch in which the one got so many answers.
    fn stretch(one: usize) -> Vec<Reader> {
        (0..STRETCH).map(|at| if at < one { Reader::One } else { Reader::Many }).collect()
    }

    #[test]
    fn a_review_of_the_one_token_does_not_count_as_a_share_of_the_many() {
        assert!(is_shared(&[stretch(90), stretch(0), stretch(0), stretch(0), stretch(80)].concat()));
    }

    #[test]
    fn a_flow_for_each_account_is_found() {
        assert!(!is_shared(&[stretch(1), stretch(0), stretch(2), stretch(1)].concat()));
        assert!(!is_shared(&[stretch(66), stretch(66), stretch(66), stretch(100)].concat()));
        assert!(!is_shared(&stretch(0)));
    }
}
