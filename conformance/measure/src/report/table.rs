//! The table for people.

use std::fmt::Write;

use crate::rows::{Bound, FigureGoal};
use crate::run::{Measured, Results};
use crate::sample::{Sample, SampleSpread};
use crate::subject::Who;

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
    let SampleSpread { median, least, most } = SampleSpread::of(samples.iter().map(figure));
    let _ = write!(out, " {} ({}-{}) |", short(median), short(least), short(most));
}

/// A measurement like this is good for three digits at most.
fn short(number: f64) -> String {
    if number.abs() < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn verdict(row: &Measured, goal: &FigureGoal) -> Option<String> {
    let median = |who: Who| {
        let (_, samples) = row.samples.iter().find(|(w, _)| *w == who)?;
        Some(SampleSpread::of(samples.iter().map(|s| goal.figure.of(s))).median)
    };
    let (mine, who, figure) = (median(goal.who)?, goal.who.title(), goal.figure.name());
    let mut lower_bound = None;
    let (what, is, goal, met) = match goal.bound {
        Bound::Times(at_most, against) => {
            let other = median(against)?;
            let (ratio, what) = (mine / other, format!("{who} against {}", against.title()));
            lower_bound = median(Who::LowerBound)
                .filter(|lower_bound| against != Who::LowerBound && *lower_bound > at_most * other);
            (what, times(ratio), times(at_most), ratio <= at_most)
        }
        Bound::AtLeast(times_, against) => {
            let ratio = mine / median(against)?;
            let what = format!("{who} against {}", against.title());
            (what, format!("{ratio:.2}x"), format!("at least {times_:.2}x"), ratio >= times_)
        }
        Bound::Number(at_most) => (who.to_owned(), short(mine), short(at_most), mine <= at_most),
    };
    let beyond = lower_bound
        .filter(|_| !met)
        .map(|f| format!("; {} itself takes {}", Who::LowerBound.title(), short(f)));
    let verdict = if met { "met" } else { "missed" };
    Some(format!("- {figure}, {what}: {is} (goal {goal}): {verdict}{}\n", beyond.unwrap_or_default()))
}

/// A ratio as people say it.
fn times(ratio: f64) -> String {
    if ratio < 1.0 { format!("1/{:.1}", 1.0 / ratio) } else { format!("{ratio:.2}x") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleFigure;

    #[test]
    fn a_goal_is_met_at_its_bound_and_missed_above() {
        let sample = |cpu_us| vec![Sample { cpu_us, ..Sample::default() }];
        let samples = vec![(Who::Sqlite, sample(50.0)), (Who::Raw, sample(100.0))];
        let row = Measured { row: 2, title: String::new(), goals: Vec::new(), samples };
        let goal = |bound| FigureGoal { who: Who::Sqlite, figure: SampleFigure::Cpu, bound };
        let says = |bound| verdict(&row, &goal(bound)).unwrap_or_default();
        for (met, missed) in [
            (Bound::Times(0.5, Who::Raw), Bound::Times(0.4, Who::Raw)),
            (Bound::Number(50.0), Bound::Number(49.0)),
            (Bound::AtLeast(0.5, Who::Raw), Bound::AtLeast(0.6, Who::Raw)),
        ] {
            assert!(says(met).ends_with(": met\n"));
            assert!(says(missed).ends_with(": missed\n"));
        }
        assert_eq!(verdict(&row, &goal(Bound::Times(0.5, Who::Kube))), None);
    }

    #[test]
    fn a_goal_that_the_libraries_alone_would_miss_says_so() {
        let sample = |cpu_us| vec![Sample { cpu_us, ..Sample::default() }];
        let says = |lower_bound: f64| {
            let samples = vec![
                (Who::Sqlite, sample(50.0)),
                (Who::Kube, sample(400.0)),
                (Who::LowerBound, sample(lower_bound)),
            ];
            let row = Measured { row: 2, title: String::new(), goals: Vec::new(), samples };
            let bound = Bound::Times(0.1, Who::Kube);
            verdict(&row, &FigureGoal { who: Who::Sqlite, figure: SampleFigure::Cpu, bound })
                .unwrap_or_default()
        };
        assert!(says(41.0).ends_with(": missed; F (lower bound) itself takes 41.0\n"));
        assert!(says(39.0).ends_with(": missed\n"));
    }
}
