//! Clients that send random requests, each by a seed of its own.

pub mod bytes;
pub mod compactor;
pub mod full_watch;
pub mod http;
pub mod http_watch;
pub mod notes;
pub mod typed;
pub mod watcher;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use crate::context::HistoryContext;
use crate::object;
use crate::record::Rev;

/// Which layer a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Store,
    Cache,
}

/// Starts all clients; they end when it is over.
pub fn start(context: &Arc<HistoryContext>, seed: u64) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let mut rng = rngs(seed);
    for which in 0..3 {
        tasks.spawn(bytes::run(context.clone(), which, rng()));
        tasks.spawn(watcher::bytes(context.clone(), which, rng()));
    }
    for which in 0..2 {
        for layer in [Layer::Store, Layer::Cache] {
            tasks.spawn(typed::run(context.clone(), which, layer, rng()));
            tasks.spawn(watcher::typed(context.clone(), which, layer, rng()));
        }
    }
    tasks.spawn(compactor::run(context.clone(), rng()));
    tasks
}

/// A source of chance for each client.
pub fn rngs(seed: u64) -> impl FnMut() -> StdRng {
    let mut client = 0_u64;
    move || {
        client += 1;
        StdRng::seed_from_u64(seed ^ (client << 32))
    }
}

/// A key below the prefix.
pub fn any_key(rng: &mut StdRng) -> String {
    let keys = object::keys();
    keys[rng.random_range(0..keys.len())].clone()
}

/// The version to expect: the one that was seen last, or for one in eight some other.
pub fn expected(context: &HistoryContext, key: &str, rng: &mut StdRng) -> Option<Rev> {
    let known = context.known(key);
    match rng.random_range(0..16) {
        0 => None,
        1 => known.map(|known| known.saturating_sub(rng.random_range(1..20)).max(1)),
        _ => known,
    }
}

/// One of the last few revisions that a client has received.
pub fn recent(context: &HistoryContext, rng: &mut StdRng) -> Rev {
    let newest = context.recorder.newest();
    newest.saturating_sub(rng.random_range(0..60)).max(1)
}
