//! The subcommand `end-turns`: ends the turns of the interceptors that the pods of one maintenance name, with the rights of the
//! user of a kubeconfig.
//!
//! ```text
//!   watch of EvictionRequests ──▶ turn: whose turn it is ──▶ completionTime in that entry
//!            ▲                                                         │
//!            └──── the eviction controller gives the next turn ◀───────┘   until a default interceptor is next
//! ```
//!
//! A pod is followed by the UID, the node and the type that the controller has written into its request: annotations of a
//! request say for which maintenance it was made, and a tenant may write them.

mod follower;
mod turn;

use std::io::{self, Write};

use anyhow::{Context, bail, ensure};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_api::text::{cut, one_line};
use drydock_runtime::cache::api;
use drydock_runtime::find;
use drydock_serving::host;
use kube::Client;

use crate::flags::EndTurnsFlags;
use follower::TurnFollower;
use turn::DrainScope;

/// Most characters of a line.
const MAX_LINE: usize = 600;

/// A line for the person who runs the command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EndTurnsLine {
    /// A turn that was ended, or in a dry run one that would be.
    Change(String),
    /// Something that could not be done.
    Problem(String),
}

/// Ends the turns of the pods of the maintenance that the flags name. Changes go to stdout, a line each; all else to stderr.
///
/// # Errors
/// No cluster is named, there is no such maintenance in stage Drain, or not all turns were ended.
pub async fn run(flags: &EndTurnsFlags) -> anyhow::Result<()> {
    let (file, context) = (flags.person.kubeconfig.as_deref(), flags.person.context.as_deref());
    let config = host::config_of_person("--kubeconfig", file, context).await?;
    let cluster = config.cluster_url.to_string();
    let client = host::client_of_person(config)?;
    let name = &flags.maintenance;
    say(&format!("ending the turns of interceptors of the pods of NodeMaintenance {name} at {cluster}"));
    let count = end_turns(&client, name, flags.dry_run, &mut print).await?;
    say(&match (flags.dry_run, count) {
        (true, _) => {
            format!("turns that would be ended: {count}; nothing was changed: run it without --dry-run")
        }
        (false, 0) => "no interceptor of these pods had a turn".to_owned(),
        (false, _) => {
            format!("turns ended: {count}; pods that are asked to leave later keep theirs: run it again then")
        }
    });
    Ok(())
}

/// Ends the turns; returns their number. Each line is safe for a terminal.
async fn end_turns(
    client: &Client,
    name: &str,
    is_dry_run: bool,
    to: &mut dyn FnMut(EndTurnsLine),
) -> anyhow::Result<usize> {
    let found = find(&api::<NodeMaintenance>(client, ""), name).await;
    let found = found.with_context(|| format!("reading NodeMaintenance {name}"))?;
    let Some(drain) = found.map(|found| found.object) else { bail!("there is no NodeMaintenance {name}") };
    ensure!(
        drain.spec.stage == NodeMaintenanceStage::Drain,
        "NodeMaintenance {name} is in stage {}: only one in stage Drain asks pods to leave",
        drain.spec.stage.as_str()
    );
    let mut follower = TurnFollower::new(client, DrainScope::of(&drain), is_dry_run, to);
    follower.follow().await?;
    match follower.problems() {
        0 => Ok(follower.ended()),
        problems => bail!("not all turns were ended, see the lines above (problems: {problems})"),
    }
}

/// A text of the cluster, without what moves the cursor of a terminal.
fn safe(text: &str) -> String {
    cut(&one_line(text), MAX_LINE)
}

/// A closed pipe ends nothing.
fn print(line: EndTurnsLine) {
    let _ = match line {
        EndTurnsLine::Change(text) => writeln!(io::stdout(), "{text}"),
        EndTurnsLine::Problem(text) => writeln!(io::stderr(), "error: {text}"),
    };
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "==> {}", safe(text));
}

#[cfg(test)]
mod tests;
