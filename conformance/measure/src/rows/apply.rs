//! Row 16: server-side apply of one changed field.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{BenchRow, FigureGoal, Subject, sample};
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, LARGE};
use crate::sample::Sample;
use crate::subject::{Used, Who};

const CLIENTS: usize = 64;
/// Objects that are applied, in turn.
const OBJECTS: u64 = 256;
const WARM_UP: u64 = 1000;
/// What each apply changes.
const FIELD: &str = "drydock.example.com/beat";

/// Clients who each apply the whole of an object, one field of which has changed.
pub struct Apply {
    limit: LoadLimit,
    /// Numbers for the field: no two applies of the row have the same.
    next: Cell<u64>,
    /// Which number was acknowledged last of each object.
    last: RefCell<HashMap<(Who, u64), u64>>,
}

impl Apply {
    /// Creates the row; `limit` is that of each measurement.
    pub fn new(limit: LoadLimit) -> Self {
        Self { limit, next: Cell::new(0), last: RefCell::default() }
    }

    /// Applies configurations, made before the clock starts.
    async fn apply(&self, subject: &Subject, limit: LoadLimit) -> Result<(Used, ClientLoad)> {
        let client = subject.client.clone();
        let first = self.next.replace(self.next.get() + limit.operations);
        let made = (first..first + limit.operations).map(|beat| configuration(subject, beat));
        let made: Rc<Vec<_>> = Rc::new(made.collect::<Result<_>>()?);
        let before = subject.server.used()?;
        let done = Rc::new(RefCell::new(Vec::new()));
        let acknowledged = done.clone();
        let load = drive(CLIENTS, limit, move |lane, number| {
            let (made, client, done) = (made.clone(), client.clone(), done.clone());
            async move {
                let (name, body) = made.get(usize::try_from(number)?).context("more applies than made")?;
                client.apply(lane, name, body.clone()).await?;
                done.borrow_mut().push(first + number);
                Ok(())
            }
        })
        .await?;
        for beat in acknowledged.borrow().iter() {
            let mut last = self.last.borrow_mut();
            let last = last.entry((subject.server.who, beat % OBJECTS)).or_default();
            *last = (*last).max(*beat);
        }
        Ok((before, load))
    }
}

/// The object that a beat is for, with it.
fn configuration(subject: &Subject, beat: u64) -> Result<(String, Bytes)> {
    let name = object::name(beat % OBJECTS);
    // Room for the field, so that all are of one size.
    let object = subject.client.api().object(&name, LARGE - 40)?;
    let mut object: Value = serde_json::from_slice(&object)?;
    object["metadata"]["annotations"][FIELD] = json!(format!("{beat:08}"));
    Ok((name, serde_json::to_vec(&object)?.into()))
}

#[async_trait(?Send)]
impl BenchRow for Apply {
    fn number(&self) -> u8 {
        16
    }

    fn title(&self) -> String {
        format!("apply of one changed field of 2 KiB, {CLIENTS} clients")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::cpu(Who::Sqlite, Who::Kube, 1.0 / 20.0)]
    }

    /// The others know no apply that could be compared.
    fn takes(&self, who: Who) -> bool {
        matches!(who, Who::Sqlite | Who::Etcd | Who::Kube)
    }

    fn lanes(&self) -> usize {
        16
    }

    /// The first apply of each creates it.
    async fn prepare(&self, subject: &Subject) -> Result<()> {
        self.apply(subject, LoadLimit { operations: WARM_UP.max(OBJECTS), ..self.limit }).await.map(drop)
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        let (before, load) = self.apply(subject, self.limit).await?;
        sample(subject, before, &load)
    }

    /// Each object has the number that was acknowledged last; its manager owns the field.
    async fn verify(&self, subject: &Subject) -> Result<()> {
        let who = subject.server.who;
        let last = self.last.borrow().clone();
        for ((_, number), beat) in last.iter().filter(|((of, _), _)| *of == who) {
            let found: Value = serde_json::from_slice(&subject.client.get(0, &object::name(*number)).await?)?;
            let field = &found["metadata"]["annotations"][FIELD];
            ensure!(*field == format!("{beat:08}"), "{who}: object {number} has {field}, not {beat}");
            let owned = &found["metadata"]["managedFields"][0];
            let fields = &owned["fieldsV1"]["f:metadata"]["f:annotations"];
            ensure!(
                owned["operation"] == "Apply" && fields.get(format!("f:{FIELD}")).is_some(),
                "{who}: {owned}"
            );
        }
        Ok(())
    }
}
