//! A tenant who reads, writes and watches through the aggregator, as kubectl and controllers do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio_util::sync::CancellationToken;

use super::{GUARD, RequestCount, pause};
use crate::client::{FlowWindows, NotReady, UserConnection, UserRequest, UserResponse};
use crate::setup::{AttackSetup, Tenant, USUAL_ADDRESS};

const PAUSE: Duration = Duration::from_millis(200);
/// The annotation whose number each write increments.
pub(super) const BEAT: &str = "beat";
/// The annotation that the status stream shows; each write increments the number in its reason.
const MAINTENANCES: &str = "nodemaintenance.k8s.io/maintenances";

/// The tenant.
pub struct OtherTenant {
    pub(super) setup: Arc<AttackSetup>,
    pub(super) tenant: Tenant,
    /// Its one request, which no other client touches.
    name: String,
    /// The last number whose write was acknowledged, and whether more will come.
    written: Sender<(u64, bool)>,
}

/// How it follows what it writes.
#[derive(Clone, Copy, Debug)]
pub enum FollowWay {
    /// By a watch through the aggregator.
    Watch,
    /// By the gRPC status stream.
    Stream,
}

/// How its watch went.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth {
    /// How often it ended before it was asked to.
    pub breaks: usize,
    /// How often a call was refused because the server was not ready for it.
    pub not_ready: usize,
    /// A write that was acknowledged and never delivered.
    pub missed: Option<u64>,
    /// What the first break, or refusal, was.
    pub first: Option<String>,
}

impl OtherTenant {
    /// A namespace of its own, with one request.
    pub async fn start(setup: &Arc<AttackSetup>) -> Result<OtherTenant> {
        let tenant = setup.tenant("other-tenant", 1).await?;
        let name = setup.lasting_request(&tenant).await?;
        Ok(OtherTenant { setup: setup.clone(), tenant, name, written: Sender::new((0, true)) })
    }

    /// Reads and writes until it is over.
    pub async fn ask(self: Arc<Self>, stop: CancellationToken) -> RequestCount {
        let (mut count, mut connection) = (RequestCount::default(), None);
        self.written.send_modify(|written| written.1 = true);
        loop {
            let beat = self.written.borrow().0 + 1;
            let shown = json!([{"name": BEAT, "reason": beat.to_string()}]).to_string();
            let annotations = json!({BEAT: beat.to_string(), MAINTENANCES: shown});
            let write = UserRequest::merge(self.path(), &json!({"metadata": {"annotations": annotations}}));
            if self.one(&mut connection, &write, &mut count).await {
                self.written.send_modify(|written| written.0 = beat);
            }
            for read in [self.path(), self.tenant.requests()] {
                self.one(&mut connection, &UserRequest::get(read), &mut count).await;
            }
            if pause(&stop, PAUSE).await {
                self.written.send_modify(|written| written.1 = false);
                return count;
            }
        }
    }

    async fn one(
        &self,
        connection: &mut Option<UserConnection>,
        ask: &UserRequest,
        count: &mut RequestCount,
    ) -> bool {
        let began = Instant::now();
        let asked = tokio::time::timeout(GUARD, async {
            let open = self.connect(connection.take()).await?;
            let answer = open.decided(ask).await?;
            *connection = Some(open);
            ensure!(answer.code.is_success(), "{}", answer.summary());
            Ok(())
        });
        let failure = match asked.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{} {}: {error:#}", ask.method, ask.path)),
            Err(_) => Some(format!("{} {}: no answer within {GUARD:?}", ask.method, ask.path)),
        };
        let good = failure.is_none();
        count.note(began, failure);
        good
    }

    /// Watches until it is over and the last write has been seen.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken, way: FollowWay) -> WatchHealth {
        let mut watched = WatchHealth::default();
        let mut seen = WatchSeen { beat: self.written.borrow().0, ..WatchSeen::default() };
        loop {
            let (began, mut written) = (Instant::now(), self.written.subscribe());
            let over = async {
                stop.cancelled().await;
                tokio::time::sleep(GUARD).await;
            };
            let ended = tokio::select! {
                ended = async {
                    match way {
                        FollowWay::Watch => self.follow(&mut seen, &mut written).await,
                        FollowWay::Stream => self.follow_stream(&mut seen.beat, &mut written).await,
                    }
                } => ended,
                () = over => {
                    watched.missed = Some(written.borrow().0);
                    return watched;
                }
            };
            match ended {
                Ok(()) => return watched,
                Err(error) => {
                    let of_kind =
                        if error.is::<NotReady>() { &mut watched.not_ready } else { &mut watched.breaks };
                    *of_kind += 1;
                    let after = began.elapsed().as_secs_f32();
                    watched.first.get_or_insert_with(|| format!("after {after:.1} s: {error:#}"));
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads events of one watch; Ok when nothing more will be written and all has been seen.
    async fn follow(&self, seen: &mut WatchSeen, written: &mut Receiver<(u64, bool)>) -> Result<()> {
        let connection = self.connect(None).await?;
        let from = match seen.revision.take() {
            Some(revision) => revision,
            None => self.list(&connection, seen).await?,
        };
        let path = format!("{}?watch=1&timeoutSeconds=3600&resourceVersion={from}", self.tenant.requests());
        seen.revision = Some(from);
        let answer = connection.send(&UserRequest::get(path)).await?;
        if !answer.status().is_success() {
            return Err(refused_watch(answer).await);
        }
        let (mut body, mut text) = (answer.into_body(), Vec::new());
        loop {
            let (last, more) = *written.borrow_and_update();
            if !more && seen.beat >= last {
                return Ok(());
            }
            let frame = tokio::select! {
                frame = body.frame() => frame.context("it ended")??,
                changed = written.changed() => { changed?; continue }
            };
            text.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                seen.event(&serde_json::from_slice(&text.drain(..=end).collect::<Vec<u8>>())?)?;
            }
        }
    }

    async fn list(&self, connection: &UserConnection, seen: &mut WatchSeen) -> Result<String> {
        let list = connection.done(&UserRequest::get(self.tenant.requests())).await?;
        for object in list["items"].as_array().into_iter().flatten() {
            seen.object(object)?;
        }
        list["metadata"]["resourceVersion"].as_str().map(str::to_owned).context("a list without a revision")
    }

    async fn connect(&self, open: Option<UserConnection>) -> Result<UserConnection> {
        match open.filter(|connection| !connection.is_closed()) {
            Some(open) => Ok(open),
            None => self.tenant.account().connect(&self.setup.host, USUAL_ADDRESS, FlowWindows::USUAL).await,
        }
    }

    fn path(&self) -> String {
        self.tenant.request(&self.name)
    }
}

/// Reads why a watch was refused; with [`NotReady`] in the error if that decides nothing.
async fn refused_watch(answer: Response<Incoming>) -> anyhow::Error {
    match UserResponse::read(answer).await {
        Ok(refusal) => {
            let error = anyhow!("a watch was answered {}", refusal.summary());
            if refusal.is_undecided() { error.context(NotReady) } else { error }
        }
        Err(error) => error.context("a watch was refused"),
    }
}

/// What a watch has delivered.
#[derive(Default)]
struct WatchSeen {
    revision: Option<String>,
    beat: u64,
}

impl WatchSeen {
    fn event(&mut self, event: &Value) -> Result<()> {
        let object = &event["object"];
        if event["type"] == "ERROR" {
            self.revision = None;
            anyhow::bail!("the watch delivered an error: {}", object["message"]);
        }
        self.revision = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        self.object(object)
    }

    fn object(&mut self, object: &Value) -> Result<()> {
        if let Some(beat) = object["metadata"]["annotations"][BEAT].as_str() {
            self.beat = beat.parse()?;
        }
        Ok(())
    }
}
