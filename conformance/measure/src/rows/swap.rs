//! Row 4: compare-and-swap updates of status, some of them stale.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, SMALL};
use crate::sample::Sample;
use crate::subject::Who;

const CLIENTS: usize = 64;
/// Objects that are updated, in turn: so many that no two clients ever have the same one.
const OBJECTS: u64 = 4096;
/// One update in so many names the revision before the newest.
const STALE: u64 = 5;
const WARM_UP: u64 = 1000;

/// Clients who each update the status of an object whose revision they know.
pub struct Swap {
    limit: LoadLimit,
    known: RefCell<HashMap<Who, Rc<RefCell<Vec<KnownVersions>>>>>,
}

/// What is known of an object.
#[derive(Clone, Default)]
struct KnownVersions {
    newest: String,
    before: Option<String>,
    /// Updates that were acknowledged.
    beat: u64,
}

impl Swap {
    /// Creates the row; `limit` is that of each measurement.
    pub fn new(limit: LoadLimit) -> Self {
        Self { limit, known: RefCell::default() }
    }

    fn known(&self, who: Who) -> Rc<RefCell<Vec<KnownVersions>>> {
        self.known.borrow_mut().entry(who).or_default().clone()
    }

    async fn swap(&self, subject: &Subject, limit: LoadLimit) -> Result<ClientLoad> {
        let (client, all) = (subject.client.clone(), self.known(subject.server.who));
        drive(CLIENTS, limit, move |lane, number| {
            let (client, all) = (client.clone(), all.clone());
            async move {
                let index = usize::try_from(number % OBJECTS)?;
                let known = all.borrow().get(index).cloned().context("an object that nobody made")?;
                let stale = known.before.clone().filter(|_| number % STALE == 0);
                let (beat, revision) = (known.beat + 1, stale.as_ref().unwrap_or(&known.newest));
                let made = client.swap(lane, &object::name(number % OBJECTS), beat, revision).await?;
                ensure!(
                    made.is_none() == stale.is_some(),
                    "update {number}: {stale:?} was answered {made:?}"
                );
                if let Some(newest) = made {
                    all.borrow_mut()[index] = KnownVersions { newest, before: Some(known.newest), beat };
                }
                Ok(())
            }
        })
        .await
    }
}

#[async_trait(?Send)]
impl BenchRow for Swap {
    fn number(&self) -> u8 {
        4
    }

    fn title(&self) -> String {
        format!("compare-and-swap of status, {CLIENTS} clients, 1 in {STALE} stale")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        let against = |who, times| FigureGoal::cpu(Who::Sqlite, who, 1.0 / times);
        vec![against(Who::Kube, 50.0), against(Who::Sample, 20.0), FigureGoal::above_lower_bound()]
    }

    fn lanes(&self) -> usize {
        16
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, OBJECTS, SMALL).await?;
        let all = self.known(subject.server.who);
        for number in 0..OBJECTS {
            let newest = subject.client.revision_of(0, &object::name(number)).await?;
            all.borrow_mut().push(KnownVersions { newest, ..KnownVersions::default() });
        }
        self.swap(subject, LoadLimit { operations: WARM_UP.max(OBJECTS), ..self.limit }).await.map(drop)
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        let before = subject.server.used()?;
        let load = self.swap(subject, self.limit).await?;
        sample(subject, before, &load)
    }

    /// Each object says what was acknowledged last: no update is lost, and no stale one was taken.
    async fn verify(&self, subject: &Subject) -> Result<()> {
        let all = self.known(subject.server.who).borrow().clone();
        for (number, known) in (0..).zip(&all) {
            let found = serde_json::from_slice(&subject.client.get(0, &object::name(number)).await?)?;
            let beat = object::beat(&found).unwrap_or_default();
            ensure!(beat == known.beat, "object {number} has {beat} updates of {}", known.beat);
        }
        Ok(())
    }
}
