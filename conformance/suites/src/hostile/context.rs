//! What an attack has: the setup, the tenant that attacks, its time, and counts of the answers that it got.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::join_all;
use http::{Response, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;

use crate::client::{FlowWindows, ServerEndpoint, UserConnection, UserRequest, UserResponse, status_of};
use crate::setup::{Account, AttackSetup, Tenant};

/// The address of loopback from which attacks come.
pub const ATTACKER_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The pause after an attempt that broke off, so that a server that is gone is not asked in a busy loop.
pub const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Characters of the first refusal that are shown.
const REFUSAL: usize = 120;

/// How large the attack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttackSize {
    /// For each run of the tests.
    Short,
    /// For a soak.
    Long,
}

/// The context of one attack; clones share it.
#[derive(Clone)]
pub struct AttackContext {
    /// Host and Drydock.
    pub setup: Arc<AttackSetup>,
    /// The attacker.
    pub tenant: Arc<Tenant>,
    /// How large the attack is.
    pub size: AttackSize,
    length: Duration,
    end: Arc<OnceLock<Instant>>,
    answers: Arc<Mutex<BTreeMap<String, usize>>>,
    notes: Arc<Mutex<Vec<String>>>,
    fault: Arc<OnceLock<String>>,
    refusal: Arc<OnceLock<String>>,
}

impl AttackContext {
    /// The context of an attack of that length by a tenant.
    pub fn new(
        setup: Arc<AttackSetup>,
        tenant: Arc<Tenant>,
        size: AttackSize,
        length: Duration,
    ) -> AttackContext {
        AttackContext {
            setup,
            tenant,
            size,
            length,
            end: Arc::default(),
            answers: Arc::default(),
            notes: Arc::default(),
            fault: Arc::default(),
            refusal: Arc::default(),
        }
    }

    /// The same context for another tenant.
    pub fn of(&self, tenant: Arc<Tenant>) -> AttackContext {
        AttackContext { tenant, ..self.clone() }
    }

    /// Returns the argument for this size.
    pub fn pick<T>(&self, short: T, long: T) -> T {
        if self.size == AttackSize::Short { short } else { long }
    }

    /// Returns when the attack ends. Its time begins with the first call.
    pub fn end(&self) -> Instant {
        *self.end.get_or_init(|| Instant::now() + self.length)
    }

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end()
    }

    /// Waits until its time is over.
    pub async fn wait(&self) {
        tokio::time::sleep_until(self.end().into()).await;
    }

    /// Connects the tenant's first account to our port, from the attacker's address.
    pub async fn connect(&self) -> Result<UserConnection> {
        self.connect_as(self.tenant.account(), FlowWindows::USUAL).await
    }

    /// The same for any account.
    pub async fn connect_as(&self, account: &Account, windows: FlowWindows) -> Result<UserConnection> {
        account.connect(&self.setup.direct, ATTACKER_ADDRESS, windows).await
    }

    /// The same through the host's aggregator.
    pub async fn connect_through_host(&self) -> Result<UserConnection> {
        self.tenant.account().connect(&self.setup.host, ATTACKER_ADDRESS, FlowWindows::USUAL).await
    }

    /// Connects without credentials.
    pub async fn stranger(&self, endpoint: &ServerEndpoint, from: Ipv4Addr) -> Result<UserConnection> {
        UserConnection::open(endpoint, from, None, FlowWindows::USUAL).await
    }

    /// Counts an answer by its code, or as broken if there was none.
    pub fn note(&self, answer: &Result<UserResponse>) {
        match answer {
            Ok(answer) => {
                self.count(answer.code.as_str());
                if !answer.code.is_success() {
                    self.refusal.get_or_init(|| answer.summary().chars().take(REFUSAL).collect());
                }
                if answer.code == StatusCode::INTERNAL_SERVER_ERROR && !answer.is_undecided() {
                    self.fault.get_or_init(|| answer.summary());
                }
            }
            Err(_) => self.count("broken"),
        }
    }

    /// Counts a gRPC call by the status in its head, or as open if it goes on.
    pub fn note_call(&self, answer: &Result<Response<Incoming>>) {
        match answer {
            Ok(answer) => {
                let message = answer.headers().get("grpc-message").and_then(|message| message.to_str().ok());
                if let Some(message) = message {
                    self.refusal.get_or_init(|| message.chars().take(REFUSAL).collect());
                }
                self.count_call(status_of(answer.headers()), answer.status());
            }
            Err(_) => self.count("broken"),
        }
    }

    fn count_call(&self, status: Option<&str>, code: StatusCode) {
        // gRPC, statuscodes.md: UNKNOWN, INTERNAL and DATA_LOSS are faults.
        if code == StatusCode::INTERNAL_SERVER_ERROR || matches!(status, Some("2" | "13" | "15")) {
            self.fault.get_or_init(|| format!("{code}, grpc-status {status:?}"));
        }
        match status {
            Some(status) => self.count(&format!("grpc-status {status}")),
            None if code.is_success() => self.count("open"),
            None => self.count(code.as_str()),
        }
    }

    /// Counts something.
    pub fn count(&self, what: &str) {
        *self.answers.lock().entry(what.to_owned()).or_default() += 1;
    }

    /// Notes a figure for the summary.
    pub fn say(&self, note: String) {
        self.notes.lock().push(note);
    }

    /// What was counted and noted, and the first refusal: `200x5 422x7 (422 ...)`.
    pub fn summary(&self) -> String {
        let counted = self.answers.lock().iter().map(|(what, n)| format!("{what}x{n}")).collect::<Vec<_>>();
        let refusal = self.refusal.get().map(|message| format!("({message})")).into_iter().collect();
        [counted, self.notes.lock().clone(), refusal].concat().join(" ").replace('\n', " ")
    }

    /// The first answer with an error of the server (500, or its gRPC codes).
    pub fn fault(&self) -> Option<String> {
        self.fault.get().cloned()
    }

    /// A finding about a figure that depends on the machine: it is printed, and judged in the long form alone.
    pub fn figure(&self, is_good: bool, what: String) -> Finding {
        self.say(what.clone());
        match self.size {
            AttackSize::Short => Finding::new(true, format!("not judged in the short form: {what}")),
            _ => Finding::new(is_good, what),
        }
    }

    /// Waits until so many answers have been counted: from then on the attack is under way.
    pub async fn is_under_way(&self, answers: usize) -> Result<()> {
        let late = || format!("no attack is under way: {}", self.summary());
        retry(LIMIT, late, async || Ok(self.answers.lock().values().sum::<usize>() >= answers)).await
    }

    /// How often something was counted.
    pub fn counted(&self, what: &str) -> usize {
        self.answers.lock().get(what).copied().unwrap_or_default()
    }

    /// Repeats `each(lane, round)` in so many tasks until the time is over.
    pub async fn repeat<F, E>(&self, lanes: usize, each: E)
    where
        E: Fn(usize, usize) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        let each = Arc::new(each);
        let lanes = (0..lanes).map(|lane| {
            let (context, each) = (self.clone(), each.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    let done = tokio::time::timeout_at(context.end().into(), each(lane, round)).await;
                    match done {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => {
                            context.count("broken");
                            tokio::time::sleep(RETRY_PAUSE).await;
                        }
                        Err(_) => return context.count("unanswered"),
                    }
                }
            })
        });
        join_all(lanes).await;
    }

    /// Repeats the request `ask(lane, round)` on so many connections of the tenant until the time is over.
    pub async fn repeat_requests<A>(&self, lanes: usize, ask: A)
    where
        A: Fn(usize, usize) -> UserRequest + Send + Sync + 'static,
    {
        let (context, ask) = (self.clone(), Arc::new(ask));
        let connections: Arc<Vec<Mutex<Option<UserConnection>>>> =
            Arc::new((0..lanes).map(|_| Mutex::default()).collect());
        self.repeat(lanes, move |lane, round| {
            let (context, ask, connections) = (context.clone(), ask(lane, round), connections.clone());
            async move {
                let open = connections[lane].lock().take().filter(|connection| !connection.is_closed());
                let connection = match open {
                    Some(open) => open,
                    None => context.connect().await?,
                };
                let answer = connection.ask(&ask).await;
                context.note(&answer);
                if answer.is_ok() {
                    *connections[lane].lock() = Some(connection);
                }
                Ok(())
            }
        })
        .await;
    }

    /// Sends each of these requests once, so many at a time, and counts the answers.
    pub async fn each(&self, asks: Vec<UserRequest>, at_a_time: usize) -> Result<()> {
        let (queue, lanes) = (Arc::new(Mutex::new(asks.into_iter())), at_a_time.max(1));
        let lanes = (0..lanes).map(|_| {
            let (context, queue) = (self.clone(), queue.clone());
            async move {
                let connection = context.connect().await?;
                while let Some(ask) = next(&queue) {
                    context.note(&connection.ask_again(&ask).await);
                }
                anyhow::Ok(())
            }
        });
        join_all(lanes).await.into_iter().collect()
    }
}

fn next(queue: &Mutex<std::vec::IntoIter<UserRequest>>) -> Option<UserRequest> {
    queue.lock().next()
}
