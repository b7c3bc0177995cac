//! Clients in a closed loop: each has one operation on its way at a time.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::task::LocalSet;

/// When a load ends: at whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimit {
    /// Most operations of all clients together.
    pub operations: u64,
    /// Longest time.
    pub time: Duration,
}

/// What clients saw.
pub struct ClientLoad {
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

impl ClientLoad {
    /// A percentile in microseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        self.latency.value_at_percentile(percent) as f64 / 1000.0
    }
}

/// Lets `clients` repeat `operation(client, number)`; numbers are given out once. The first error ends it all.
pub async fn drive<F, R>(clients: usize, limit: LoadLimit, operation: F) -> Result<ClientLoad>
where
    F: Fn(usize, u64) -> R + Clone + 'static,
    R: Future<Output = Result<()>> + 'static,
{
    let local = LocalSet::new();
    local.run_until(run(clients, limit, operation)).await
}

async fn run<F, R>(clients: usize, limit: LoadLimit, operation: F) -> Result<ClientLoad>
where
    F: Fn(usize, u64) -> R + Clone + 'static,
    R: Future<Output = Result<()>> + 'static,
{
    let (next, began) = (Rc::new(Cell::new(0)), Instant::now());
    let mut tasks = Vec::with_capacity(clients);
    for client in 0..clients {
        let (next, operation) = (next.clone(), operation.clone());
        tasks.push(tokio::task::spawn_local(async move {
            let mut latency = Histogram::<u64>::new(3)?;
            while next.get() < limit.operations && began.elapsed() < limit.time {
                let number = next.replace(next.get() + 1);
                let sent = Instant::now();
                operation(client, number).await?;
                latency.record(u64::try_from(sent.elapsed().as_nanos())?)?;
            }
            anyhow::Ok(latency)
        }));
    }
    let mut latency = Histogram::new(3)?;
    for task in tasks {
        latency.add(task.await??)?;
    }
    Ok(ClientLoad { latency, elapsed: began.elapsed() })
}
