//! All sequences, each against the host and against us both ways.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt};
use serde_json::Value;

use crate::compare::{Mismatch, compare};
use crate::differences::{DIFFERENCES, Difference};
use crate::injected::InjectedDifference;
use crate::normal::normal;
use crate::run::{self, RunRecord};
use crate::sequence::Sequence;
use crate::setup::{ServerRoute, ServerSetup};

/// Sequences that run at a time.
const AT_A_TIME: usize = 24;
/// How long a sequence may take.
const LIMIT: Duration = Duration::from_secs(600);
/// Maximum number of runs of a sequence. It is run again if the clock's second changed during the run,
/// because times may then differ that are equal in another run; or if the host could not be asked, as when it
/// ends a watch of a CRD to serve it anew.
const ATTEMPTS: usize = 5;
/// The way to the host's own server.
const THEIRS: &str = "theirs";

/// The outcome of one sequence.
pub struct SequenceOutcome<'s> {
    /// The sequence.
    pub sequence: &'s Sequence,
    /// What the host said, as it is compared.
    theirs: Vec<Value>,
    /// What we said.
    ours: Vec<RunRecord>,
    /// Fields that differ and are in no list, each with the route on which it was seen.
    pub found: Vec<(ServerRoute, Mismatch)>,
    /// Entries of the list that were seen.
    pub seen: Vec<&'static Difference>,
    /// Why it could not be run to its end.
    pub failure: Option<String>,
    /// How often it was run again.
    pub again: usize,
}

/// Runs sequences in any order, and returns their outcomes in the order of the sequences.
pub async fn run_all<'s>(
    setup: &ServerSetup,
    sequences: &'s [Sequence],
    injected: Option<InjectedDifference>,
) -> Vec<SequenceOutcome<'s>> {
    let numbered = sequences.iter().enumerate();
    let runs = numbered.map(|(number, sequence)| run_one(setup, sequence, number, injected));
    stream::iter(runs).buffered(AT_A_TIME).collect().await
}

async fn run_one<'s>(
    setup: &ServerSetup,
    sequence: &'s Sequence,
    number: usize,
    injected: Option<InjectedDifference>,
) -> SequenceOutcome<'s> {
    let mut again = 0;
    loop {
        let mut outcome = attempt(setup, sequence, &format!("s{number}x{again}"), injected).await;
        outcome.0.again = again;
        again += 1;
        let is_good = outcome.0.found.is_empty() && outcome.0.failure.is_none();
        if is_good || !outcome.1 || again == ATTEMPTS {
            return outcome.0;
        }
    }
}

/// Runs a sequence once. Returns the outcome, and whether another run may have another one: because the clock
/// moved, or because the host could not be asked.
async fn attempt<'s>(
    setup: &ServerSetup,
    sequence: &'s Sequence,
    name: &str,
    injected: Option<InjectedDifference>,
) -> (SequenceOutcome<'s>, bool) {
    let mut outcome = SequenceOutcome {
        sequence,
        theirs: Vec::new(),
        ours: Vec::new(),
        found: Vec::new(),
        seen: Vec::new(),
        failure: None,
        again: 0,
    };
    let records = records(setup, sequence, name).await;
    let records = match records {
        Ok(records) => records,
        Err(error) => {
            outcome.failure = Some(format!("{error:#}"));
            return (outcome, error.to_string() == THEIRS);
        }
    };
    let moved = records.iter().any(RunRecord::saw_the_clock_move);
    outcome.judge(setup, records, injected);
    (outcome, moved)
}

async fn records(setup: &ServerSetup, sequence: &Sequence, name: &str) -> Result<Vec<RunRecord>> {
    let routes = [
        (ServerRoute::Theirs, THEIRS),
        (ServerRoute::Direct, "direct"),
        (ServerRoute::Aggregated, "through"),
    ];
    let runs = routes.map(|(route, way)| async move {
        let namespace = format!("{name}-{way}");
        let run = run::run(setup, sequence, route, &namespace);
        let ended = tokio::time::timeout(LIMIT, run).await.context("it does not end").and_then(|ended| ended);
        ended.context(way)
    });
    futures::future::try_join_all(runs).await
}

impl SequenceOutcome<'_> {
    fn judge(&mut self, setup: &ServerSetup, records: Vec<RunRecord>, injected: Option<InjectedDifference>) {
        let mut records = records.into_iter();
        let Some(theirs) = records.next() else { return };
        let target = &self.sequence.target;
        self.theirs = normal(&theirs, target, setup.api(target, theirs.route));
        self.ours = records.collect();
        for record in &mut self.ours {
            if let Some(injected) = injected {
                injected.inject(record);
            }
        }
        for record in &self.ours {
            let api = setup.api(target, record.route);
            for mismatch in compare(&self.theirs, &normal(record, target, api)) {
                match listed(&self.sequence.title(), &mismatch, record.route) {
                    Some(difference) => self.seen.push(difference),
                    None => self.found.push((record.route, mismatch)),
                }
            }
        }
    }

    /// Whether a fault that is put into what we said would be found; None where it cannot be put.
    pub fn would_find(&self, setup: &ServerSetup, injected: InjectedDifference) -> Option<bool> {
        let mut record = self.ours.first()?.clone();
        let target = &self.sequence.target;
        let before = compare(&self.theirs, &normal(&record, target, setup.api(target, record.route)));
        injected.inject(&mut record).then(|| {
            compare(&self.theirs, &normal(&record, target, setup.api(target, record.route))) != before
        })
    }

    /// Whether nothing differs that is in no list.
    pub fn is_equal(&self) -> bool {
        self.found.is_empty() && self.failure.is_none()
    }
}

fn listed(sequence: &str, mismatch: &Mismatch, route: ServerRoute) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|known| {
        known.sequence == sequence
            && known.answer == mismatch.answer
            && known.field == mismatch.field
            && known.routes.contains(&route)
    })
}
