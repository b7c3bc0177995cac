//! A sequence is run against one server, one way: what comes back is a [`RunRecord`].

mod answer;
mod frames;
mod wire;

use std::time::Duration;

use anyhow::{Context, Result};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use serde_json::Value;

pub use answer::{Content, RecordedAnswer};

use crate::request::{SentBody, SequenceRequest};
use crate::sequence::{Sequence, SequenceStep};
use crate::setup::{ServerRoute, ServerSetup};
use crate::template::TemplateScope;
use frames::WatchFrames;

/// The user agent, which names the field manager of every write that is not an apply.
const AGENT: &str = "differential/1.0 (suite)";

/// Everything that one server said in one run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The route to the server.
    pub route: ServerRoute,
    /// The run's namespace.
    pub namespace: String,
    /// First and last second of each stretch between two [`SequenceStep::Later`].
    pub epochs: Vec<(i64, i64)>,
    /// One answer for each step except [`SequenceStep::Later`].
    pub answers: Vec<RecordedAnswer>,
}

impl RunRecord {
    /// Whether a second passed within a stretch: times that are equal in another run may differ in this one.
    pub fn saw_the_clock_move(&self) -> bool {
        self.epochs.iter().any(|(first, last)| first != last)
    }
}

/// Runs a sequence in a namespace that is new and its own.
pub async fn run(
    setup: &ServerSetup,
    sequence: &Sequence,
    route: ServerRoute,
    namespace: &str,
) -> Result<RunRecord> {
    setup.make_namespace(namespace).await?;
    let mut run = SequenceRun {
        setup,
        sequence,
        route,
        namespace,
        bodies: Vec::new(),
        watch: None,
        titles: Vec::new(),
    };
    let mut record = RunRecord {
        route,
        namespace: namespace.to_owned(),
        epochs: vec![(now(), now())],
        answers: Vec::new(),
    };
    for step in &sequence.steps {
        let answer = match step {
            SequenceStep::Later => {
                let began = later(record.epochs.last().map_or(0, |epoch| epoch.1)).await;
                record.epochs.push((began, began));
                continue;
            }
            step => run.step(step).await.with_context(|| format!("step {}", record.answers.len()))?,
        };
        if let Some(epoch) = record.epochs.last_mut() {
            epoch.1 = now();
        }
        run.bodies.push(answer.value());
        record.answers.push(answer);
    }
    Ok(record)
}

struct SequenceRun<'a> {
    setup: &'a ServerSetup,
    sequence: &'a Sequence,
    route: ServerRoute,
    namespace: &'a str,
    bodies: Vec<Value>,
    watch: Option<WatchFrames>,
    titles: Vec<String>,
}

impl SequenceRun<'_> {
    async fn step(&mut self, step: &SequenceStep) -> Result<RecordedAnswer> {
        match step {
            SequenceStep::Ask(request) => self.ask(request).await,
            SequenceStep::Open(request) => self.open(request).await,
            SequenceStep::Events(count) => self.events(*count).await,
            SequenceStep::UntilBookmark => self.until_bookmark().await,
            SequenceStep::UntilEnd => self.until_end().await,
            SequenceStep::Later => anyhow::bail!("has no answer"),
        }
    }

    async fn ask(&self, request: &SequenceRequest) -> Result<RecordedAnswer> {
        let (parts, body) = self.send(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(RecordedAnswer::new(request.title(), parts.status.as_u16(), &parts.headers, &body))
    }

    /// A watch that is refused is an answer like any other.
    async fn open(&mut self, request: &SequenceRequest) -> Result<RecordedAnswer> {
        let (parts, body) = self.send(request).await?.into_parts();
        let (title, code) = (request.title(), parts.status.as_u16());
        self.titles.push(title.clone());
        if !parts.status.is_success() {
            let body = body.collect().await?.to_bytes();
            return Ok(RecordedAnswer::new(title, code, &parts.headers, &body));
        }
        let type_ = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.watch = Some(WatchFrames::new(body, type_));
        Ok(RecordedAnswer::new(title, code, &parts.headers, &bytes::Bytes::new()))
    }

    async fn send(&self, request: &SequenceRequest) -> Result<http::Response<ClientBody>> {
        let scope = TemplateScope {
            target: &self.sequence.target,
            api: self.setup.api(&self.sequence.target, self.route),
            namespace: self.namespace,
            bodies: &self.bodies,
        };
        let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
        let uri = scope.fill(&format!("{}{query}", request.path));
        let mut built = http::Request::builder().method(request.method.clone()).uri(&uri);
        let default = [("user-agent", AGENT), ("accept", "application/json")];
        let is_set = |name: &str| request.headers.iter().any(|(set, _)| set.eq_ignore_ascii_case(name));
        for (name, value) in default.iter().filter(|(name, _)| !is_set(name)) {
            built = built.header(*name, *value);
        }
        for (name, value) in &request.headers {
            built = built.header(name, scope.fill(value));
        }
        let body = match &request.body {
            SentBody::None => Vec::new(),
            SentBody::Text(text) => scope.fill(text).into_bytes(),
            SentBody::Bytes(bytes) => bytes.clone(),
        };
        let client = self.setup.client(&self.sequence.target, self.route, request.anonymous);
        client
            .send(built.body(ClientBody::from(body))?)
            .await
            .with_context(|| format!("{uri} is not answered"))
    }

    async fn events(&mut self, count: usize) -> Result<RecordedAnswer> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            let next = self.next().await.with_context(|| format!("after {events:?}"))?;
            let next = next.with_context(|| format!("the watch ended after {events:?}"))?;
            if !is_periodic_bookmark(&next) {
                events.push(next);
            }
        }
        Ok(self.answer(events))
    }

    async fn until_bookmark(&mut self) -> Result<RecordedAnswer> {
        let mut events: Vec<Value> = Vec::new();
        while events.last().is_none_or(|event| event["type"] != "BOOKMARK") {
            let next = self.next().await.with_context(|| format!("no bookmark after {events:?}"))?;
            events.push(next.with_context(|| format!("the watch ended after {events:?}"))?);
        }
        Ok(self.answer(events))
    }

    async fn until_end(&mut self) -> Result<RecordedAnswer> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await.with_context(|| format!("after {events:?}"))? {
            if !is_periodic_bookmark(&event) {
                events.push(event);
            }
        }
        Ok(self.answer(events))
    }

    async fn next(&mut self) -> Result<Option<Value>> {
        self.watch.as_mut().context("no watch is open")?.next().await
    }

    fn answer(&self, events: Vec<Value>) -> RecordedAnswer {
        RecordedAnswer::of_events(format!("events of {}", self.titles.last().map_or("", |t| t)), events)
    }
}

/// Whether this is a bookmark other than the one that ends the initial events: each server sends those at
/// its own times.
fn is_periodic_bookmark(event: &Value) -> bool {
    let text = event.to_string();
    text.contains("\"BOOKMARK\"") && !text.contains("k8s.io/initial-events-end")
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Waits until the clock shows a later second than `last`, and returns that second.
async fn later(last: i64) -> i64 {
    while now() <= last {
        let rest = 1_000 - jiff::Timestamp::now().subsec_millisecond();
        tokio::time::sleep(Duration::from_millis(u64::try_from(rest).unwrap_or(100))).await;
    }
    now()
}
