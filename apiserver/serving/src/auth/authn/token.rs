//! Bearer tokens: the host's TokenReview, for our audiences, remembered for 10 s
//! (k8s.io/apiserver pkg/authentication/token/cache, plugin/pkg/authenticator/token/webhook).

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use http::{HeaderMap, HeaderValue};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo};
use kube::Client;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::AuthenticationError;
use crate::auth::caller::Origin;
use crate::auth::review::{
    Answers, CacheLimits, HostAnswer, Payer, ReviewKey, ReviewLimiter, ReviewPermit, ReviewRequest, Reviews,
};
use crate::clock;
use crate::request::user::User;

/// How long an answer is used without asking again.
const FRESH: Duration = Duration::from_secs(10);
/// How long the user of a token is remembered: until then the next review of the token counts for that user, not
/// for a stranger.
const KNOWN: Duration = Duration::from_secs(3600);
const CAPACITY: usize = 8192;
/// Maximum bytes of a token. A longer one is refused without a review.
const MAX_TOKEN_BYTES: usize = 32 << 10;

/// Asks the host whose token it is.
pub struct TokenReviewer {
    reviews: Arc<Reviews<TokenReview, Option<Arc<User>>>>,
    cache: Arc<RememberedTokens>,
    audiences: Option<Vec<String>>,
}

/// The host's answers, by hashes of tokens, so that no token stays in memory longer than its review. Known and unknown
/// tokens are apart, as any client can make up unknown ones.
struct RememberedTokens {
    known: Mutex<Answers<Arc<User>>>,
    unknown: Mutex<Answers<()>>,
}

/// What is remembered of a token.
enum Remembered {
    /// Its user; `None` if the host knows none.
    Answer(Option<Arc<User>>),
    /// The user that it had when the host was last asked.
    Was(Arc<User>),
    Nothing,
}

impl TokenReviewer {
    /// Asks through `client`, which needs `create` on `tokenreviews` (ClusterRole system:auth-delegator), with a
    /// permit of `limiter`.
    pub fn new(client: Client, limiter: Arc<ReviewLimiter>) -> Self {
        let known = CacheLimits { most: CAPACITY, fresh: FRESH, kept: KNOWN };
        Self::remembering(known, CacheLimits { kept: FRESH, ..known }, client, limiter)
    }

    fn remembering(
        known: CacheLimits,
        unknown: CacheLimits,
        client: Client,
        limiter: Arc<ReviewLimiter>,
    ) -> Self {
        let (known, unknown) = (Mutex::new(Answers::new(known)), Mutex::new(Answers::new(unknown)));
        Self {
            reviews: Reviews::new(client, limiter),
            cache: Arc::new(RememberedTokens { known, unknown }),
            audiences: None,
        }
    }

    /// Believes only tokens for one of these audiences; with none, those for the host's own.
    #[must_use]
    pub fn for_audiences(self, audiences: Vec<String>) -> Self {
        Self { audiences: (!audiences.is_empty()).then_some(audiences), ..self }
    }

    /// The token's user, who is in `system:authenticated`.
    ///
    /// # Errors
    /// 401 if the host does not know the token; that the host gave no answer; 429 if too many tokens of the same origin
    /// wait to be asked about.
    pub async fn review(&self, token: &str, origin: &Origin) -> Result<Arc<User>, AuthenticationError> {
        self.owner(token, origin).await?.ok_or_else(|| ApiError::unauthorized().into())
    }

    /// The token's user, `None` if the host knows of none.
    ///
    /// # Errors
    /// Those of [`review`](Self::review) without the first.
    pub(crate) async fn owner(
        &self,
        token: &str,
        origin: &Origin,
    ) -> Result<Option<Arc<User>>, AuthenticationError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Ok(None);
        }
        let key = key_of(token);
        let limiter = self.reviews.limiter();
        let payer = match self.cache.get(&key) {
            Remembered::Answer(answer) => return Ok(answer),
            Remembered::Was(user) => limiter.user(&user),
            Remembered::Nothing => Payer::stranger(origin),
        };
        let known = || match self.cache.get(&key) {
            Remembered::Answer(answer) => Some(answer),
            Remembered::Was(_) | Remembered::Nothing => None,
        };
        let review = || TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: self.audiences.clone() },
            ..TokenReview::default()
        };
        let (reviews, cache, put_key, stranger) =
            (self.reviews.clone(), self.cache.clone(), key.clone(), Payer::stranger(origin));
        let audiences = self.audiences.clone();
        let finish = move |answer: HostAnswer<TokenReviewStatus>, permit: ReviewPermit| {
            // An answer that is too long is none: no user has so many groups.
            let HostAnswer::Status(status) = answer else { return None };
            let is_known = status.authenticated.unwrap_or(false) && is_for(audiences.as_deref(), &status);
            let user = status.user.filter(|_| is_known).and_then(user);
            let payer = user.as_ref().map_or(stranger, |user| reviews.limiter().user(user));
            cache.put(put_key, user.clone(), payer);
            if user.is_some() {
                permit.end_known();
            }
            Some(user)
        };
        let question = ReviewRequest { key: key.clone(), payer, origin };
        let answer = self.reviews.answer(question, known, review, finish).await?;
        answer.ok_or(AuthenticationError::NoAnswer)
    }

    /// Returns until when the user of the token is remembered. If it is not, returns the time for an answer that
    /// comes now.
    pub(super) fn known_until(&self, token: &str) -> Instant {
        let known = self.cache.known.lock().fresh_until(&key_of(token));
        known.unwrap_or_else(|| clock::now() + FRESH)
    }
}

impl RememberedTokens {
    fn get(&self, key: &ReviewKey) -> Remembered {
        let now = clock::now();
        if let Some((user, is_fresh)) = self.known.lock().get(key, now) {
            let user = user.clone();
            return if is_fresh { Remembered::Answer(Some(user)) } else { Remembered::Was(user) };
        }
        match self.unknown.lock().get(key, now) {
            Some(_) => Remembered::Answer(None),
            None => Remembered::Nothing,
        }
    }

    fn put(&self, key: ReviewKey, user: Option<Arc<User>>, payer: Payer) {
        let now = clock::now();
        match user {
            Some(user) => {
                let bytes = user.bytes();
                self.known.lock().put(key, user, bytes, payer, now);
            }
            None => {
                self.known.lock().remove(&key);
                self.unknown.lock().put(key, (), 0, payer, now);
            }
        }
    }
}

/// The token of `Authorization: Bearer TOKEN`, if there is one.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    of_header(headers.get(http::header::AUTHORIZATION)?)
}

/// The token of a header's value `Bearer TOKEN`, if it has one.
pub(crate) fn of_header(value: &HeaderValue) -> Option<&str> {
    let value = value.to_str().ok()?.trim();
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether the token is for one of our audiences. A host that names none has looked for its own audience alone, so
/// the token may not be meant for us (k8s.io/api authentication/v1, TokenReviewStatus.audiences).
fn is_for(ours: Option<&[String]>, status: &TokenReviewStatus) -> bool {
    let theirs = status.audiences.as_deref().unwrap_or_default();
    ours.is_none_or(|ours| ours.iter().any(|audience| theirs.contains(audience)))
}

fn key_of(token: &str) -> ReviewKey {
    Arc::from(Sha256::digest(token.as_bytes()).as_slice())
}

/// The user that the host names; `None` if it names none, as nothing can be granted to a user without a name.
fn user(info: UserInfo) -> Option<Arc<User>> {
    let name = info.username.filter(|name| !name.is_empty())?;
    Some(super::with_authenticated_group(User {
        name,
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }))
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
