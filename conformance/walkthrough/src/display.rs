//! Shows the maintenance in the terminal, with one bar for each node; without a terminal, prints a line for
//! each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use drydock_api::node_maintenance::{NodeMaintenanceNodeStatus, NodeMaintenanceStatus};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Bars, or lines.
pub struct Display {
    bars: MultiProgress,
    nodes: BTreeMap<String, ProgressBar>,
    lines: BTreeMap<String, String>,
    terminal: bool,
}

impl Display {
    /// Creates the display for these nodes.
    pub fn new(names: &[String]) -> Display {
        let bars = MultiProgress::new();
        let nodes = names.iter().map(|name| (name.clone(), bars.add(bar(name)))).collect();
        Display { bars, nodes, lines: BTreeMap::new(), terminal: std::io::stderr().is_terminal() }
    }

    /// Shows the state of every node.
    pub fn show(&mut self, status: &NodeMaintenanceStatus) {
        for node in &status.node_statuses {
            if self.terminal {
                self.draw(node);
            } else {
                self.print(node);
            }
        }
    }

    fn draw(&self, node: &NodeMaintenanceNodeStatus) {
        let Some(bar) = self.nodes.get(&node.node_ref.name) else { return };
        let left = pods_left(node);
        if bar.length().unwrap_or(0) < left {
            bar.set_length(left);
        }
        bar.set_position(bar.length().unwrap_or(0) - left);
        bar.set_message(message(node));
    }

    fn print(&mut self, node: &NodeMaintenanceNodeStatus) {
        let name = &node.node_ref.name;
        let line = format!("{name}: {} pods left. {}", pods_left(node), message(node));
        if self.lines.get(name) != Some(&line) {
            eprintln!("    {line}");
            self.lines.insert(name.clone(), line);
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        for bar in self.nodes.values() {
            bar.abandon();
        }
        drop(self.bars.clear());
    }
}

fn bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_prefix(name.to_owned());
    match ProgressStyle::with_template("    {prefix:10} [{bar:30}] {pos:>3}/{len:3} {wide_msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn pods_left(node: &NodeMaintenanceNodeStatus) -> u64 {
    u64::try_from(node.pods_pending_evacuation + node.pods_evacuating).unwrap_or(0)
}

fn message(node: &NodeMaintenanceNodeStatus) -> String {
    match node.blockers.first() {
        Some(blocker) if blocker.pod.name.is_empty() => {
            format!("{} ({})", node.drain_message, blocker.reason)
        }
        Some(blocker) => format!("{} ({}: {})", node.drain_message, blocker.pod.name, blocker.reason),
        None => node.drain_message.clone(),
    }
}
