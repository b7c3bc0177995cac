//! Leaders whose terms our API server refuses: a Lease as the host keeps it, and a fence as the server keeps it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;
use crate::events::EventRecorder;
use crate::metrics::Metrics;

const DAY: u64 = 24 * 3600 * 1_000_000;
/// 2026-01-01 and 2036-01-01.
const NOW: u64 = 1_767_225_600_000_000;
const AHEAD: u64 = 2_082_758_400_000_000;
const OURS: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances/n";

/// The host and the API server, whose clock is right.
#[derive(Clone)]
struct Servers {
    clock: Clock,
    lease: Arc<Mutex<Option<Lease>>>,
    newest: Arc<Mutex<u64>>,
}

/// A process that leads, or would like to.
struct Candidate {
    elector: Elector,
    lease: LeaseHandle,
    writes: Client,
    metrics: Metrics,
    recorder: EventRecorder,
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap()
}

impl Servers {
    fn start() -> Self {
        Self { clock: Clock::of_tokio(at(NOW)), lease: Arc::default(), newest: Arc::default() }
    }

    /// A candidate whose clock shows this time.
    fn candidate(&self, identity: &str, clock: u64) -> Candidate {
        let (clock, metrics) = (Clock::of_tokio(at(clock)), Metrics::new());
        let (lease, servers) = (LeaseHandle::pending(clock), self.clone());
        let service = service_fn(move |request: Request<Body>| {
            let servers = servers.clone();
            async move { servers.answer(request).await }
        });
        let client = Client::new(service, "default");
        let recorder = EventRecorder::disconnected(&metrics, clock);
        let config = LeaseConfig::new("ns", "lease", identity);
        let elector = Elector::new(&client, config, lease.clone(), recorder.clone());
        Candidate { elector, writes: with_term(client, lease.clone(), &metrics), lease, metrics, recorder }
    }

    async fn answer(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let token =
            parts.headers.get("drydock-lease-epoch").map(|token| token.to_str().unwrap().parse().unwrap());
        let (code, answer) = match parts.uri.path() {
            OURS => self.write(token.expect("a token")),
            _ => self.on_lease(parts.method.as_str(), body),
        };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
        Ok(response)
    }

    /// The rule of drydock-storage's fence.
    fn write(&self, term: u64) -> (u16, Value) {
        let mut newest = self.newest.lock();
        let now = u64::try_from(self.clock.now().as_microsecond()).unwrap();
        let highest = (now + DAY).max(newest.saturating_add(1_000_000));
        if (*newest..=highest).contains(&term) {
            *newest = term;
            return (200, json!({}));
        }
        let cause = |reason: &str, number: u64| json!({"reason": reason, "message": number.to_string()});
        let causes = [cause("NewestFencingToken", *newest), cause("HighestFencingToken", highest)];
        (
            409,
            json!({"code": 409, "reason": "FencingTokenRefused", "message": "m", "details": {"causes": causes}}),
        )
    }

    fn on_lease(&self, method: &str, body: Value) -> (u16, Value) {
        let mut lease = self.lease.lock();
        let present = lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        let refused = |code: u16, reason: &str| {
            (code, json!({"code": code, "reason": reason, "details": {"name": "lease"}}))
        };
        if method == "GET" {
            return lease.as_ref().map_or(refused(404, "NotFound"), |lease| (200, json!(lease)));
        }
        let mut new: Lease = serde_json::from_value(body).unwrap();
        if new.metadata.resource_version != present {
            return refused(409, "Conflict");
        }
        let version = present.map_or(1, |version| version.parse::<u64>().unwrap() + 1);
        new.metadata.resource_version = Some(version.to_string());
        *lease = Some(new.clone());
        (200, json!(new))
    }

    fn holder(&self) -> Option<String> {
        self.lease.lock().as_ref()?.spec.as_ref()?.holder_identity.clone()
    }
}

impl Candidate {
    async fn leads(&mut self) {
        assert!(self.elector.acquire(&CancellationToken::new()).await);
    }

    /// Makes the elector work for so many seconds; returns how the term ended, if it did.
    async fn holds(&mut self, seconds: u64) -> Option<LeadershipEnd> {
        let stop = CancellationToken::new();
        let hold = self.elector.hold(&stop);
        tokio::time::timeout(Duration::from_secs(seconds), hold).await.ok()
    }

    async fn gives_back(&mut self) {
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(self.elector.hold(&stop).await, LeadershipEnd::Stopped);
    }

    /// Writes to our kinds; returns whether the write is taken.
    async fn writes(&self) -> bool {
        let request = Request::patch(OURS).body(Vec::new()).unwrap();
        match self.writes.request::<Value>(request).await {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(crate::classify(&error), crate::ApiErrorKind::Fenced, "{error:?}");
                false
            }
        }
    }

    fn events(&self) -> Vec<String> {
        let named = |(reason, message)| {
            assert_eq!(reason, "FencingTokenRefused");
            message
        };
        self.recorder.take_all().into_iter().map(named).collect()
    }

    fn refusals(&self) -> String {
        let text = self.metrics.render();
        let line = text.lines().find(|line| line.starts_with("drydock_fencing_token_refusals_total"));
        line.unwrap_or_default().to_owned()
    }
}

/// Regression: each write of every leader was refused for ten years, and neither the log nor an event nor readiness said so.
#[tokio::test(start_paused = true)]
async fn after_a_lease_of_2036_the_controllers_write_again() {
    let servers = Servers::start();
    // The clock of the first leader is wrong. The server does not take its number; it takes one that is not as far ahead.
    let mut wrong = servers.candidate("wrong", AHEAD);
    wrong.leads().await;
    assert!(!wrong.writes().await && wrong.lease.refusal().is_some());
    assert_eq!(wrong.holds(3).await, None);
    assert!(wrong.writes().await && wrong.lease.refusal().is_none());
    assert!(*servers.newest.lock() <= NOW + 2 * DAY);
    let events = wrong.events();
    assert!(matches!(events.as_slice(), [told] if told.contains("too far ahead of its clock")), "{events:?}");
    wrong.gives_back().await;
    // The Lease is in order: nobody is refused after it.
    let mut next = servers.candidate("next", NOW);
    next.leads().await;
    assert!(next.writes().await);
    assert_eq!(next.refusals(), "drydock_fencing_token_refusals_total 0");
    next.gives_back().await;

    // A server of before this rule has taken the number of 2036, and the Lease is made anew, by a right clock.
    *servers.newest.lock() = AHEAD;
    *servers.lease.lock() = None;
    let (log, _guard) = drydock_logging::testing::log("warn");
    let mut right = servers.candidate("right", NOW);
    right.leads().await;
    for _ in 0..3 {
        assert!(!right.writes().await);
    }
    assert!(right.lease.refusal().is_some_and(|refusal| refusal.newest == AHEAD));
    assert_eq!(right.refusals(), "drydock_fencing_token_refusals_total 3");
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    assert_eq!(right.holds(3).await, None);
    assert!(right.writes().await && right.lease.refusal().is_none());
    assert_eq!(right.lease.term(), Some(AHEAD + 1));
    let events = right.events();
    assert!(
        matches!(events.as_slice(), [told] if told.contains("goes on with a term of 2036")),
        "{events:?}"
    );
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    // The ones after it go above it, too.
    right.gives_back().await;
    let mut last = servers.candidate("last", NOW);
    last.leads().await;
    assert!(last.writes().await);
    assert_eq!((last.lease.term(), last.events()), (Some(AHEAD + 2), vec![]));
}

/// A leader that stood still, while another one began, must not take the other's term for a wrong clock.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_outdated_steps_down_and_goes_above_nobody() {
    let servers = Servers::start();
    let (mut old, mut new) = (servers.candidate("old", NOW), servers.candidate("new", NOW));
    old.leads().await;
    assert!(old.writes().await);
    // It is silent for as long as the other one waits.
    new.leads().await;
    assert!(new.writes().await);
    assert!(!old.writes().await && old.lease.refusal().is_some());
    assert_eq!(old.holds(60).await, Some(LeadershipEnd::Lost));
    assert_eq!(old.events(), Vec::<String>::new());
    assert_eq!(servers.holder().as_deref(), Some("new"));
    assert!(new.writes().await && !old.writes().await);
    assert_eq!(Some(*servers.newest.lock()), new.lease.term());
}

/// Somebody deletes the Lease, and another process, whose clock is behind, makes it: its term is the lower one of the two.
#[tokio::test(start_paused = true)]
async fn the_holder_of_a_lease_that_was_made_anew_goes_above_the_one_before() {
    let servers = Servers::start();
    let (mut before, mut holder) = (servers.candidate("before", NOW), servers.candidate("holder", NOW - DAY));
    before.leads().await;
    assert!(before.writes().await);
    *servers.lease.lock() = None;
    holder.leads().await;
    assert!(!holder.writes().await);
    assert_eq!((holder.holds(3).await, before.holds(3).await), (None, Some(LeadershipEnd::Lost)));
    assert!(holder.writes().await && !before.writes().await);
}

/// 9999-12-31 cannot be exceeded: that is said once, and lasts until an admin removes it.
#[tokio::test(start_paused = true)]
async fn a_number_above_all_times_is_told_once_until_it_is_removed() {
    let servers = Servers::start();
    *servers.newest.lock() = u64::MAX;
    let (log, _guard) = drydock_logging::testing::log("warn");
    let mut leader = servers.candidate("leader", NOW);
    leader.leads().await;
    assert!(!leader.writes().await);
    assert_eq!(leader.holds(60).await, None);
    assert!(!leader.writes().await && leader.lease.refusal().is_some());
    let events = leader.events();
    assert!(
        matches!(events.as_slice(), [told] if told.contains("fencing-tokens --reset USER")),
        "{events:?}"
    );
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    *servers.newest.lock() = 0;
    assert!(leader.writes().await && leader.lease.refusal().is_none());
}
