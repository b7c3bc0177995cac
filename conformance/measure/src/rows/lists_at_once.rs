//! Row 7: what a server needs beside its objects when many list all of them at once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use http_body_util::BodyExt;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::load::{LoadLimit, drive};
use crate::object::LARGE;
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

const LISTS: usize = 16;

/// Clients who list at the same time.
pub struct ListsAtOnce {
    objects: u64,
    /// KiB that each took before the first list.
    filled: RefCell<HashMap<Who, u64>>,
}

impl ListsAtOnce {
    /// Creates the row with so many objects.
    pub fn new(objects: usize) -> Self {
        Self { objects: objects as u64, filled: RefCell::default() }
    }
}

#[async_trait(?Send)]
impl BenchRow for ListsAtOnce {
    fn number(&self) -> u8 {
        7
    }

    fn title(&self) -> String {
        format!("{LISTS} lists of {} objects of 2 KiB at once", self.objects)
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::number(Who::Sqlite, SampleFigure::More("added_peak_mib"), 64.0)]
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api()
    }

    fn lanes(&self) -> usize {
        LISTS
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, self.objects, LARGE).await
    }

    /// The bodies are counted and dropped: row 6 checks that they are right.
    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        let Subject { server, client } = subject;
        server.forget_peak()?;
        let now = server.memory()?.resident;
        let at_first = *self.filled.borrow_mut().entry(server.who).or_insert(now);
        let before = server.used()?;
        let (client, least) = (Rc::new(client.clone()), self.objects as usize * LARGE);
        let limit = LoadLimit { operations: LISTS as u64, time: Duration::MAX };
        let load = drive(LISTS, limit, move |lane, _| {
            let client = client.clone();
            async move {
                let (mut body, mut bytes) = (client.list(lane).await?, 0);
                while let Some(frame) = body.frame().await {
                    bytes += frame?.data_ref().map_or(0, |data| data.len());
                }
                ensure!(bytes > least, "a list has {bytes} bytes, its objects {least}");
                Ok(())
            }
        })
        .await?;
        let mut sample = sample(subject, before, &load)?;
        sample.more.insert("added_peak_mib", sample.peak_mib - at_first as f64 / 1024.0);
        Ok(sample)
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
