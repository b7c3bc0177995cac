//! The playground: a cluster with work on it, one maintenance from start to end, and a judgement of it.
//!
//! ```text
//! this process       host, Drydock, workload, the interceptor, the maintenance, the screen
//! observer process   watches pods and budgets, and knows nothing of the rest (drydock_testkit::observer)
//!
//! workload, interceptor, maintenance            what runs
//! screen, drain_view, display, judgement, hints what is shown
//! faults, writes                                servers that are killed, and what was acknowledged meanwhile
//! stream                                        clients of the status stream
//! history, order, evictions, verdict            what the host's audit log says, and what must be true of it
//! ```

mod display;
mod drain_view;
mod evictions;
mod faults;
mod hints;
mod history;
mod interceptor;
mod judgement;
mod maintenance;
mod order;
mod screen;
mod stream;
mod verdict;
mod writes;

pub mod workload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use drydock_api::text::counted;
use drydock_testkit::cluster;
use drydock_testkit::drydock::{Drydock, Options, StorageChoice, open_to_users};
use drydock_testkit::finding::Finding;
use drydock_testkit::host::{StartPhase, TestHost, client_of};
use drydock_testkit::observer::ObserverProcess;
use kube::Client;

use crate::faults::{Chaos, ServerFaults};
use crate::interceptor::PlaygroundInterceptor;
use crate::maintenance::{Maintenance, SeenStatus};
use crate::screen::{Screen, ShownStep};
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
    let screen = Screen::stderr();
    let scenario = std::pin::pin!(scenario(&screen, &arguments));
    tokio::select! {
        result = scenario => result,
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            screen.say("stopping");
            Ok(ExitCode::from(130))
        }
    }
}

async fn scenario(screen: &Screen, arguments: &Arguments) -> Result<ExitCode> {
    let drydock = start(screen, arguments).await?;
    let host = &drydock.host;
    let (names, client) = (cluster_with_work(screen, host, arguments.nodes).await?, host.client().await?);
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
    announce(screen, &maintenance);
    let (seen, mut verdict) = match arguments.chaos {
        None => (maintenance.drain(screen).await?, Vec::new()),
        Some(chaos) => drain_in_chaos(screen, &drydock, chaos, &maintenance).await?,
    };
    verdict.extend(complete(screen, host, &client, &maintenance).await?);
    verdict.extend(verdict::of_the_way(screen, &drydock, &maintenance, &seen, &interceptor, &before).await?);
    verdict.extend(stream_clients.finish(screen, &maintenance).await?);
    verdict.extend(observer.finish()?);
    let all_hold = judgement::show(screen, &verdict);
    if arguments.once {
        return Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    stay(&drydock, names.get(MAINTAINED..MAINTAINED + 2).unwrap_or_default()).await
}

fn announce(screen: &Screen, maintenance: &Maintenance) {
    screen.say(&format!("a NodeMaintenance drains {}", maintenance.nodes.join(", ")));
    let checkpoint = interceptor::LONG.as_secs();
    screen.note(&format!(
        "The interceptor of {} takes {checkpoint} s for its first pod.",
        evictions::INTERCEPTED
    ));
}

/// Drains while servers are killed and while others write: what was acknowledged to them must be there afterwards.
async fn drain_in_chaos(
    screen: &Screen,
    drydock: &Drydock,
    chaos: Chaos,
    maintenance: &Maintenance,
) -> Result<(SeenStatus, Vec<Finding>)> {
    let (direct, aggregated) = (drydock.direct().await?, drydock.host.client().await?);
    let writers = Writers::start([direct.clone(), aggregated.clone(), direct.clone(), aggregated]);
    let faults = ServerFaults::new(drydock, screen, chaos);
    let (seen, mut findings) = faults.during(maintenance.drain(screen)).await?;
    findings.extend(writers.finish(direct).await?);
    Ok((seen, findings))
}

/// Moves the maintenance to Complete. Judges the cluster before and after that.
async fn complete(
    screen: &Screen,
    host: &TestHost,
    client: &Client,
    maintenance: &Maintenance,
) -> Result<Vec<Finding>> {
    screen.say("completing the maintenance, and judging it");
    let step = screen.begin("evicted pods are ready elsewhere");
    let mut findings = verdict::after_drain(host, client, maintenance).await?;
    step.done();
    let step = screen.begin("nodes are schedulable again");
    maintenance.complete().await?;
    findings.extend(verdict::after_completion(client, maintenance).await?);
    step.done();
    Ok(findings)
}

async fn start(screen: &Screen, arguments: &Arguments) -> Result<Drydock> {
    screen.say("starting a Kubernetes control plane");
    let steps = Mutex::new(BTreeMap::new());
    let host = TestHost::start_reporting(&|program, phase| {
        let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        match phase {
            StartPhase::Started => drop(steps.insert(program.to_owned(), screen.begin(program))),
            StartPhase::Serves => steps.remove(program).into_iter().for_each(ShownStep::done),
        }
    })
    .await?;
    screen.say(&format!("starting Drydock on {}", arguments.storage));
    screen.note(&format!("Logs are in {}/logs.", host.dir.display()));
    let options =
        Options { storage: arguments.storage, standby: arguments.chaos.is_some(), ..Options::default() };
    let step = screen.begin("drydock-apiserver, -controller-manager");
    let drydock = Drydock::start(host, options).await?;
    open_to_users(&drydock.host)?;
    step.done();
    Ok(drydock)
}

async fn cluster_with_work(screen: &Screen, host: &TestHost, nodes: u16) -> Result<Vec<String>> {
    screen.say("filling the cluster with work");
    let step = screen.begin(counted(nodes, "node", "nodes"));
    let names = cluster::create_nodes(&host.client().await?, "node", nodes.into()).await?;
    step.done();
    let created = workload::apply(host);
    created.with_context(|| host.processes.ended_processes())?;
    for rollout in workload::ROLLOUTS {
        let step = screen.begin(rollout);
        workload::wait_for(host, rollout).with_context(|| host.processes.ended_processes())?;
        step.done();
    }
    Ok(names)
}

async fn stay(drydock: &Drydock, next: &[String]) -> Result<ExitCode> {
    let host = &drydock.host;
    let second = host.dir.join("second.yaml");
    std::fs::write(&second, hints::second_maintenance(next))?;
    let (admin, metrics) = (host.admin(), drydock.manager_url()?);
    print!("{}", hints::hints(&admin, &host.bin, &second, maintenance::NAME, &metrics));
    std::future::pending().await
}

fn playground_program() -> Result<PathBuf> {
    std::env::current_exe().context("this program does not know where it is")
}
