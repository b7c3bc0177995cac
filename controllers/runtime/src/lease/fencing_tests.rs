//! Leaders whose terms our API server refuses: a Lease as the host keeps it, and a fence as the server keeps it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http::{Request, Response};
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
/// Objects of the host's kinds: a webhook refuses writes of the first one in our server's words.
const FORGED: &str = "/api/v1/nodes/forged";
const TAKEN: &str = "/api/v1/nodes/taken";

/// The host and the API server, whose clock is right.
#[derive(Clone)]
struct Servers {
    clock: Clock,
    lease: Arc<Mutex<Option<Value>>>,
    newest: Arc<Mutex<u64>>,
    /// The connection breaks before the next write of the Lease is answered.
    is_breaking: Arc<Mutex<bool>>,
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
        Self::at(NOW)
    }

    /// Servers of which ours has a clock that shows this time.
    fn at(clock: u64) -> Self {
        let (lease, newest, is_breaking) = <_>::default();
        Self { clock: Clock::of_tokio(at(clock)), lease, newest, is_breaking }
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
            FORGED => refused_token(u64::MAX - 1, u64::MAX),
            TAKEN => (200, json!({})),
            _ => self.on_lease(parts.method.as_str(), body),
        };
        if parts.method != "GET" && parts.uri.path() != OURS && std::mem::take(&mut *self.is_breaking.lock())
        {
            return Err(kube::Error::Service("connection reset".into()));
        }
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
        refused_token(*newest, highest)
    }

    fn on_lease(&self, method: &str, body: Value) -> (u16, Value) {
        let mut lease = self.lease.lock();
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let present = lease.as_ref().and_then(version);
        let refused = |code: u16, reason: &str| {
            (code, json!({"code": code, "reason": reason, "details": {"name": "lease"}}))
        };
        if method == "GET" {
            return lease.as_ref().map_or(refused(404, "NotFound"), |lease| (200, lease.clone()));
        }
        let mut new = body;
        if version(&new) != present {
            return refused(409, "Conflict");
        }
        let next = present.map_or(1, |version| version.parse::<u64>().unwrap() + 1);
        new["metadata"]["resourceVersion"] = json!(next.to_string());
        *lease = Some(new.clone());
        (200, new)
    }

    /// Somebody edits the Lease.
    fn edit(&self, field: &str, value: &str) {
        let (mut lease, edited) = (self.lease.lock(), json!({"metadata": {"resourceVersion": "1000"}}));
        let lease = lease.get_or_insert(edited);
        lease["spec"][field] = json!(value);
        lease["metadata"]["resourceVersion"] = json!("1000");
    }

    fn holder(&self) -> Option<String> {
        Some(self.lease.lock().as_ref()?["spec"]["holderIdentity"].as_str()?.to_owned())
    }
}

fn refused_token(newest: u64, highest: u64) -> (u16, Value) {
    let cause = |reason: &str, number: u64| json!({"reason": reason, "message": number.to_string()});
    let causes = [cause("NewestFencingToken", newest), cause("HighestFencingToken", highest)];
    let details = json!({"causes": causes});
    (409, json!({"code": 409, "reason": "FencingTokenRefused", "message": "m", "details": details}))
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

    /// Waits for the Lease for so many seconds, which is not long enough.
    async fn waits(&mut self, seconds: u64) {
        let stop = CancellationToken::new();
        let acquire = self.elector.acquire(&stop);
        assert!(tokio::time::timeout(Duration::from_secs(seconds), acquire).await.is_err());
    }

    /// Writes to our kinds; returns whether the write is taken.
    async fn writes(&self) -> bool {
        self.writes_to(OURS).await
    }

    async fn writes_to(&self, path: &str) -> bool {
        let request = Request::patch(path).body(Vec::new()).unwrap();
        match self.writes.request::<Value>(request).await {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(crate::classify(&error), crate::ApiErrorKind::RefusedToken, "{error:?}");
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
    // The clock of the first leader is wrong. The server does not take its number; it takes one above those before.
    let mut wrong = servers.candidate("wrong", AHEAD);
    wrong.leads().await;
    assert!(!wrong.writes().await && wrong.lease.refused_token().is_some());
    assert_eq!(wrong.holds(3).await, None);
    assert!(wrong.writes().await && wrong.lease.refused_token().is_none());
    assert_eq!(*servers.newest.lock(), 1);
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
    assert!(right.lease.refused_token().is_some_and(|refused| refused.newest == AHEAD));
    assert_eq!(right.refusals(), "drydock_fencing_token_refusals_total 3");
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    assert_eq!(right.holds(3).await, None);
    assert!(right.writes().await && right.lease.refused_token().is_none());
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
    assert!(!old.writes().await && old.lease.refused_token().is_some());
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
    assert!(!leader.writes().await && leader.lease.refused_token().is_some());
    let events = leader.events();
    assert!(
        matches!(events.as_slice(), [told] if told.contains("fencing-tokens --reset USER")),
        "{events:?}"
    );
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    *servers.newest.lock() = 0;
    assert!(leader.writes().await && leader.lease.refused_token().is_none());
}

/// Regression: after a refusal the number was the highest that the server took, as long as nothing was written the same one
/// for each leader: a write of the first one that came late was taken, in the term of the second one.
#[tokio::test(start_paused = true)]
async fn no_two_leaders_go_on_with_one_number() {
    // The server's clock is two days behind. It has taken a number far below it, or one of before, ahead of what it takes.
    for newest in [NOW - 30 * DAY, NOW - DAY / 2] {
        for dies in [false, true] {
            let servers = Servers::at(NOW - 2 * DAY);
            *servers.newest.lock() = newest;
            let mut first = servers.candidate("first", NOW);
            first.leads().await;
            assert!(!first.writes().await);
            assert_eq!(first.holds(3).await, None);
            // It stands still before its first write.
            if dies {
                servers.candidate("dies at once", NOW).leads().await;
            }
            let mut second = servers.candidate("second", NOW);
            second.leads().await;
            assert!(!second.writes().await);
            assert_eq!(second.holds(3).await, None);
            assert!(second.writes().await, "{newest} {dies}");
            assert!(!first.writes().await, "{newest} {dies}");
            assert!(second.writes().await && second.lease.term() > first.lease.term());
        }
    }
}

/// The first write of a leader with a right clock comes late, after one whose clock is wrong has gone on with a lower number
/// than its own.
#[tokio::test(start_paused = true)]
async fn the_number_after_a_wrong_one_is_above_those_that_have_written_nothing_yet() {
    let servers = Servers::start();
    let (mut right, mut wrong) = (servers.candidate("right", NOW), servers.candidate("wrong", AHEAD));
    right.leads().await;
    wrong.leads().await;
    assert!(!wrong.writes().await);
    assert_eq!(wrong.holds(3).await, None);
    assert!(wrong.writes().await && !right.writes().await);
    assert_eq!(wrong.lease.term(), right.lease.term().map(|term| term + 1));
}

/// Two programs have Leases of their own and one user: each makes the other's term outdated. Regression: for ever, every two
/// seconds, with two lines of the log.
#[tokio::test(start_paused = true)]
async fn two_holders_that_share_a_user_exceed_each_other_less_and_less_often() {
    let servers = Servers::start();
    let others = Servers { lease: Arc::default(), ..servers.clone() };
    let (log, _guard) = drydock_logging::testing::log("warn");
    let (mut one, mut other) = (servers.candidate("one", NOW), others.candidate("other", NOW + 1000));
    one.leads().await;
    other.leads().await;
    for _ in 0..600 {
        one.writes().await;
        other.writes().await;
        assert_eq!((one.holds(3).await, other.holds(3).await), (None, None));
    }
    let (ones, others) = (one.events().len(), other.events().len());
    assert!((3..=16).contains(&ones) && (3..=16).contains(&others), "{ones} {others}");
    assert!(log.lines().len() <= 66, "{}", log.lines().len());
}

/// A webhook of the host answers in our server's words: nothing follows from that.
#[tokio::test(start_paused = true)]
async fn an_answer_to_a_write_of_the_hosts_kinds_says_nothing_of_the_term() {
    let servers = Servers::start();
    let mut leader = servers.candidate("leader", NOW);
    leader.leads().await;
    let term = leader.lease.term();
    assert!(!leader.writes_to(FORGED).await);
    assert_eq!((leader.lease.refused_token(), leader.holds(3).await), (None, None));
    assert_eq!(leader.refusals(), "drydock_fencing_token_refusals_total 0");
    assert_eq!((leader.lease.term(), leader.events()), (term, vec![]));
    *servers.newest.lock() = u64::MAX;
    assert!(!leader.writes().await);
    assert!(leader.writes_to(TAKEN).await && leader.lease.refused_token().is_some());
}

/// Regression: nobody was told, because the term that the Lease showed then was another one.
#[tokio::test(start_paused = true)]
async fn a_number_is_told_of_though_the_answer_of_the_lease_was_lost() {
    let servers = Servers::start();
    *servers.newest.lock() = AHEAD;
    let mut leader = servers.candidate("leader", NOW);
    leader.leads().await;
    assert!(!leader.writes().await);
    *servers.is_breaking.lock() = true;
    assert_eq!(leader.holds(3).await, None);
    assert!(!*servers.is_breaking.lock() && leader.events().is_empty());
    assert_eq!(leader.holds(3).await, None);
    assert_eq!((leader.lease.term(), leader.events().len()), (Some(AHEAD + 1), 1));
    assert!(leader.writes().await);
}

/// Regression: who has only waited for a Lease forgot its number when somebody deleted it, and began with a lower one.
#[tokio::test(start_paused = true)]
async fn who_makes_a_deleted_lease_goes_above_what_was_seen_there() {
    let servers = Servers::start();
    let (mut ahead, mut waits) = (servers.candidate("ahead", NOW + DAY / 2), servers.candidate("waits", NOW));
    ahead.leads().await;
    waits.waits(5).await;
    *servers.lease.lock() = None;
    waits.leads().await;
    assert_eq!(waits.lease.term(), ahead.lease.term().map(|term| term + 1));
    assert!(waits.writes().await && !ahead.writes().await);
}

/// Regression: a time that jiff does not know made the Lease unreadable, and nobody led.
#[tokio::test(start_paused = true)]
async fn a_lease_of_the_last_days_of_all_times_is_taken_over() {
    let servers = Servers::start();
    servers.edit("holderIdentity", "gone");
    for field in ["acquireTime", "renewTime"] {
        servers.edit(field, "9999-12-31T23:59:59.000000Z");
    }
    let mut leader = servers.candidate("leader", NOW);
    leader.waits(10).await;
    leader.leads().await;
    assert!(leader.writes().await && leader.lease.term() < Some(NOW + DAY));
    // It is edited under its holder, whose term goes on.
    let term = leader.lease.term();
    servers.edit("acquireTime", "9999-12-31T23:59:59.000000Z");
    assert_eq!((leader.holds(3).await, leader.lease.term()), (None, term));
    assert!(leader.writes().await);
}
