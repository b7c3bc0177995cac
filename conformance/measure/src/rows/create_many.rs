//! Row 2: durable creates by many clients.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, ensure};
use async_trait::async_trait;

use super::{BenchRow, FigureGoal, Subject, sample};
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, SMALL};
use crate::sample::Sample;
use crate::subject::{Used, Who};

/// Clients who each wait for their answer.
pub struct CreateMany {
    clients: usize,
    limit: LoadLimit,
    /// Numbers for the names: no two creates of the row have the same.
    next: Cell<u64>,
    /// How many were acknowledged.
    acknowledged: RefCell<HashMap<Who, usize>>,
}

/// Creates before the first that counts.
const WARM_UP: u64 = 1000;

impl CreateMany {
    /// Creates the row with so many clients; `limit` is that of each measurement.
    pub fn new(clients: usize, limit: LoadLimit) -> Self {
        Self { clients, limit, next: Cell::new(0), acknowledged: RefCell::default() }
    }

    /// Creates objects, made before the clock starts.
    async fn create(&self, subject: &Subject, limit: LoadLimit) -> Result<(Used, ClientLoad)> {
        let client = subject.client.clone();
        let first = self.next.replace(self.next.get() + limit.operations);
        let names = (first..first + limit.operations).map(object::name);
        let made: Rc<Vec<_>> = Rc::new(names.map(|n| (client.api().object(&n, SMALL), n)).collect());
        let before = subject.server.used()?;
        let load = drive(self.clients, limit, move |lane, number| {
            let (made, client) = (made.clone(), client.clone());
            async move {
                let (object, name) = made.get(usize::try_from(number)?).context("more creates than names")?;
                client.create(lane, name, object.as_ref().map_err(|e| anyhow!("{e}"))?.clone()).await
            }
        })
        .await?;
        self.acknowledge(subject.server.who, usize::try_from(load.latency.len())?);
        Ok((before, load))
    }

    /// So many more objects must be there in the end.
    pub fn acknowledge(&self, who: Who, count: usize) {
        *self.acknowledged.borrow_mut().entry(who).or_default() += count;
    }
}

#[async_trait(?Send)]
impl BenchRow for CreateMany {
    fn number(&self) -> u8 {
        2
    }

    fn title(&self) -> String {
        format!("durable create, {} clients", self.clients)
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![
            FigureGoal::cpu(Who::Sqlite, Who::Raw, 0.5),
            FigureGoal::cpu(Who::Sqlite, Who::Kube, 1.0 / 40.0),
            FigureGoal::cpu(Who::Sqlite, Who::Sample, 1.0 / 20.0),
            FigureGoal::above_lower_bound(),
            FigureGoal::cpu(Who::Etcd, Who::Raw, 1.5),
        ]
    }

    fn lanes(&self) -> usize {
        self.clients.min(16)
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        let warm_up = LoadLimit { operations: WARM_UP.min(self.limit.operations), ..self.limit };
        self.create(subject, warm_up).await.map(drop)
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        let (before, load) = self.create(subject, self.limit).await?;
        sample(subject, before, &load)
    }

    /// Every acknowledged object is there once, as it was sent: no two have the same name, so the number tells.
    async fn verify(&self, subject: &Subject) -> Result<()> {
        let all = subject.client.all().await?;
        let mut names = HashSet::new();
        for found in &all {
            let name = found["metadata"]["name"].as_str().context("an object without a name")?;
            ensure!(names.insert(name), "{name} is listed twice");
            object::check(found, &subject.client.api().object(name, SMALL)?)?;
        }
        let acknowledged = self.acknowledged.borrow().get(&subject.server.who).copied().unwrap_or_default();
        ensure!(all.len() == acknowledged, "{} objects of {acknowledged} acknowledged ones", all.len());
        Ok(())
    }
}
