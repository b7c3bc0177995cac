//! The playground: a cluster with work on it, one maintenance from start to end, and a judgement of it.
//!
//! ```text
//! this process       host, Drydock, workload, the interceptor, the maintenance, the display
//! observer process   watches pods and budgets, and knows nothing of the rest (drydock_testkit::observer)
//!
//! workload, interceptor, maintenance, display   what runs, and what is shown
//! faults, writes                                servers that are killed, and what was acknowledged meanwhile
//! stream                                        clients of the status stream
//! history, order, evictions, verdict            what the host's audit log says, and what must be true of it
//! ```

mod display;
mod evictions;
mod faults;
mod history;
mod interceptor;
mod maintenance;
mod order;
mod stream;
mod verdict;
mod writes;

pub mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use drydock_testkit::cluster;
use drydock_testkit::drydock::{Drydock, Options, StorageChoice, open_to_users};
use drydock_testkit::finding::{self, Finding};
use drydock_testkit::host::{TestHost, client_of};
use drydock_testkit::observer::ObserverProcess;

use crate::faults::{Chaos, ServerFaults};
use crate::interceptor::PlaygroundInterceptor;
use crate::maintenance::{Maintenance, SeenStatus};
use crate::stream::StreamClients;
use crate::writes::Writers;

/// What the command line asks for.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Run the maintenance, judge it, clean up, and exit.
    #[arg(long)]
    pub once: bool,
    /// Where Drydock keeps its objects.
    #[arg(long, value_enum, default_value_t)]
    pub storage: StorageChoice,
    /// How many nodes the cluster has.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(12..=200))]
    pub nodes: u16,
    /// Kill servers in the middle of the drain, again and again.
    #[arg(long, value_enum, value_name = "WHOSE", requires = "once")]
    pub chaos: Option<Chaos>,
    /// Start this client of the status stream before the maintenance, and judge its last line; may be given again.
    #[arg(long = "stream-client", value_name = "COMMAND", requires = "once", conflicts_with = "chaos")]
    pub stream_clients: Vec<String>,
    /// Break a budget on purpose: the run must then fail.
    #[arg(long, hide = true)]
    pub inject_violation: bool,
}

/// Nodes under maintenance.
const MAINTAINED: usize = 4;

/// Runs the playground until it is judged, or until Ctrl-C.
pub async fn run(arguments: Arguments) -> Result<ExitCode> {
    tokio::select! {
        result = scenario(&arguments) => result,
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            eprintln!("stopping");
            Ok(ExitCode::from(130))
        }
    }
}

async fn scenario(arguments: &Arguments) -> Result<ExitCode> {
    let drydock = start(arguments).await?;
    let host = &drydock.host;
    let (names, client) = (cluster_with_work(host, arguments.nodes).await?, host.client().await?);
    let maintained = names.get(..MAINTAINED).context("too few nodes")?.to_vec();
    // One of them is cordoned by a person beforehand and has to stay so.
    let cordoned = maintained.last().cloned().context("no node")?;
    host.kubectl(&["cordon", &cordoned])?;
    workload::mark(host, &maintained)?;
    if arguments.chaos.is_some() {
        workload::hold(host, maintained.first().context("no node")?)?;
    }

    let observer = ObserverProcess::start(&playground_program()?, &host.admin(), workload::NAMESPACE)?;
    let interceptor_config = host.kubeconfig(interceptor::USER, &[])?;
    let interceptor = PlaygroundInterceptor::start(client_of(&interceptor_config).await?);
    if arguments.inject_violation {
        workload::inject_violation(host, "web")?;
    }
    let maintenance = Maintenance::new(client.clone(), maintained, cordoned);
    let stream_clients = StreamClients::start(&drydock, &arguments.stream_clients)?;
    let before = workload::places(&client).await?;
    say(&format!("a NodeMaintenance drains {}", maintenance.nodes.join(", ")));
    let (seen, mut verdict) = match arguments.chaos {
        None => (maintenance.drain().await?, Vec::new()),
        Some(chaos) => drain_in_chaos(&drydock, chaos, &maintenance).await?,
    };
    verdict.extend(verdict::after_drain(host, &client, &maintenance).await?);
    say("drained; the maintenance moves to Complete");
    maintenance.complete().await?;
    verdict.extend(verdict::after_completion(&client, &maintenance).await?);
    verdict.extend(verdict::of_the_way(&drydock, &maintenance, &seen, &interceptor, &before).await?);
    verdict.extend(stream_clients.finish(&maintenance).await?);
    verdict.extend(observer.finish()?);
    let failed = finding::print(&verdict);
    if arguments.once {
        return Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    stay(&drydock).await
}

/// Drains while servers are killed and while others write: what was acknowledged to them must be there afterwards.
async fn drain_in_chaos(
    drydock: &Drydock,
    chaos: Chaos,
    maintenance: &Maintenance,
) -> Result<(SeenStatus, Vec<Finding>)> {
    let (direct, aggregated) = (drydock.direct().await?, drydock.host.client().await?);
    let writers = Writers::start([direct.clone(), aggregated.clone(), direct.clone(), aggregated]);
    let (seen, mut findings) = ServerFaults::new(drydock, chaos).during(maintenance.drain()).await?;
    findings.extend(writers.finish(direct).await?);
    Ok((seen, findings))
}

async fn start(arguments: &Arguments) -> Result<Drydock> {
    say("starting etcd, kube-apiserver, controller manager, scheduler and kwok");
    let host = TestHost::start().await?;
    say(&format!("starting Drydock on {:?}; logs are in {}/logs", arguments.storage, host.dir.display()));
    let options =
        Options { storage: arguments.storage, standby: arguments.chaos.is_some(), ..Options::default() };
    let drydock = Drydock::start(host, options).await?;
    open_to_users(&drydock.host)?;
    Ok(drydock)
}

async fn cluster_with_work(host: &TestHost, nodes: u16) -> Result<Vec<String>> {
    say(&format!("creating {nodes} nodes and their workloads"));
    let names = cluster::create_nodes(&host.client().await?, "node", nodes.into()).await?;
    workload::create(host).with_context(|| host.processes.ended_processes())?;
    Ok(names)
}

async fn stay(drydock: &Drydock) -> Result<ExitCode> {
    let host = &drydock.host;
    println!("\nThe cluster stays until Ctrl-C. In another terminal:\n");
    println!("    export KUBECONFIG={}", host.admin().display());
    println!("    export PATH={}:$PATH", host.bin.display());
    println!("    kubectl get nodemaintenances; kubectl get evictionrequests -n demo\n");
    println!("Metrics, for a service account with the ClusterRole drydock:metrics:\n");
    println!(
        "    curl --insecure -H \"Authorization: Bearer $(kubectl create token NAME)\" {}/metrics",
        drydock.manager_url()?
    );
    std::future::pending().await
}

fn playground_program() -> Result<PathBuf> {
    std::env::current_exe().context("this program does not know where it is")
}

fn say(what: &str) {
    eprintln!("==> {what}");
}
