//! `conformance/soak scale`: many EvictionRequests at once, most of them in the turn of an interceptor that does not end
//! it, some blocked by budgets. Measures what the controllers cost at that size, and how soon they see a budget open.
//!
//! ```text
//!   workload   nodes, pods, budgets, requests        turns      which requests have come how far
//!   openings   budgets that open one after another   usage      CPU and memory of our processes
//!   evictions  those in the host's audit log         report     table, goals, scale.json
//! ```

mod turns;
mod workload;

mod evictions;
mod openings;
mod usage;

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use drydock_testkit::drydock::{Drydock, Options, StorageChoice};
use drydock_testkit::host::TestHost;
use jiff::Timestamp;
use kube::Client;

use self::evictions::Evictions;
use self::openings::{BudgetWatch, Opening};
use self::report::ScaleReport;
use self::usage::Meter;
use self::workload::ScaleWorkload;

/// Keeps many EvictionRequests live on a real Kubernetes control plane, and measures what they cost our programs.
#[derive(Clone, Debug, Parser)]
#[command(name = "scale")]
struct Arguments {
    /// EvictionRequests, each for a pod of its own
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// How many of them are blocked by budgets, in 20 namespaces of the same size
    #[arg(long, default_value_t = 2_000)]
    blocked: usize,
    /// How many times a budget lets a pod go, one after another
    #[arg(long, default_value_t = 200)]
    openings: usize,
    /// Reports of interceptors that are written and measured
    #[arg(long, default_value_t = 2_000)]
    changes: usize,
    /// Seconds without changes that are measured
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// Where our API server keeps its objects
    #[arg(long, value_enum, value_name = "STORE", default_value = "sqlite")]
    storage: StorageChoice,
    /// Where scale.json goes
    #[arg(long, value_name = "DIR", default_value = "conformance/out")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    tokio::select! {
        result = run(&arguments) => result,
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            eprintln!("stopping");
            Ok(ExitCode::from(130))
        }
    }
}

/// Fails if a pod was evicted twice, or one of an interceptor that has not ended its turn.
async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { requests, blocked, openings, .. } = arguments;
    ensure!(blocked % workload::BUDGETS == 0, "--blocked: a multiple of {}", workload::BUDGETS);
    ensure!(blocked <= requests, "--blocked: at most --requests");
    ensure!(openings < blocked, "--openings: fewer than --blocked");
    let host = TestHost::start_auditing_programs().await?;
    // Longer than any run: the interceptor of held pods keeps its turns.
    let heartbeat_deadline = Some("240h".to_owned());
    let options = Options { storage: arguments.storage, heartbeat_deadline, ..Options::default() };
    let drydock = Drydock::start(host, options).await?;
    let report = measure(&drydock, arguments).await?;
    report.write(&arguments.out)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(drydock: &Drydock, arguments: &Arguments) -> Result<ScaleReport> {
    let (host, direct) = (drydock.host.client().await?, drydock.direct().await?);
    let meter = Meter::of(drydock)?;
    let began = Instant::now();
    let mut workload = ScaleWorkload::create(&host, arguments.requests, arguments.blocked).await?;
    let pods_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    workload.request(&direct).await?;
    let created_seconds = began.elapsed().as_secs_f64();
    turns::reached(&direct, &workload).await?;
    let filled = meter.now().await?;
    eprintln!("==> filled: pods {pods_seconds:.0} s, requests {created_seconds:.0} s, {filled}");
    let turns_seconds = began.elapsed().as_secs_f64();

    let idle = meter.while_doing("nothing", async {
        tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
        Ok(())
    });
    let idle = idle.await?;
    let reports = turns::report(&direct, &workload, arguments.changes);
    let changes = meter.while_doing("reports of interceptors", reports).await?;
    let list_seconds = list(&direct).await?;
    let request_bytes = turns::bytes_each(&direct).await?;

    let mut budgets = BudgetWatch::start(&host);
    let mut opened = Vec::new();
    let opening = openings::all(&host, &mut workload, &mut budgets, arguments.openings, &mut opened);
    let opening = meter.while_doing("budgets that open", opening).await?;
    opened.push(restart(drydock, &host, &mut workload, &mut budgets).await?);

    let evictions = Evictions::read(&drydock.host.audit_log())?;
    let mut seconds = evictions.seconds_after(&opened)?;
    let restart_seconds = seconds.pop().context("no opening")?;
    let mut latencies: Vec<f64> = seconds.into_iter().map(|seconds| 1000.0 * seconds).collect();
    latencies.sort_by(f64::total_cmp);
    Ok(ScaleReport {
        requests: arguments.requests,
        blocked: arguments.blocked,
        pods_seconds,
        created_seconds,
        turns_seconds,
        filled,
        idle,
        changes: (arguments.changes, changes),
        list_seconds,
        request_bytes,
        openings: (arguments.openings, opening),
        latencies,
        restart_seconds,
        twice: evictions.twice(),
        of_held_pods: evictions.of(&workload.held),
    })
}

/// Seconds that a list of all requests takes, whole and in pages of 500.
async fn list(direct: &Client) -> Result<[f64; 2]> {
    let mut seconds = [0.0; 2];
    for (seconds, limit) in seconds.iter_mut().zip([None, Some(500)]) {
        let began = Instant::now();
        turns::list(direct, limit).await?;
        *seconds = began.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

/// Ends the controller manager, lets a budget open meanwhile, and starts it again. Returns when, and which budget.
async fn restart(
    drydock: &Drydock,
    host: &Client,
    workload: &mut ScaleWorkload,
    budgets: &mut BudgetWatch,
) -> Result<Opening> {
    drydock.stop_manager().await?;
    let guarded = &mut workload.guarded[0];
    openings::lower(host, guarded).await?;
    budgets.is_open(guarded).await?;
    let opening = Opening { namespace: guarded.namespace.clone(), at: Timestamp::now() };
    drydock.start_manager().await?;
    budgets.is_closed(guarded).await?;
    Ok(opening)
}
