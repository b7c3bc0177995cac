//! Turns the status of a maintenance into text, without I/O: a table of nodes for a terminal, and a line for each change
//! for a pipe.

use std::collections::BTreeMap;

use drydock_api::node_maintenance::{
    Blocker, DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceOutcomes, PodType,
};
use drydock_api::reasons::POD_DISRUPTION_BUDGET;
use drydock_api::text::{counted, cut};

use super::screen::{Span, Tone};

const TITLES: [&str; 7] = ["NODE", "PODS", "LEFT", "LEAVING", "BLOCKED", "TIER", "STATE"];
/// Characters between two columns, and before the first.
const GAP: usize = 2;
/// From this width on the bars are long.
const WIDE: usize = 100;
/// The least width of the last column, on any terminal.
const LEAST_STATE: usize = 8;

/// A maintenance, as far as its statuses have told.
#[derive(Debug, Default)]
pub struct DrainView {
    name: String,
    /// By name. Nodes stay when the status no longer has them.
    nodes: BTreeMap<String, NodeProgress>,
    /// The index of the tier that is drained, and how many there are.
    position: Option<(usize, usize)>,
    outcomes: NodeMaintenanceOutcomes,
}

/// One node.
#[derive(Debug, Default)]
struct NodeProgress {
    /// The most pods that the node had.
    most: u64,
    /// Its part of the last status; `None` if the status does not have the node.
    status: Option<NodeMaintenanceNodeStatus>,
    /// The last line about it.
    line: String,
}

impl DrainView {
    /// Shows these nodes even before the status has them.
    pub fn new(name: &str, nodes: &[String]) -> DrainView {
        let nodes = nodes.iter().map(|node| (node.clone(), NodeProgress::default())).collect();
        DrainView { name: name.to_owned(), nodes, ..DrainView::default() }
    }

    /// Takes a new state of the maintenance. Returns a line for each node that changed.
    pub fn update(&mut self, current: &NodeMaintenance) -> Vec<String> {
        let status = &current.status;
        self.outcomes = status.outcomes.clone();
        self.position = status
            .drain_plan_position
            .and_then(|at| usize::try_from(at).ok())
            .map(|at| (at, current.spec.drain_plan.len()));
        // Before the controller has written a status, no node has left it.
        if !status.node_statuses.is_empty() || status.gone_nodes.drained > 0 {
            self.nodes.values_mut().for_each(|node| node.status = None);
        }
        for node in &status.node_statuses {
            let progress = self.nodes.entry(node.node_ref.name.clone()).or_default();
            progress.most = progress.most.max(left(node));
            progress.status = Some(node.clone());
        }
        self.nodes.iter_mut().filter_map(|(name, node)| node.changed(name)).collect()
    }

    /// The first line: the maintenance, its tier, and how many pods are left.
    pub fn title(&self) -> String {
        let now: u64 = self.statuses().map(left).sum();
        let most: u64 = self.nodes.values().map(|node| node.most).sum();
        let mut parts = vec![format!("NodeMaintenance {}", self.name)];
        if self.is_drained() {
            parts.push("drained".to_owned());
        } else {
            parts.extend(self.position.map(|(at, all)| format!("tier {} of {all}", at + 1)));
            parts.extend((most > 0).then(|| format!("{now} of {} left", counted(most, "pod", "pods"))));
        }
        parts.join(" · ")
    }

    fn is_drained(&self) -> bool {
        self.statuses().next().is_some() && self.statuses().all(is_drained)
    }

    fn statuses(&self) -> impl Iterator<Item = &NodeMaintenanceNodeStatus> {
        self.nodes.values().filter_map(|node| node.status.as_ref())
    }

    /// The table, each line at most `width` characters long.
    pub fn table(&self, width: usize) -> Vec<Vec<Span>> {
        let bar = if width < WIDE { 10 } else { 24 };
        let mut rows = vec![TITLES.map(|title| vec![Span::new(Tone::Faint, title)])];
        rows.extend(self.nodes.iter().map(|(name, node)| node.cells(name, bar)));
        lay_out(rows, width)
    }

    /// How many pods have left, and what else has become of requests.
    pub fn outcome(&self) -> String {
        let most: u64 = self.nodes.values().map(|node| node.most).sum();
        let nodes = counted(self.nodes.len() as u64, "node", "nodes");
        let mut parts = vec![format!("{} left {nodes}", counted(most, "pod has", "pods have"))];
        let outcomes = &self.outcomes;
        if outcomes.returned > 0 {
            parts.push(format!("workloads put {} back", counted(outcomes.returned, "pod", "pods")));
        }
        if outcomes.canceled > 0 {
            parts.push(counted(outcomes.canceled, "request was canceled", "requests were canceled"));
        }
        parts.join(", ")
    }
}

impl NodeProgress {
    fn cells(&self, name: &str, bar: usize) -> [Vec<Span>; 7] {
        let plain = |text: String| vec![Span::new(Tone::Plain, text)];
        let name = plain(name.to_owned());
        let Some(status) = &self.status else {
            let state = vec![Span::new(Tone::Faint, self.state_without_status())];
            return [name, self.bar(bar), plain(String::new()), Vec::new(), Vec::new(), Vec::new(), state];
        };
        let blocked = if status.blocked_pods > 0 { Tone::Warning } else { Tone::Plain };
        [
            name,
            self.bar(bar),
            plain(left(status).to_string()),
            plain(count(status.pods_evacuating).to_string()),
            vec![Span::new(blocked, count(status.blocked_pods).to_string())],
            plain(tier_of(status).unwrap_or_default()),
            vec![state(status)],
        ]
    }

    /// The parts of the pods that are gone, that are leaving, and that have not begun to leave.
    fn bar(&self, width: usize) -> Vec<Span> {
        let scale = |pods: u64| match usize::try_from(pods * width as u64 / self.most.max(1)) {
            Ok(scaled) if self.most > 0 => scaled.min(width),
            _ => 0,
        };
        let (gone, leaving) = match &self.status {
            Some(status) if self.most > 0 => {
                let gone = self.most.saturating_sub(left(status));
                (scale(gone), scale(gone + count(status.pods_evacuating)))
            }
            // A node without pods has nothing left to do.
            Some(status) if is_drained(status) => (width, width),
            _ => (0, 0),
        };
        vec![
            Span::new(Tone::Good, "█".repeat(gone)),
            Span::new(Tone::Busy, "▒".repeat(leaving - gone)),
            Span::new(Tone::Faint, "░".repeat(width - leaving)),
        ]
    }

    fn state_without_status(&self) -> &'static str {
        if self.most == 0 { "not begun" } else { "no longer under maintenance" }
    }

    /// Returns the line about the node if it differs from the last one.
    fn changed(&mut self, name: &str) -> Option<String> {
        let line = match &self.status {
            None if self.line.is_empty() => return None,
            None => format!("{name}: {}", self.state_without_status()),
            Some(status) => line(name, status),
        };
        (line != self.line).then(|| {
            self.line.clone_from(&line);
            line
        })
    }
}

/// The whole state of a node in one line.
fn line(name: &str, status: &NodeMaintenanceNodeStatus) -> String {
    let mut parts = vec![format!("{} left", counted(left(status), "pod", "pods"))];
    parts.extend((status.pods_evacuating > 0).then(|| format!("{} leaving", status.pods_evacuating)));
    parts.extend((status.blocked_pods > 0).then(|| format!("{} blocked", status.blocked_pods)));
    parts.extend(tier_of(status).map(|tier| format!("tier {tier}")));
    let state = state(status).text;
    let separator = if state.is_empty() { "" } else { "; " };
    format!("{name}: {}{separator}{state}", parts.join(", "))
}

/// The first blocker, or else the drain message.
fn state(status: &NodeMaintenanceNodeStatus) -> Span {
    let message = status.drain_message.trim_end_matches('.');
    if let Some(blocker) = status.blockers.first() {
        return Span::new(Tone::Warning, blocked_by(blocker));
    }
    if is_drained(status) {
        return Span::new(Tone::Good, "drained");
    }
    match (message.strip_prefix("Waiting for node "), message.strip_prefix("Evacuating")) {
        (Some(other), _) => Span::new(Tone::Faint, format!("waits for {other}")),
        (_, Some(more)) => Span::new(Tone::Plain, format!("evacuating{more}")),
        _ => Span::new(Tone::Plain, message),
    }
}

/// The cause comes first: of a pod's name the beginning is enough.
fn blocked_by(blocker: &Blocker) -> String {
    let pod = if blocker.pod.name.is_empty() { "the node itself" } else { &blocker.pod.name };
    match budget_of(&blocker.message).filter(|_| blocker.reason == POD_DISRUPTION_BUDGET) {
        Some(budget) => format!("budget {budget}: {pod}"),
        None => format!("{}: {pod}", blocker.reason),
    }
}

/// The name of the budget in a message of the host or of the controllers; `None` if there are several.
fn budget_of(message: &str) -> Option<&str> {
    let of_host = message.strip_prefix("The disruption budget ").and_then(|rest| rest.split_once(' '));
    let ours = || message.strip_prefix("PodDisruptionBudget \"").and_then(|rest| rest.split_once('"'));
    of_host.or_else(ours).map(|(name, _)| name)
}

fn is_drained(status: &NodeMaintenanceNodeStatus) -> bool {
    status.drain_message == "Drained"
}

/// The tier that the node has reached; `None` if nothing is left to do.
fn tier_of(status: &NodeMaintenanceNodeStatus) -> Option<String> {
    status.drain_targets.last().filter(|_| !is_drained(status)).map(tier)
}

/// The name of a tier. The playground's DaemonSet pods share one tier, so that the type is enough for them.
fn tier(entry: &DrainPlanEntry) -> String {
    match entry.pod_type {
        PodType::Default if entry.pod_priority == i32::MAX => "all pods".to_owned(),
        PodType::Default => format!("≤ {}", entry.pod_priority),
        PodType::DaemonSet => "DaemonSets".to_owned(),
        PodType::Static | PodType::Unknown => "static pods".to_owned(),
    }
}

fn left(status: &NodeMaintenanceNodeStatus) -> u64 {
    count(status.pods_pending_evacuation) + count(status.pods_evacuating)
}

fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Aligns the columns, and shortens the last one to the width.
fn lay_out(rows: Vec<[Vec<Span>; 7]>, width: usize) -> Vec<Vec<Span>> {
    let widths: [usize; 7] =
        std::array::from_fn(|column| rows.iter().map(|row| length(&row[column])).max().unwrap_or_default());
    rows.into_iter().map(|row| line_of(row, &widths, width)).collect()
}

fn line_of(row: [Vec<Span>; 7], widths: &[usize; 7], width: usize) -> Vec<Span> {
    let mut line = Vec::new();
    let mut used = 0;
    for (column, (cell, wanted)) in row.into_iter().zip(widths).enumerate() {
        let is_last = column + 1 == widths.len();
        let is_number = (2..5).contains(&column);
        let padding = " ".repeat(wanted.saturating_sub(length(&cell)));
        let gap = " ".repeat(GAP);
        used += GAP + wanted;
        if is_last {
            let room = width.saturating_sub(used - wanted).max(LEAST_STATE);
            line.push(Span::new(Tone::Plain, gap));
            line.extend(cell.into_iter().map(|span| Span::new(span.tone, cut(&span.text, room))));
        } else if is_number {
            line.push(Span::new(Tone::Plain, gap + &padding));
            line.extend(cell);
        } else {
            line.push(Span::new(Tone::Plain, gap));
            line.extend(cell);
            line.push(Span::new(Tone::Plain, padding));
        }
    }
    line
}

fn length(cell: &[Span]) -> usize {
    cell.iter().map(|span| span.text.chars().count()).sum()
}

#[cfg(test)]
#[path = "drain_view_tests.rs"]
mod tests;
