//! A run: row by row, each with subjects that were started for it; within a row, rounds; within a round, everyone
//! in turn. So whatever else the machine does meets all of them alike.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::Arguments;
use crate::machine;
use crate::rows::{self, BenchRow, FigureGoal, Subject};
use crate::sample::Sample;
use crate::subject::{Fleet, Settings, Who};

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    /// The processor.
    pub machine: String,
    /// Median time of one fdatasync where the subjects write.
    pub fdatasync_us: f64,
    /// Rounds of each measurement.
    pub rounds: usize,
    /// Row by row.
    pub rows: Vec<Measured>,
}

/// What was measured for one row.
#[derive(Serialize)]
pub struct Measured {
    /// Its number.
    pub row: u8,
    /// What it measures.
    pub title: String,
    /// What it should come to.
    #[serde(skip)]
    pub goals: Vec<FigureGoal>,
    /// Samples in the order of the rounds.
    pub samples: Vec<(Who, Vec<Sample>)>,
}

/// Measures everything that was asked for.
pub async fn all(arguments: &Arguments, machine: String) -> Result<Results> {
    let folder = tempfile::tempdir()?;
    let fdatasync = machine::fdatasync(folder.path())?;
    let mut rows = Vec::new();
    for row in rows::all(arguments) {
        if arguments.rows.is_empty() || arguments.rows.contains(&row.number()) {
            let title = row.title();
            rows.push(one(row.as_ref(), arguments).await.with_context(|| format!("row: {title}"))?);
        }
    }
    Ok(Results { machine, fdatasync_us: fdatasync.as_secs_f64() * 1e6, rounds: arguments.rounds, rows })
}

async fn one(row: &dyn BenchRow, arguments: &Arguments) -> Result<Measured> {
    say(&format!("row {}: {}", row.number(), row.title()));
    let who: Vec<Who> = arguments.servers.iter().copied().filter(|who| row.takes(*who)).collect();
    let fleet = Fleet::start(&who, Settings::of(arguments, row)).await?;
    let mut subjects = Vec::new();
    for server in fleet.servers {
        let client = server.connect(row.lanes()).await?;
        subjects.push(Subject { server, client });
    }
    for subject in &mut subjects {
        subject.reconnect(row.lanes()).await?;
        say(&format!("  {}: preparing", subject.server.who.title()));
        row.prepare(subject).await.with_context(|| subject.server.who.title())?;
    }
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); subjects.len()];
    for round in 0..arguments.rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            subject.reconnect(row.lanes()).await?;
            let who = subject.server.who.title();
            let sample = row.measure(subject).await.with_context(|| who)?;
            let Sample { cpu_us, p50_us, p99_us, .. } = sample;
            say(&format!(
                "  round {}, {who}: {cpu_us:.1} us CPU, p50 {p50_us:.0} us, p99 {p99_us:.0} us",
                round + 1
            ));
            samples.push(sample);
        }
    }
    for subject in &mut subjects {
        subject.reconnect(row.lanes()).await?;
        row.verify(subject).await.with_context(|| subject.server.who.title())?;
    }
    let samples = subjects.iter().map(|s| s.server.who).zip(samples).collect();
    Ok(Measured { row: row.number(), title: row.title(), goals: row.goals(), samples })
}

fn say(what: &str) {
    eprintln!("==> {what}");
}
