//! Row 6: a consistent list of everything, as kubectl and informers without chunks ask for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use hdrhistogram::Histogram;
use http_body_util::BodyExt;
use serde_json::Value;

use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::SubjectClient;
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, LARGE};
use crate::sample::Sample;
use crate::subject::Who;

/// Lists in one measurement, one after another.
const LISTS: u64 = 3;
const FILLERS: usize = 64;

/// One client who lists.
pub struct ListRow {
    objects: u64,
    /// The last list of each subject: nothing is written, so the next must have the same items.
    last: RefCell<HashMap<Who, Vec<u8>>>,
}

impl ListRow {
    /// Creates the row with so many objects.
    pub fn new(objects: usize) -> Self {
        Self { objects: objects as u64, last: RefCell::default() }
    }

    fn compare(&self, who: Who, body: &[Bytes]) -> Result<()> {
        let items = items(&body.concat())?.to_vec();
        let mut last = self.last.borrow_mut();
        ensure!(last.get(&who).is_none_or(|known| *known == items), "two lists of the same objects differ");
        last.insert(who, items);
        Ok(())
    }
}

/// A list without its own metadata, whose revision grows with writes elsewhere in the store.
fn items(list: &[u8]) -> Result<&[u8]> {
    const START: &[u8] = br#""items":["#;
    let from = list.windows(START.len()).position(|at| at == START);
    let to = list.iter().rposition(|byte| *byte == b']');
    from.zip(to).and_then(|(from, to)| list.get(from..to)).context("a list without items")
}

#[async_trait(?Send)]
impl BenchRow for ListRow {
    fn number(&self) -> u8 {
        6
    }

    fn title(&self) -> String {
        format!("LIST of {} objects of 2 KiB", self.objects)
    }

    fn goals(&self) -> Vec<FigureGoal> {
        let against = |who, times| FigureGoal::cpu(Who::Sqlite, who, 1.0 / times);
        vec![against(Who::Kube, 25.0), against(Who::Sample, 7.0), FigureGoal::above_lower_bound()]
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api() || who == Who::LowerBound
    }

    fn lanes(&self) -> usize {
        16
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, self.objects, LARGE).await?;
        listed(&subject.client, 0).await.map(drop)
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        let Subject { server, client } = subject;
        server.forget_peak()?;
        let at_first = server.memory()?;
        let before = server.used()?;
        let (mut latency, mut first_byte) = (Histogram::new(3)?, Histogram::<u64>::new(3)?);
        let (mut elapsed, mut bodies) = (Duration::ZERO, Vec::new());
        for _ in 0..LISTS {
            let began = Instant::now();
            let listed = listed(client, 0).await?;
            elapsed += began.elapsed();
            latency.record(u64::try_from(began.elapsed().as_nanos())?)?;
            first_byte.record(u64::try_from(listed.first_byte.as_nanos())?)?;
            bodies.push(listed.body);
        }
        let mut sample = sample(subject, before, &ClientLoad { latency, elapsed })?;
        sample.more.insert("first_byte_us", first_byte.value_at_percentile(50.0) as f64 / 1000.0);
        sample.more.insert("added_peak_mib", sample.peak_mib - at_first.resident as f64 / 1024.0);
        bodies.iter().try_for_each(|body| self.compare(server.who, body))?;
        Ok(sample)
    }

    async fn verify(&self, subject: &Subject) -> Result<()> {
        let client = &subject.client;
        let list: Value = serde_json::from_slice(&listed(client, 0).await?.body.concat())?;
        let items = list["items"].as_array().context("a list without items")?;
        ensure!(items.len() as u64 == self.objects, "{} of {} objects are listed", items.len(), self.objects);
        let mut last = "";
        for item in items {
            let name = item["metadata"]["name"].as_str().context("an item without a name")?;
            ensure!(last < name, "{name} is listed behind {last}");
            object::check(item, &client.api().object(name, LARGE)?)?;
            last = name;
        }
        Ok(())
    }
}

/// A list that was streamed to its end.
pub struct StreamedList {
    /// The body, in the pieces in which it came.
    pub body: Vec<Bytes>,
    /// From the request to the first byte of the body.
    pub first_byte: Duration,
}

/// Lists everything.
pub async fn listed(client: &Arc<dyn SubjectClient>, lane: usize) -> Result<StreamedList> {
    let began = Instant::now();
    let mut answer = client.list(lane).await?;
    let (mut body, mut first_byte) = (Vec::new(), None);
    while let Some(frame) = answer.frame().await {
        if let Ok(data) = frame?.into_data() {
            first_byte.get_or_insert_with(|| began.elapsed());
            body.push(data);
        }
    }
    Ok(StreamedList { body, first_byte: first_byte.context("an empty list")? })
}

/// Creates the first `count` objects.
pub async fn fill(client: &Arc<dyn SubjectClient>, count: u64, size: usize) -> Result<()> {
    let client = Rc::new(client.clone());
    let limit = LoadLimit { operations: count, time: Duration::from_secs(3600) };
    drive(FILLERS, limit, move |lane, number| {
        let client = client.clone();
        async move {
            let name = object::name(number);
            client.create(lane, &name, client.api().object(&name, size)?).await
        }
    })
    .await
    .map(drop)
}
