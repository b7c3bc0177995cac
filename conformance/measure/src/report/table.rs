//! The table for people.

use std::fmt::Write;

use crate::contender::Who;
use crate::rows::Goal;
use crate::run::{Measured, Results};
use crate::sample::{Sample, Spread};

/// Everything as Markdown.
pub fn markdown(results: &Results) -> String {
    let mut out = String::from("# Drydock beside what else could serve the same objects\n\n");
    let Results { machine, fdatasync_us, rounds, .. } = results;
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "{machine}; one fdatasync takes {fdatasync_us:.0} us. Median of {rounds} rounds, least and most in \
         brackets. CPU is that of the server and its etcd together, for one operation.\n"
    );
    results.rows.iter().for_each(|row| section(&mut out, row));
    out
}

fn section(out: &mut String, row: &Measured) {
    let _ = writeln!(out, "## Row {}: {}\n", row.row, row.title);
    let more: Vec<&str> =
        row.samples.iter().flat_map(|(_, s)| s.iter()).flat_map(|s| s.more.keys().copied()).collect();
    let mut more: Vec<&str> = more;
    more.sort_unstable();
    more.dedup();
    let _ = write!(out, "| | CPU us | of it the server | p50 us | p99 us | ops/s | memory MiB |");
    more.iter().for_each(|name| {
        let _ = write!(out, " {} |", name.replace('_', " "));
    });
    let _ = writeln!(out, "\n|---|---|---|---|---|---|---|{}", "---|".repeat(more.len()));
    for (who, samples) in &row.samples {
        let _ = write!(out, "| {} |", who.title());
        let figures: [fn(&Sample) -> f64; 6] = [
            |s| s.cpu_us,
            |s| s.server_cpu_us,
            |s| s.p50_us,
            |s| s.p99_us,
            |s| s.operations as f64 / s.seconds,
            |s| s.resident_mib,
        ];
        figures.iter().for_each(|figure| cell(out, samples, figure));
        more.iter().for_each(|name| cell(out, samples, |s| s.more.get(name).copied().unwrap_or_default()));
        out.push('\n');
    }
    out.push('\n');
    row.goals.iter().filter_map(|goal| verdict(row, goal)).for_each(|line| out.push_str(&line));
    out.push('\n');
}

fn cell(out: &mut String, samples: &[Sample], figure: impl Fn(&Sample) -> f64) {
    let Spread { median, least, most } = Spread::of(samples.iter().map(figure));
    let _ = write!(out, " {} ({}-{}) |", short(median), short(least), short(most));
}

/// Three digits are all that such a measurement tells.
fn short(number: f64) -> String {
    if number.abs() < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn verdict(row: &Measured, goal: &Goal) -> Option<String> {
    let median = |who: Who| {
        let (_, samples) = row.samples.iter().find(|(w, _)| *w == who)?;
        Some(Spread::of(samples.iter().map(|s| goal.figure.of(s))).median)
    };
    let ratio = median(goal.who)? / median(goal.against)?;
    let met = if ratio <= goal.at_most { "met" } else { "missed" };
    let (who, against, figure) = (goal.who.title(), goal.against.title(), goal.figure.name());
    Some(format!(
        "- {figure}, {who} against {against}: {} (goal {}): {met}\n",
        times(ratio),
        times(goal.at_most)
    ))
}

/// A ratio as people say it.
fn times(ratio: f64) -> String {
    if ratio < 1.0 { format!("1/{:.1}", 1.0 / ratio) } else { format!("{ratio:.2}x") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Figure;

    #[test]
    fn a_goal_is_met_at_its_bound_and_missed_above() {
        let sample = |cpu_us| vec![Sample { cpu_us, ..Sample::default() }];
        let samples = vec![(Who::Sqlite, sample(50.0)), (Who::Raw, sample(100.0))];
        let row = Measured { row: 2, title: String::new(), goals: Vec::new(), samples };
        let goal = |at_most| Goal { who: Who::Sqlite, figure: Figure::Cpu, against: Who::Raw, at_most };
        assert!(verdict(&row, &goal(0.5)).is_some_and(|line| line.ends_with(": met\n")));
        assert!(verdict(&row, &goal(0.4)).is_some_and(|line| line.ends_with(": missed\n")));
        let absent = Goal { against: Who::Kube, ..goal(0.5) };
        assert_eq!(verdict(&row, &absent), None);
    }
}
