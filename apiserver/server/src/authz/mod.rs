//! Who may: the host decides by SubjectAccessReview, remembered for 10 s
//! (k8s.io/apiserver pkg/server/options/authorization.go, plugin/pkg/authorizer/webhook).

mod attributes;
mod question;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewStatus};
use kube::{Api, Client};
use parking_lot::Mutex;

pub use attributes::Attributes;

use crate::request_info::RequestInfo;
use crate::review::{self, Answering, Answers, Caller, Flight, Flights, Key, Payer, Room, Turn, Turns};
use crate::user::{SYSTEM_MASTERS, User};
use crate::verbs::CreateAuthorizer;

const REMEMBER: Duration = Duration::from_secs(10);
const ROOM: Room = Room { most: 8192, fresh: REMEMBER, kept: REMEMBER };
/// Longer questions are not remembered: their length is the caller's choice
/// (k8s.io/apiserver plugin/pkg/authorizer/webhook, maxControlledAttrCacheSize).
const MEMORABLE: usize = 10_000;

/// Paths that anybody may get; what stands below them tells reasons
/// (k8s.io/apiserver pkg/server/options, NewDelegatingAuthorizationOptions).
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, for the audit log and for people.
    pub reason: String,
}

/// Asks the host who may do what.
pub struct Authorizer(Arc<Reviewer>);

struct Reviewer {
    api: Api<SubjectAccessReview>,
    turns: Arc<Turns>,
    answering: Answering,
    flights: Arc<Flights<Decision>>,
    known: Mutex<Answers<Decision>>,
}

impl Authorizer {
    /// Asks through `client`, which needs `create` on `subjectaccessreviews` (ClusterRole system:auth-delegator), when it
    /// is the caller's turn by `turns`.
    pub fn new(client: Client, turns: Arc<Turns>) -> Self {
        Self::remembering(ROOM, client, turns)
    }

    fn remembering(room: Room, client: Client, turns: Arc<Turns>) -> Self {
        Self(Arc::new(Reviewer {
            api: Api::all(client),
            turns,
            answering: Answering::default(),
            flights: Flights::new(),
            known: Mutex::new(Answers::new(room)),
        }))
    }

    /// Whether `user` may do what `attributes` say, asked for a request of `caller`, who may act as `user`. An error is
    /// 500 and means that the host could not be asked, or 429 and means that too many questions of `caller` wait.
    pub async fn authorize(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &Attributes,
    ) -> Result<Decision, ApiError> {
        if user.is_in(SYSTEM_MASTERS) || attributes.is_health_path(&ALWAYS_ALLOWED) {
            return Ok(Decision { allowed: true, reason: String::new() });
        }
        let key = question::key(user, attributes);
        match self.0.remembered(&key) {
            Some(decision) => Ok(decision),
            None => self.review(caller, user, attributes, key.into()).await,
        }
    }

    /// 403 with the host's wording unless allowed.
    pub async fn require(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &Attributes,
    ) -> Result<(), ApiError> {
        attributes.allowed(user, &self.authorize(caller, user, attributes).await?)
    }

    async fn review(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &Attributes,
        key: Key,
    ) -> Result<Decision, ApiError> {
        let payer = caller.payer();
        let turn = self.0.turns.turn(payer.clone(), &caller.origin);
        let ask = |turn, flight| {
            let spec = attributes.review(user);
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let (reviewer, key) = (self.0.clone(), key.clone());
            async move { reviewer.ask(review, key, payer, turn, flight).await }
        };
        let answer = self.0.flights.answer(key.clone(), turn, || self.0.remembered(&key), ask).await?;
        answer.ok_or_else(|| {
            ApiError::internal("the host could not be asked for authorization; see the log of this server")
        })
    }
}

impl Reviewer {
    fn remembered(&self, key: &[u8]) -> Option<Decision> {
        self.known.lock().get(key, Instant::now()).map(|(decision, _)| decision.clone())
    }

    /// Asks, and remembers the answer.
    async fn ask(
        &self,
        review: SubjectAccessReview,
        key: Key,
        payer: Payer,
        turn: Turn,
        flight: Flight<Decision>,
    ) -> Option<Decision> {
        let answer = review::ask(&self.api, &review, &self.answering, || flight.is_awaited()).await;
        let decision = answer.map(decision)?;
        if key.len() < MEMORABLE {
            self.known.lock().put(key, decision.clone(), payer, Instant::now());
        }
        drop(turn);
        Some(decision)
    }
}

fn decision(status: SubjectAccessReviewStatus) -> Decision {
    let allowed = status.allowed && !status.denied.unwrap_or(false);
    Decision { allowed, reason: status.reason.unwrap_or_default() }
}

#[async_trait]
impl CreateAuthorizer for Authorizer {
    async fn may_create(&self, caller: &Caller, user: &User, info: &RequestInfo) -> Result<(), ApiError> {
        let attributes = Attributes { verb: "create".to_owned(), ..Attributes::from(info) };
        self.require(caller, user, &attributes).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;
    use crate::review::Origin;

    fn caller(name: &str) -> Caller {
        let user = User { name: name.to_owned(), ..User::default() };
        Caller::new(Arc::new(user), Origin::local(Duration::from_secs(600)))
    }

    /// Any writer pushed everybody's answers out by asking about 8,192 names within 10 s.
    #[tokio::test]
    async fn one_callers_names_do_not_push_out_anothers() {
        let times = Arc::<AtomicUsize>::default();
        let counted = times.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, SeqCst);
            let answer = Body::from(br#"{"status":{"allowed":true}}"#.to_vec());
            async { Ok::<_, Infallible>(Response::new(answer)) }
        });
        let room = Room { most: 10, fresh: Duration::from_secs(600), kept: Duration::from_secs(600) };
        let authorizer = Authorizer::remembering(room, Client::new(service, "default"), Arc::default());
        let (ann, bob) = (caller("ann"), caller("bob"));
        let about = |name: String| Attributes { resource: "things".into(), name, ..Attributes::default() };
        let mine = about("mine".into());
        authorizer.require(&ann, &ann.user, &mine).await.unwrap();
        for i in 0..100 {
            // Half of them are about ann, as whom bob acts: they are bob's.
            let user = if i % 2 == 0 { &ann.user } else { &bob.user };
            authorizer.require(&bob, user, &about(format!("{i}"))).await.unwrap();
        }
        authorizer.require(&ann, &ann.user, &mine).await.unwrap();
        assert_eq!(times.load(SeqCst), 101);
    }
}
