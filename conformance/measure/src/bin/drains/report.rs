//! What is left of a run: a table and the goals for people, `drains.json` for programs.

mod goals;

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::json;

use super::Arguments;
use super::figures::AuditCounts;
use super::form::BudgetForm;
use super::subject::DrainSubject;
use super::trial::Trial;

/// A number of a trial.
type TrialFigure = fn(&Trial) -> f64;

/// Requests of a trial that were answered in the same way.
type AnsweredRequests = fn(&Trial) -> &AuditCounts;

/// What each subject has.
const OF_ALL: [(&str, TrialFigure); 9] = [
    ("deletions/s", |t| t.figures.per_second),
    ("whole drain s", |t| t.seconds),
    ("CPU of the host, ms a pod", |t| t.per_pod(1000.0 * t.cpu.hosts())),
    ("idle CPU of the host, ms a second", |t| 1000.0 * t.idle.hosts()),
    ("idle CPU of ours, ms a second", |t| 1000.0 * t.idle.ours()),
    ("409", |t| total(&t.figures.conflicts)),
    ("429", |t| total(&t.figures.too_many)),
    ("slow to leave", |t| t.figures.slow as f64),
    ("left behind", |t| t.left.len() as f64),
];

/// How our writes were answered.
const ANSWERS: [(&str, AnsweredRequests); 3] =
    [("", |t| &t.figures.writes), (": 409", |t| &t.figures.conflicts), (": 429", |t| &t.figures.too_many)];

/// Prints table and goals, and writes the JSON.
pub fn write(arguments: &Arguments, trials: &[Trial]) -> Result<()> {
    let Arguments { pods, nodes, rounds, room, out, .. } = arguments;
    println!("{}", markdown(arguments, trials));
    let what = json!({"pods": pods, "nodes": nodes, "rounds": rounds, "room": room, "trials": trials});
    let path = out.join("drains.json");
    std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    std::fs::write(&path, serde_json::to_vec_pretty(&what)?).with_context(|| path.display().to_string())?;
    eprintln!("==> written to {}", path.display());
    Ok(())
}

fn markdown(arguments: &Arguments, trials: &[Trial]) -> String {
    let Arguments { pods, nodes, rounds, room, .. } = arguments;
    let mut out = format!(
        "# Drains: {pods} pods of {nodes} nodes\n\n\
         Median of {rounds} rounds, least and most in brackets. Deletions are those in the host's audit log, their rate \
         that between the 5th and the 95th percentile. {room}% of a budget's pods may be away. CPU is that of the whole \
         drain until all Deployments are complete again, without that of idling, measured before each drain; what kwok takes \
         and the observer's watch costs the host is part of it. The floor makes the requests of our controllers for a pod \
         that nothing holds up, with no report of what blocks, and decides nothing. \
         409 and 429 are answers to evictions, and to all writes of ours.\n\n"
    );
    table(&mut out, trials);
    writes(&mut out, trials);
    out.push_str("\n## Goals\n\n");
    goals::judge(trials).iter().for_each(|goal| line(&mut out, &goal.to_string()));
    for trial in trials.iter().filter(|trial| !trial.is_good()) {
        line(&mut out, &format!("- BAD: {}, {}: {}", trial.subject, trial.form, trial.summary()));
    }
    out
}

fn table(out: &mut String, trials: &[Trial]) {
    let heads = OF_ALL.iter().map(|(head, _)| *head).chain(goals::OF_OURS.iter().map(|(head, ..)| *head));
    let heads: Vec<String> = heads.map(|head| format!(" {head} |")).collect();
    line(out, &format!("| budgets | |{}", heads.concat()));
    line(out, &format!("|---|---|{}", "---|".repeat(heads.len())));
    for (form, subject) in pairs(trials) {
        let cell = |figure: TrialFigure| format!(" {} |", of(trials, form, subject, figure));
        let ours = |(what, figure, _): &(&str, TrialFigure, f64)| match subject {
            DrainSubject::Drydock => cell(*figure),
            DrainSubject::Floor if *what == goals::CPU_OF_OURS => cell(*figure),
            DrainSubject::Floor | DrainSubject::Loop => " |".into(),
        };
        let cells = OF_ALL.iter().map(|(_, figure)| cell(*figure));
        let cells: String = cells.chain(goals::OF_OURS.iter().map(ours)).collect();
        line(out, &format!("| {form} | {subject} |{cells}"));
    }
}

/// Our writes by verb and resource, for each pod, and those that were refused.
fn writes(out: &mut String, trials: &[Trial]) {
    let ours: Vec<&Trial> = trials.iter().filter(|trial| trial.subject == DrainSubject::Drydock).collect();
    let forms: BTreeSet<BudgetForm> = ours.iter().map(|trial| trial.form).collect();
    let heads: String = forms.iter().map(|form| format!(" {form} |")).collect();
    line(out, &format!("\n| writes of ours a pod |{heads}"));
    line(out, &format!("|---|{}", "---|".repeat(forms.len())));
    for (how, counts) in ANSWERS {
        let kinds: BTreeSet<&String> = ours.iter().flat_map(|trial| counts(trial).keys()).collect();
        for kind in kinds {
            let each = |t: &Trial| t.per_pod(counts(t).get(kind).copied().unwrap_or_default() as f64);
            let cells =
                forms.iter().map(|form| format!(" {} |", of(trials, *form, DrainSubject::Drydock, each)));
            line(out, &format!("| {kind}{how} |{}", cells.collect::<String>()));
        }
    }
}

fn pairs(trials: &[Trial]) -> BTreeSet<(BudgetForm, DrainSubject)> {
    trials.iter().map(|trial| (trial.form, trial.subject)).collect()
}

fn of(
    trials: &[Trial],
    form: BudgetForm,
    subject: DrainSubject,
    figure: impl Fn(&Trial) -> f64,
) -> TrialSpread {
    let same = trials.iter().filter(|trial| trial.form == form && trial.subject == subject);
    TrialSpread::of(same.map(figure))
}

fn total(counts: &AuditCounts) -> f64 {
    counts.values().sum::<usize>() as f64
}

fn line(out: &mut String, line: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{line}");
}

/// Median, least and most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TrialSpread {
    median: f64,
    least: f64,
    most: f64,
}

impl TrialSpread {
    fn of(numbers: impl Iterator<Item = f64>) -> TrialSpread {
        let mut all: Vec<f64> = numbers.collect();
        all.sort_by(f64::total_cmp);
        let at = |i: usize| all.get(i).copied().unwrap_or_default();
        TrialSpread { median: at(all.len() / 2), least: at(0), most: at(all.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for TrialSpread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TrialSpread { median, least, most } = self;
        if least == most { write!(f, "{median:.2}") } else { write!(f, "{median:.2} ({least:.2}-{most:.2})") }
    }
}
