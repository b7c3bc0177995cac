//! Bearer tokens: the host's TokenReview, remembered for 10 s
//! (k8s.io/apiserver pkg/authentication/token/cache, plugin/pkg/authenticator/token/webhook).

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use http::HeaderMap;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo};
use kube::{Api, Client};
use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::review;
use crate::user::User;

const REMEMBER: Duration = Duration::from_secs(10);
/// Questions on their way at one time. Anybody can send tokens: they must not flood the host.
const AT_ONCE: usize = 200;
const CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8191);

type Key = [u8; 32];

/// Asks the host whose token it is.
pub struct TokenReviewer {
    api: Api<TokenReview>,
    // Keyed by hash, so that no token stays in memory longer than its request.
    known: Mutex<LruCache<Key, (Option<User>, Instant)>>,
    places: Semaphore,
}

impl TokenReviewer {
    /// Asks through `client`, which needs `create` on `tokenreviews` (ClusterRole system:auth-delegator).
    pub fn new(client: Client) -> Self {
        Self {
            api: Api::all(client),
            known: Mutex::new(LruCache::new(CAPACITY)),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// The token's user; 401 if the host does not know it or cannot be asked.
    pub async fn review(&self, token: &str) -> Result<User, ApiError> {
        let key: Key = Sha256::digest(token.as_bytes()).into();
        if let Some(answer) = self.remembered(&key) {
            return answer.ok_or_else(ApiError::unauthorized);
        }
        let place = self.places.acquire().await.map_err(ApiError::internal)?;
        let answer = self.ask(token).await?;
        drop(place);
        self.known.lock().put(key, (answer.clone(), Instant::now()));
        answer.ok_or_else(ApiError::unauthorized)
    }

    fn remembered(&self, key: &Key) -> Option<Option<User>> {
        let mut known = self.known.lock();
        let (answer, at) = known.get(key)?;
        (at.elapsed() < REMEMBER).then(|| answer.clone())
    }

    async fn ask(&self, token: &str) -> Result<Option<User>, ApiError> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: None },
            ..TokenReview::default()
        };
        let status: TokenReviewStatus =
            review::ask(&self.api, &review).await.ok_or_else(ApiError::unauthorized)?;
        Ok(status.authenticated.unwrap_or(false).then(|| user(status.user.unwrap_or_default())))
    }
}

/// The token of `Authorization: Bearer TOKEN`, if there is one.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn user(info: UserInfo) -> User {
    User {
        name: info.username.unwrap_or_default(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }
}
