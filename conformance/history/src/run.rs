//! One run: clients and faults for a while, then all that happened is checked.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use drydock_storage::backend::prefix_range;
use drydock_storage::storage::{PageOptions, ReadAt, Scope, UnlimitedMemory};
use drydock_testkit::wait::{LIMIT, until_some};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::check::{CheckCounts, FoundFaults, check, counts};
use crate::context::HistoryContext;
use crate::inject::FaultKind;
use crate::object::{self, PREFIX};
use crate::place::StorePlace;
use crate::place::servers::Servers;
use crate::record::{History, Moment, Pair, RecordedOperation, Rev};
use crate::work::{self, full_watch, http, typed::pair_of};

/// Most operations of one run: what is checked has to end.
const MOST_OPERATIONS: usize = 60_000;
/// Least operations of a run with an injected fault: a busy machine takes longer for them.
const LEAST_OPERATIONS: usize = 4_000;

/// What one run is.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seed: u64,
    pub length: Duration,
    pub injected: Option<FaultKind>,
    /// Whether a read that failed at its deadline is a fault.
    pub judges_deadlines: bool,
}

/// Runs clients of storage itself and checks; returns what was found and how much was checked.
pub async fn run(place: Arc<dyn StorePlace>, options: Options) -> Result<(FoundFaults, CheckCounts)> {
    let context = HistoryContext::open(place, PREFIX, options.injected, options.judges_deadlines).await?;
    let clients = work::start(&context, options.seed);
    observed(&context, options, clients, faults(&context, options.seed), async {
        for which in 0..context.place.servers() {
            context.restart(which).await?;
            final_read(&context, which).await?;
        }
        Ok(())
    })
    .await
}

/// The same by clients of real API servers.
pub async fn run_servers(
    place: Arc<dyn StorePlace>,
    servers: Arc<Servers>,
    options: Options,
) -> Result<(FoundFaults, CheckCounts)> {
    let context = HistoryContext::open(place, http::PREFIX, None, options.judges_deadlines).await?;
    let clients = http::start(&context, &servers, work::rngs(options.seed));
    let made = server_faults(&context, &servers, options.seed);
    observed(&context, options, clients, made, async {
        for which in 0..servers.count() {
            servers.ready(which).await?;
            http::HttpAsker { context: &context, servers: &servers, which }.read_all().await?;
        }
        read_bytes(&context, 0).await
    })
    .await
}

/// Lets clients ask while faults are made, under a watch that sees everything; reads everything once more, and checks.
async fn observed(
    context: &Arc<HistoryContext>,
    options: Options,
    mut clients: JoinSet<()>,
    faults: impl Future<Output = Result<()>>,
    final_read: impl Future<Output = Result<()>>,
) -> Result<(FoundFaults, CheckCounts)> {
    if context.place.survives() {
        context.recorder.survives();
    }
    let enough = CancellationToken::new();
    let full_watch = tokio::spawn(full_watch::run(context.clone(), enough.clone()));
    tokio::select! {
        result = faults => result.context("a fault could not be made")?,
        () = length(context, options) => {}
        () = full(context) => {}
    }
    // A fault that was interrupted may have been the loss of a majority.
    context.recorder.interrupted();
    context.place.mend().await?;
    context.over.cancel();
    while let Some(ended) = clients.join_next().await {
        ended.context("a client failed")?;
    }
    final_read.await?;
    let late = catch_up(context).await;
    enough.cancel();
    full_watch.await.context("the full watch failed")?;
    let history = context.recorder.finish();
    let (mut faults, counts) = tokio::task::spawn_blocking(move || judged(history)).await?;
    faults.0.extend(late.err().map(|error| error.to_string()));
    Ok((faults, counts))
}

fn judged(history: History) -> (FoundFaults, CheckCounts) {
    (check(&history), counts(&history))
}

/// Takes servers down and makes the store's own faults, until it is cancelled.
async fn faults(context: &HistoryContext, seed: u64) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.random_range(50..1_500))).await;
        if rng.random_ratio(1, 3) || !place_fault(context, &mut rng).await? {
            context.restart(rng.random_range(0..context.place.servers())).await?;
            context.recorder.count("servers restarted");
        }
    }
}

/// Kills API servers and makes the store's own faults, until it is cancelled.
async fn server_faults(context: &HistoryContext, servers: &Servers, seed: u64) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.random_range(50..1_500))).await;
        if rng.random_ratio(1, 6) {
            servers.restart(rng.random_range(0..servers.count())).await?;
            context.recorder.count("API servers killed");
        } else {
            place_fault(context, &mut rng).await?;
        }
    }
}

async fn place_fault(context: &HistoryContext, rng: &mut StdRng) -> Result<bool> {
    let made = context.place.fault(rng, &context.recorder).await?;
    made.into_iter().for_each(|what| context.recorder.count(what));
    Ok(made.is_some())
}

/// Waits until the run is long enough.
async fn length(context: &HistoryContext, options: Options) {
    tokio::time::sleep(options.length).await;
    while options.injected.is_some() && context.recorder.len() < LEAST_OPERATIONS {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn full(context: &HistoryContext) {
    while context.recorder.len() < MOST_OPERATIONS {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Reads everything once more, by each layer of a server that was just opened.
async fn final_read(context: &HistoryContext, which: usize) -> Result<()> {
    read_bytes(context, which).await?;
    let server = context.server(which).await;
    for storage in [&server.store, &server.cache] {
        let called = context.recorder.stamp();
        let options = PageOptions { at: ReadAt::Latest, limit: 0, start: None };
        let page = at_last(async || {
            let listed = storage.list(&Scope::all(), &options, &mut UnlimitedMemory).await;
            listed.map_err(|error| error.to_string())
        });
        let page = page.await?;
        let found = page.items.iter().map(|stored| pair_of(&stored)).collect();
        record_read(context, called, found, page.revision.0);
    }
    Ok(())
}

async fn read_bytes(context: &HistoryContext, which: usize) -> Result<()> {
    let server = context.server(which).await;
    let called = context.recorder.stamp();
    let all = at_last(async || {
        let read = server.backend.range(prefix_range(context.prefix), 0, None).await;
        read.map_err(|error| error.to_string())
    });
    let all = all.await?;
    let found = all.items.iter().map(object::pair).collect::<Result<Vec<_>>>()?;
    record_read(context, called, found, all.revision.0);
    Ok(())
}

/// Reads until there is an answer: all members are well, but they may be slow.
async fn at_last<T>(read: impl AsyncFn() -> Result<T, String>) -> Result<T> {
    let last = RefCell::new(String::new());
    let late = || format!("the final read is not answered: {}", last.borrow());
    until_some(LIMIT, late, async || match read().await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => {
            last.replace(error);
            Ok(None)
        }
    })
    .await
}

fn record_read(context: &HistoryContext, called: Moment, found: Vec<Pair>, revision: Rev) {
    context.recorder.reached(revision);
    let keys = prefix_range(context.prefix);
    let what = RecordedOperation::Range { keys, found, revision, latest: true, least: 0, whole: true };
    context.recorder.op("the final read", called, what);
}

/// Waits until the full watch has everything.
async fn catch_up(context: &HistoryContext) -> Result<()> {
    let newest = context.recorder.newest();
    let reached = async {
        while context.observed() < newest {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(LIMIT, reached).await.is_err() {
        bail!("the watch of everything stands at {} and never came to {newest}", context.observed());
    }
    Ok(())
}
