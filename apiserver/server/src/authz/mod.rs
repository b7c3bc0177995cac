//! Who may: the host decides by SubjectAccessReview, remembered for 10 s
//! (k8s.io/apiserver pkg/server/options/authorization.go, plugin/pkg/authorizer/webhook).

mod attributes;
mod question;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewStatus};
use kube::{Api, Client};
use lru::LruCache;
use parking_lot::Mutex;

pub use attributes::Attributes;

use crate::request_info::RequestInfo;
use crate::review;
use crate::user::{SYSTEM_MASTERS, User};
use crate::verbs::CreateAuthorizer;

const REMEMBER: Duration = Duration::from_secs(10);
const CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8191);
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
pub struct Authorizer {
    api: Api<SubjectAccessReview>,
    known: Mutex<LruCache<Vec<u8>, (Decision, Instant)>>,
}

impl Authorizer {
    /// Asks through `client`, which needs `create` on `subjectaccessreviews` (ClusterRole system:auth-delegator).
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), known: Mutex::new(LruCache::new(CAPACITY)) }
    }

    /// Whether `user` may do what `attributes` say; an error is 500 and means that the host could not be asked.
    pub async fn authorize(&self, user: &User, attributes: &Attributes) -> Result<Decision, ApiError> {
        if user.is_in(SYSTEM_MASTERS) || attributes.is_health_path(&ALWAYS_ALLOWED) {
            return Ok(Decision { allowed: true, reason: String::new() });
        }
        let key = question::key(user, attributes);
        if let Some(decision) = self.remembered(&key) {
            return Ok(decision);
        }
        let spec = attributes.review(user);
        let decision = self.ask(&SubjectAccessReview { spec, ..SubjectAccessReview::default() }).await?;
        if key.len() < MEMORABLE {
            self.known.lock().put(key, (decision.clone(), Instant::now()));
        }
        Ok(decision)
    }

    /// 403 with the host's wording unless allowed.
    pub async fn require(&self, user: &User, attributes: &Attributes) -> Result<(), ApiError> {
        attributes.allowed(user, &self.authorize(user, attributes).await?)
    }

    fn remembered(&self, key: &[u8]) -> Option<Decision> {
        let mut known = self.known.lock();
        let (decision, at) = known.get(key)?;
        (at.elapsed() < REMEMBER).then(|| decision.clone())
    }

    async fn ask(&self, review: &SubjectAccessReview) -> Result<Decision, ApiError> {
        let answer = review::ask(&self.api, review).await;
        answer.map(decision).ok_or_else(|| {
            ApiError::internal("the host could not be asked for authorization; see the log of this server")
        })
    }
}

fn decision(status: SubjectAccessReviewStatus) -> Decision {
    let allowed = status.allowed && !status.denied.unwrap_or(false);
    Decision { allowed, reason: status.reason.unwrap_or_default() }
}

#[async_trait]
impl CreateAuthorizer for Authorizer {
    async fn may_create(&self, user: &User, info: &RequestInfo) -> Result<(), ApiError> {
        let attributes = Attributes { verb: "create".to_owned(), ..Attributes::from(info) };
        self.require(user, &attributes).await
    }
}
