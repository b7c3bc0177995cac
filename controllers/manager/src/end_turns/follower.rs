//! Follows the requests of a maintenance's pods, and ends each turn as it comes.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::MAX_TARGET_INTERCEPTORS;
use drydock_api::time::format_seconds;
use drydock_runtime::cache::{KubeObject, api, api_all};
use drydock_runtime::clock::Clock;
use drydock_runtime::error::min_retry_delay;
use drydock_runtime::{ApiErrorKind, Cacheable, ObjectKey, classify};
use futures::TryStreamExt;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::turn::{DrainScope, TurnState};
use super::{EndTurnsLine, safe};

/// The field manager of the writes, which the event InterceptorSkipped names.
const FIELD_MANAGER: &str = "drydock-end-turns";
/// What fails when the requests cannot be listed or watched.
const READING: &str = "reading EvictionRequests of all namespaces";
/// How long nothing may happen to the requests that are followed.
const PROGRESS_WITHIN: Duration = Duration::from_secs(60);
/// How often a write is repeated that the host could not serve.
const MAX_REPEATS: usize = 8;
/// Wait before that where the host does not say for how long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The requests that are followed, and what was done.
pub(super) struct TurnFollower<'a> {
    client: &'a Client,
    scope: DrainScope,
    is_dry_run: bool,
    to: &'a mut dyn FnMut(EndTurnsLine),
    /// The requests of the first list whose turns have not all ended, with the number of those that were ended.
    open: HashMap<ObjectKey, usize>,
    /// The requests in the present list; none after it.
    listed: HashSet<ObjectKey>,
    is_first_list: bool,
    last_progress: Instant,
    ended: usize,
    problems: usize,
}

impl<'a> TurnFollower<'a> {
    pub(super) fn new(
        client: &'a Client,
        scope: DrainScope,
        is_dry_run: bool,
        to: &'a mut dyn FnMut(EndTurnsLine),
    ) -> Self {
        Self {
            client,
            scope,
            is_dry_run,
            to,
            open: HashMap::new(),
            listed: HashSet::new(),
            is_first_list: true,
            last_progress: Instant::now(),
            ended: 0,
            problems: 0,
        }
    }

    /// How many turns were ended, or would be.
    pub(super) fn ended(&self) -> usize {
        self.ended
    }

    /// How many requests keep their turns, although they were to end.
    pub(super) fn problems(&self) -> usize {
        self.problems
    }

    /// Ends turns until a default interceptor is the next in each request of the first list.
    ///
    /// # Errors
    /// The requests cannot be read, or their turns do not pass on.
    pub(super) async fn follow(&mut self) -> anyhow::Result<()> {
        let events = watcher(api_all::<EvictionRequest>(self.client), watcher::Config::default());
        let mut events = pin!(events.default_backoff());
        let mut failure = None;
        loop {
            let Ok(event) = timeout_at(self.last_progress + PROGRESS_WITHIN, events.try_next()).await else {
                return Err(self.stuck(failure));
            };
            match event {
                Ok(Some(event)) => {
                    failure = None;
                    if self.take_in(event).await {
                        return Ok(());
                    }
                }
                Ok(None) => bail!("the watch of EvictionRequests has ended"),
                Err(error) if is_final(&error) => return Err(error).context(READING),
                Err(error) => failure = Some(error),
            }
        }
    }

    /// The error when nothing happens any more. `failure` is what the watch said last, if that was an error.
    fn stuck(&self, failure: Option<watcher::Error>) -> anyhow::Error {
        match failure {
            Some(error) => anyhow::Error::new(error).context(READING),
            None => anyhow!(
                "the turns of {} pods have ended, and none was passed on for {} s: these pods are terminating, or no \
                 drydock-controller-manager runs",
                self.open.len(),
                PROGRESS_WITHIN.as_secs()
            ),
        }
    }

    /// Returns whether all is done.
    async fn take_in(&mut self, event: Event<KubeObject<EvictionRequest>>) -> bool {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(wire) => {
                let key = wire.object.key();
                self.listed.insert(key.clone());
                if self.is_first_list && self.scope.state_of(&wire.object) != TurnState::Nothing {
                    self.open.insert(key, 0);
                }
                self.advance(&wire.object).await;
            }
            Event::InitDone => {
                self.is_first_list = false;
                let listed = std::mem::take(&mut self.listed);
                self.open.retain(|key, _| listed.contains(key));
            }
            Event::Apply(wire) => self.advance(&wire.object).await,
            Event::Delete(wire) => self.close(&wire.object.key()),
        }
        !self.is_first_list && (self.is_dry_run || self.open.is_empty())
    }

    fn close(&mut self, key: &ObjectKey) {
        if self.open.remove(key).is_some() {
            self.last_progress = Instant::now();
        }
    }

    async fn advance(&mut self, request: &EvictionRequest) {
        let key = request.key();
        let Some(ended) = self.open.get(&key).copied() else { return };
        match self.scope.state_of(request) {
            TurnState::Nothing => self.close(&key),
            TurnState::PassesOn => {}
            TurnState::End(name, later) if self.is_dry_run => {
                let then = later.iter().map(|name| format!(", then that of {name}")).collect::<String>();
                self.ended += 1 + later.len();
                self.change(&format!("would end the turn of {name} for {}{then}", what(request)));
            }
            TurnState::End(name, _) if ended >= MAX_TARGET_INTERCEPTORS => {
                self.problem(request, &format!("{name} has a turn after {ended} others"));
            }
            TurnState::End(name, _) => self.end(request, &name).await,
        }
    }

    /// Ends a turn. A request that has changed since comes again in the watch.
    async fn end(&mut self, request: &EvictionRequest, name: &str) {
        let meta = &request.metadata;
        let api = api::<EvictionRequest>(self.client, &meta.namespace);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        for repeats in 0.. {
            // The server takes the present time alone.
            let now = format_seconds(Clock::SYSTEM.now());
            let patch = json!({
                "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                "status": {"interceptors": [{"name": name, "completionTime": now}]},
            });
            let Err(error) = api.patch_status(&meta.name, &params, &Patch::Strategic(patch)).await else {
                self.ended += 1;
                self.last_progress = Instant::now();
                *self.open.entry(request.key()).or_default() += 1;
                return self.change(&format!("ended the turn of {name} for {}", what(request)));
            };
            match classify(&error) {
                ApiErrorKind::NotFound => return self.close(&request.key()),
                ApiErrorKind::Conflict => return,
                ApiErrorKind::Throttled | ApiErrorKind::Unavailable if repeats < MAX_REPEATS => {
                    tokio::time::sleep(min_retry_delay(&error).unwrap_or(RETRY_AFTER)).await;
                }
                _ => {
                    let said = match error {
                        kube::Error::Api(status) => status.message,
                        other => other.to_string(),
                    };
                    return self.problem(request, &format!("the turn of {name} was not ended: {said}"));
                }
            }
        }
    }

    fn change(&mut self, text: &str) {
        (self.to)(EndTurnsLine::Change(safe(text)));
    }

    fn problem(&mut self, request: &EvictionRequest, why: &str) {
        self.problems += 1;
        self.close(&request.key());
        (self.to)(EndTurnsLine::Problem(safe(&format!("{}: {why}", what(request)))));
    }
}

/// The pod of a request for people.
fn what(request: &EvictionRequest) -> String {
    let pod = request.spec.target.pod.as_ref().map_or("", |pod| pod.name.as_str());
    let node = request.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str());
    format!("pod {}/{pod} on node {node}", request.metadata.namespace)
}

/// Whether it is of no use to try again.
fn is_final(error: &watcher::Error) -> bool {
    let call = match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => error,
        _ => return false,
    };
    matches!(classify(call), ApiErrorKind::Forbidden | ApiErrorKind::Invalid | ApiErrorKind::NotFound)
}
