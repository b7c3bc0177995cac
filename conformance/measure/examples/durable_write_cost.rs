//! Measures what a durable write costs: `durable_write_cost FOLDER` measures the embedded backend in a new file in the
//! folder, `durable_write_cost http://HOST:PORT` measures etcd. Each output line is for one number of concurrent callers,
//! each of which has one write in flight at a time. CPU is that of this process; for etcd, add the server's.

use std::io::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use drydock_storage::backend::{Backend, CompareAndSwap, Revision, WriteOutcome, prefix_range};
use drydock_storage_etcd::{EtcdBackend, EtcdConfig};
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};

/// Bytes of a value.
const VALUE: usize = 1228;
/// How long each line is measured.
const SPAN: Duration = Duration::from_secs(3);

type Store = Arc<dyn Backend>;

#[tokio::main]
async fn main() -> Result<()> {
    let target = std::env::args().nth(1).ok_or_else(|| Error::other("name a folder or an etcd URL"))?;
    let store: Store = if target.starts_with("http") {
        let config = EtcdConfig {
            servers: vec![target],
            prefix: "/durable-writes".to_owned(),
            ..EtcdConfig::default()
        };
        Arc::new(EtcdBackend::connect(&config).await.map_err(Error::other)?)
    } else {
        let path = std::path::Path::new(&target).join(format!("durable-writes-{}.db", std::process::id()));
        Arc::new(SqliteBackend::open(path, SqliteOptions::default()).map_err(Error::other)?)
    };
    println!("{:24} {:>9} {:>9} {:>9} {:>9}", "", "per s", "p50 us", "p99 us", "CPU us");
    for callers in [1, 64, 256] {
        line(&store, "create", callers, create).await?;
    }
    line(&store, "update", 64, update).await?;
    line(&store, "get", 64, get).await?;
    let began = Instant::now();
    let found = store.range(prefix_range("/create/"), 0, None).await.map_err(Error::other)?;
    println!("range of {} in {:?}", found.count, began.elapsed());
    Ok(())
}

async fn line<F, R>(store: &Store, name: &'static str, callers: usize, operation: F) -> Result<()>
where
    F: Fn(Store, usize, u64, Revision) -> R + Copy + Send + 'static,
    R: Future<Output = Result<Revision>> + Send + 'static,
{
    let (began, cpu) = (Instant::now(), cpu()?);
    let tasks: Vec<_> =
        (0..callers).map(|caller| tokio::spawn(call(store.clone(), caller, operation))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let (elapsed, cpu) = (began.elapsed(), self::cpu()?.saturating_sub(cpu));
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_micros();
    let rate = times.len() as f64 / elapsed.as_secs_f64();
    let each = cpu.as_micros() as f64 / times.len().max(1) as f64;
    println!("{name:8} {callers:>4} callers  {rate:>9.0} {:>9} {:>9} {each:>9.1}", at(50), at(99));
    Ok(())
}

async fn call<F, R>(store: Store, caller: usize, operation: F) -> Result<Vec<Duration>>
where
    F: Fn(Store, usize, u64, Revision) -> R + Send,
    R: Future<Output = Result<Revision>> + Send,
{
    let end = Instant::now() + SPAN;
    let (mut times, mut last) = (Vec::new(), Revision(0));
    for number in 0.. {
        let began = Instant::now();
        if began >= end {
            break;
        }
        last = operation(store.clone(), caller, number, last).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

async fn create(store: Store, caller: usize, number: u64, _: Revision) -> Result<Revision> {
    static FRESH: AtomicU64 = AtomicU64::new(0);
    let fresh = FRESH.fetch_add(1, Ordering::Relaxed);
    write(store, format!("/create/{}/{caller}/{number}/{fresh}", std::process::id()), None).await
}

async fn update(store: Store, caller: usize, _: u64, last: Revision) -> Result<Revision> {
    write(store, format!("/update/{}/{caller}", std::process::id()), (last > Revision(0)).then_some(last))
        .await
}

async fn get(store: Store, caller: usize, _: u64, _: Revision) -> Result<Revision> {
    let found = store.get(&format!("/update/{}/{caller}", std::process::id()), None).await;
    found.map(|(_, revision)| revision).map_err(Error::other)
}

async fn write(store: Store, key: String, expected: Option<Revision>) -> Result<Revision> {
    let value = Some(Bytes::from(vec![b'x'; VALUE]));
    match store
        .write(CompareAndSwap { key, expected, value, guard: None, priority: Default::default() })
        .await
        .map_err(Error::other)?
    {
        WriteOutcome::Committed(revision) => Ok(revision),
        WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => {
            Err(Error::other("a conflict, though every key has one writer"))
        }
    }
}

/// User and system time of this process (proc_pid_stat(5): fields 14 and 15, in ticks of 10 ms).
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
