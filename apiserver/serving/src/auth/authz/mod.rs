//! Authorization: the host decides by SubjectAccessReview; answers are remembered for 10 s
//! (k8s.io/apiserver pkg/server/options/authorization.go, plugin/pkg/authorizer/webhook).

mod attributes;
mod question;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewStatus};
use kube::Client;
use parking_lot::Mutex;

pub use attributes::AuthorizationAttributes;

use crate::auth::caller::Caller;
use crate::auth::review::{
    Answers, CacheLimits, HostAnswer, ReviewKey, ReviewLimiter, ReviewRequest, Reviews,
};
use crate::clock;
use crate::request::info::RequestInfo;
use crate::request::user::{SYSTEM_MASTERS, User};

/// How long an answer is remembered.
pub const REMEMBER: Duration = Duration::from_secs(10);
const DECISION_LIMITS: CacheLimits = CacheLimits { most: 8192, fresh: REMEMBER, kept: REMEMBER };
/// Longer questions are not remembered: their length is the caller's choice
/// (k8s.io/apiserver plugin/pkg/authorizer/webhook, maxControlledAttrCacheSize).
const MEMORABLE: usize = 10_000;

/// Maximum bytes of a reason that are kept. It is repeated in the refusal and in the audit log.
const LONGEST_REASON: usize = 1024;

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, for the audit log and for people.
    pub reason: String,
}

/// Decides whether an apply may create an object that does not exist: the request was authorized for `patch` alone.
#[async_trait]
pub trait CreateAuthorizer: Send + Sync + 'static {
    /// Returns 403 if the user may not create the object that the URL names.
    async fn may_create(&self, caller: &Caller, user: &User, info: &RequestInfo) -> Result<(), ApiError>;
}

/// Asks the host whether users may do something.
pub struct Authorizer {
    reviews: Arc<Reviews<SubjectAccessReview, Decision>>,
    known: Arc<Mutex<Answers<Decision>>>,
    is_asked_in_general: Box<dyn Fn(&User) -> bool + Send + Sync>,
}

impl Authorizer {
    /// Asks through `client`, which needs `create` on `subjectaccessreviews` (ClusterRole system:auth-delegator), with a
    /// permit of `limiter`.
    pub fn new(client: Client, limiter: Arc<ReviewLimiter>) -> Self {
        Self::remembering(DECISION_LIMITS, client, limiter)
    }

    fn remembering(room: CacheLimits, client: Client, limiter: Arc<ReviewLimiter>) -> Self {
        Self {
            reviews: Reviews::new(client, limiter),
            known: Arc::new(Mutex::new(Answers::new(room))),
            is_asked_in_general: Box::new(|_| false),
        }
    }

    /// Asks about the users for whom `applies` returns true in general first: without namespace and name, then without
    /// a name, and only where both are denied about the object. An authorizer that denies such a user something by name
    /// which it allows in general is not heard.
    #[must_use]
    pub fn asking_in_general(self, applies: impl Fn(&User) -> bool + Send + Sync + 'static) -> Self {
        Self { is_asked_in_general: Box::new(applies), ..self }
    }

    /// Whether `user` may do what `attributes` say, asked for a request of `caller`, who may act as `user`. An error is
    /// 500 and means that the host could not be asked, or 429 and means that too many questions of `caller` wait.
    pub async fn authorize(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &AuthorizationAttributes,
    ) -> Result<Decision, ApiError> {
        if user.is_in(SYSTEM_MASTERS) || attributes.is_probe_path() {
            return Ok(Decision { allowed: true, reason: String::new() });
        }
        for wider in self.wider(user, attributes) {
            let decision = self.decide(caller, user, &wider).await?;
            if decision.allowed {
                return Ok(decision);
            }
        }
        self.decide(caller, user, attributes).await
    }

    /// What is asked about the user before the question itself.
    fn wider(
        &self,
        user: &User,
        attributes: &AuthorizationAttributes,
    ) -> impl Iterator<Item = AuthorizationAttributes> {
        (self.is_asked_in_general)(user).then(|| attributes.wider()).into_iter().flatten()
    }

    async fn decide(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &AuthorizationAttributes,
    ) -> Result<Decision, ApiError> {
        let key = question::key(user, attributes);
        match self.remembered(&key) {
            Some(decision) => Ok(decision),
            None => self.review(caller, user, attributes, key.into()).await,
        }
    }

    /// The key of a question: questions with equal keys get the same answer.
    pub fn key(user: &User, attributes: &AuthorizationAttributes) -> Vec<u8> {
        question::key(user, attributes)
    }

    /// Returns until when the host's answer is remembered. If it is not, returns the time for an answer that comes
    /// now.
    pub fn known_until(&self, user: &User, attributes: &AuthorizationAttributes) -> Instant {
        let wider = self.wider(user, attributes).map(|wider| question::key(user, &wider));
        let allowed = |key: &Vec<u8>| self.remembered(key).is_some_and(|decision| decision.allowed);
        let key = wider.into_iter().find(allowed).unwrap_or_else(|| question::key(user, attributes));
        let known = self.known.lock().fresh_until(&key);
        known.unwrap_or_else(|| clock::now() + REMEMBER)
    }

    /// Returns 403 in the host's words unless allowed.
    pub async fn require(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &AuthorizationAttributes,
    ) -> Result<(), ApiError> {
        attributes.allowed(user, &self.authorize(caller, user, attributes).await?)
    }

    async fn review(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &AuthorizationAttributes,
        key: ReviewKey,
    ) -> Result<Decision, ApiError> {
        let payer = self.reviews.limiter().payer(caller);
        let (known, put_key, put_for) = (self.known.clone(), key.clone(), payer.clone());
        let finish = move |answer, permit| {
            let decision = decision(answer);
            if put_key.len() < MEMORABLE {
                let bytes = decision.reason.len();
                known.lock().put(put_key, decision.clone(), bytes, put_for, clock::now());
            }
            drop(permit);
            Some(decision)
        };
        let spec = || attributes.review(user);
        let review = || SubjectAccessReview { spec: spec(), ..SubjectAccessReview::default() };
        let remembered = || self.remembered(&key);
        let question = ReviewRequest { key: key.clone(), payer, origin: &caller.origin };
        let decision = self.reviews.answer(question, remembered, review, finish).await?;
        decision.ok_or_else(|| {
            ApiError::internal("the host could not be asked for authorization; see the log of this server")
        })
    }

    fn remembered(&self, key: &[u8]) -> Option<Decision> {
        self.known.lock().get(key, clock::now()).map(|(decision, _)| decision.clone())
    }
}

/// An answer that is too long allows nothing: its end is not read.
fn decision(answer: HostAnswer<SubjectAccessReviewStatus>) -> Decision {
    match answer {
        HostAnswer::Status(status) => {
            let allowed = status.allowed && !status.denied.unwrap_or(false);
            Decision { allowed, reason: cut(status.reason.unwrap_or_default()) }
        }
        HostAnswer::TooLong => {
            Decision { allowed: false, reason: "the host's answer is too long".to_owned() }
        }
    }
}

fn cut(mut reason: String) -> String {
    let length = reason.len();
    if length > LONGEST_REASON {
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
        let left_out = length - reason.len();
        reason.push_str(&format!("... ({left_out} bytes more)"));
        reason.shrink_to_fit();
    }
    reason
}

#[async_trait]
impl CreateAuthorizer for Authorizer {
    async fn may_create(&self, caller: &Caller, user: &User, info: &RequestInfo) -> Result<(), ApiError> {
        let attributes =
            AuthorizationAttributes { verb: "create".to_owned(), ..AuthorizationAttributes::from(info) };
        self.require(caller, user, &attributes).await
    }
}

#[cfg(test)]
mod tests;
