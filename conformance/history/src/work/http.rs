//! Clients of real API servers: what kubectl and informers ask, by HTTP, of one server or the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::{LIMIT, until_some};
use http::{Method, Request};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::{expected, http_watch, recent};
use crate::context::{BACKEND_DEADLINE, CACHE_DEADLINE, HistoryContext};
use crate::object::{ANNOTATION, value_of};
use crate::place::servers::Servers;
use crate::record::{Moment, Pair, Present, RecordedOperation, RecordedOutcome, RecordedWrite, Rev, Value};

/// All keys that are written.
pub const PREFIX: &str = "/registry/coordination.k8s.io/nodemaintenances/";
/// Where the API serves them.
pub const PATH: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";
const BY: &str = "a client of the API";

/// Starts all clients; they end when it is over.
pub fn start(
    context: &Arc<HistoryContext>,
    servers: &Arc<Servers>,
    mut rng: impl FnMut() -> StdRng,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for which in 0..2 * servers.count() {
        tasks.spawn(run(context.clone(), servers.clone(), which, rng()));
        tasks.spawn(http_watch::run(context.clone(), servers.clone(), which, rng()));
    }
    tasks
}

async fn run(context: Arc<HistoryContext>, servers: Arc<Servers>, which: usize, mut rng: StdRng) {
    let asker = HttpAsker { context: &context, servers: &servers, which };
    while !context.over.is_cancelled() {
        let name = format!("m-{}", rng.random_range(0..6));
        match rng.random_range(0..100) {
            0..15 => asker.create(&name).await,
            15..50 => asker.update(&name, &mut rng).await,
            50..60 => asker.delete(&name, &mut rng).await,
            60..80 => asker.get(&name, &mut rng).await,
            _ => asker.list(&mut rng).await,
        }
    }
}

/// Asks one server.
pub struct HttpAsker<'a> {
    pub context: &'a HistoryContext,
    pub servers: &'a Servers,
    pub which: usize,
}

/// An answer that is an error; code 0 is none at all, or that of a server which is not ready yet.
struct HttpRefusal {
    code: u16,
    why: String,
    /// After which time it came.
    waited: Duration,
}

impl HttpRefusal {
    /// Whether the store tried for as long as it may: 504 and 429 are of a cache that lags.
    fn had_its_time(&self) -> bool {
        self.waited >= if matches!(self.code, 429 | 504) { CACHE_DEADLINE } else { BACKEND_DEADLINE }
    }
}

impl HttpAsker<'_> {
    async fn create(&self, name: &str) {
        let value = self.context.recorder.value();
        self.write(name, None, Some(value), Method::POST, PATH.to_owned(), object(name, value, None)).await;
    }

    async fn update(&self, name: &str, rng: &mut StdRng) {
        let Some(version) = expected(self.context, &key(name), rng) else { return self.create(name).await };
        let value = self.context.recorder.value();
        let body = object(name, value, Some(version));
        self.write(name, Some(version), Some(value), Method::PUT, format!("{PATH}/{name}"), body).await;
    }

    async fn delete(&self, name: &str, rng: &mut StdRng) {
        let Some(version) = expected(self.context, &key(name), rng) else { return };
        let body = json!({"preconditions": {"resourceVersion": version.to_string()}});
        self.write(name, Some(version), None, Method::DELETE, format!("{PATH}/{name}"), body).await;
    }

    async fn write(
        &self,
        name: &str,
        expected: Option<Rev>,
        value: Option<Value>,
        method: Method,
        path: String,
        body: Json,
    ) {
        let called = self.context.recorder.stamp();
        let outcome = match self.ask(method, &path, Some(body)).await {
            Ok(answer) => match (value, revision_of(&answer)) {
                (Some(_), Some(at)) => RecordedOutcome::Committed(at),
                _ => RecordedOutcome::Made,
            },
            Err(refusal) => self.refused(&refusal),
        };
        let key = key(name);
        match &outcome {
            RecordedOutcome::Committed(at) => self.context.saw(&key, Some(*at)),
            RecordedOutcome::Made | RecordedOutcome::Conflict(Present::Version(None)) => {
                self.context.saw(&key, None)
            }
            _ => {}
        }
        let write = RecordedWrite { key, expected, value, guard: None, outcome };
        self.context.recorder.op(BY, called, RecordedOperation::Write(write));
    }

    fn refused(&self, refusal: &HttpRefusal) -> RecordedOutcome {
        match refusal.code {
            404 => RecordedOutcome::Conflict(Present::Version(None)),
            409 => RecordedOutcome::Conflict(Present::Something),
            400..500 => RecordedOutcome::Refused,
            _ => {
                self.context.recorder.count("writes that failed");
                RecordedOutcome::Unknown
            }
        }
    }

    async fn get(&self, name: &str, rng: &mut StdRng) {
        let least = rng.random_ratio(1, 3).then(|| recent(self.context, rng));
        let query = least.map(|least| format!("?resourceVersion={least}")).unwrap_or_default();
        let called = self.context.recorder.stamp();
        let found = match self.ask(Method::GET, &format!("{PATH}/{name}{query}"), None).await {
            Ok(answer) => pair_of(&answer),
            Err(refusal) if refusal.code == 404 => None,
            Err(refusal) => return self.unanswered(called, &refusal),
        };
        let key = key(name);
        let what = match least {
            Some(least) => RecordedOperation::NotOlder { key, found, least },
            None => {
                self.context.saw(&key, found.as_ref().map(|pair| pair.modified));
                RecordedOperation::Get { key, found, revision: None }
            }
        };
        self.context.recorder.op(BY, called, what);
    }

    /// A list, in pages of any size.
    async fn list(&self, rng: &mut StdRng) {
        let least = rng.random_ratio(1, 3).then(|| recent(self.context, rng));
        let exact = least.is_some() && rng.random_bool(0.5);
        let limit = rng.random_range(0..4);
        let mut query = format!("?limit={limit}");
        if let Some(least) = least {
            let how = if exact { "Exact" } else { "NotOlderThan" };
            query += &format!("&resourceVersion={least}&resourceVersionMatch={how}");
        }
        let called = self.context.recorder.stamp();
        let mut found = Vec::new();
        let revision = loop {
            let page = match self.ask(Method::GET, &format!("{PATH}{query}"), None).await {
                Ok(page) => page,
                Err(refusal) => return self.unanswered(called, &refusal),
            };
            found.extend(page["items"].as_array().into_iter().flatten().filter_map(pair_of));
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => query = format!("?limit={limit}&continue={token}"),
                None => break revision_of(&page).unwrap_or_default(),
            }
        };
        self.context.recorder.reached(revision);
        let least = match (exact, least) {
            (true, Some(least)) if least != revision => Rev::MAX,
            (_, least) => least.unwrap_or_default(),
        };
        let keys = drydock_storage::backend::prefix_range(PREFIX);
        let latest = query.starts_with("?limit") && least == 0;
        self.context.recorder.op(
            BY,
            called,
            RecordedOperation::Range { keys, found, revision, latest, least, whole: true },
        );
    }

    /// A list of everything as it is now. What fails at its deadline is asked again.
    pub async fn read_all(&self) -> Result<()> {
        let called = self.context.recorder.stamp();
        let late = || "the final read is not answered".to_owned();
        let page = until_some(LIMIT, late, async || match self.ask(Method::GET, PATH, None).await {
            Ok(page) => Ok(Some(page)),
            Err(refusal) if refusal.had_its_time() => Ok(None),
            Err(refusal) => Err(anyhow::anyhow!(refusal.why)),
        });
        let page = page.await?;
        let found = page["items"].as_array().into_iter().flatten().filter_map(pair_of).collect();
        let (keys, revision) =
            (drydock_storage::backend::prefix_range(PREFIX), revision_of(&page).unwrap_or_default());
        let what = RecordedOperation::Range { keys, found, revision, latest: true, least: 0, whole: true };
        self.context.recorder.op("the final read", called, what);
        Ok(())
    }

    fn unanswered(&self, called: Moment, refusal: &HttpRefusal) {
        match refusal.code {
            // Which of its pages is too old it does not say; compaction is not made here.
            410 => self.context.recorder.op(BY, called, RecordedOperation::Expired { asked: 0 }),
            // The server itself is down.
            0 => self.context.recorder.count("reads of a server that was down"),
            code => {
                let why = format!("{code}: {}", refusal.why);
                self.context.recorder.unanswered(BY, called, refusal.had_its_time(), why);
            }
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Json>) -> Result<Json, HttpRefusal> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let began = Instant::now();
        let refusal = |code, why| HttpRefusal { code, why, waited: began.elapsed() };
        let none = |error: &dyn std::fmt::Display| refusal(0, error.to_string());
        let request = request.body(body).map_err(|error| none(&error))?;
        let served = self.servers.serves(self.which);
        match self.servers.client(self.which).request::<Json>(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status))
                if status.code == 503 && !(served && self.servers.serves(self.which)) =>
            {
                Err(none(&status.message))
            }
            Err(kube::Error::Api(status)) => Err(refusal(status.code, status.message.clone())),
            Err(error) => Err(none(&error)),
        }
    }
}

/// A NodeMaintenance as it is sent.
fn object(name: &str, value: Value, version: Option<Rev>) -> Json {
    let mut object = node_maintenance(name, "Idle", &["nowhere"]);
    object["metadata"]["annotations"] = json!({ANNOTATION: value.to_string()});
    if let Some(version) = version {
        object["metadata"]["resourceVersion"] = version.to_string().into();
    }
    object
}

/// The key of an object.
pub fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The revision that an object or a list carries.
pub fn revision_of(object: &Json) -> Option<Rev> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// An object as it was delivered.
pub fn pair_of(object: &Json) -> Option<Pair> {
    let key = key(object["metadata"]["name"].as_str()?);
    Some(Pair { key, value: value_of(object.as_object()?)?, modified: revision_of(object)?, created: None })
}
