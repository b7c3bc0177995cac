//! Bearer tokens: the host's TokenReview, remembered for 10 s
//! (k8s.io/apiserver pkg/authentication/token/cache, plugin/pkg/authenticator/token/webhook).

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use http::HeaderMap;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo};
use kube::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::review::{self, Answering, Answers, Flight, Flights, Key, Origin, Payer, Room, Turn, Turns};
use crate::user::User;

/// How long an answer is right.
const FRESH: Duration = Duration::from_secs(10);
/// A token that was somebody's is asked about in that user's name, not in a stranger's, for so long.
const KNOWN: Duration = Duration::from_secs(3600);
const CAPACITY: usize = 8192;
/// A longer token is not a token, in bytes.
const LONGEST: usize = 32 << 10;

/// Asks the host whose token it is.
pub struct TokenReviewer(Arc<Reviewer>);

struct Reviewer {
    api: Api<TokenReview>,
    turns: Arc<Turns>,
    answering: Answering,
    flights: Arc<Flights<Option<Arc<User>>>>,
    // Keyed by hash, so that no token stays in memory longer than its review. Apart from each other, as anybody can
    // make tokens that the host does not know.
    known: Mutex<Answers<Arc<User>>>,
    unknown: Mutex<Answers<()>>,
}

impl TokenReviewer {
    /// Asks through `client`, which needs `create` on `tokenreviews` (ClusterRole system:auth-delegator), when it is the
    /// caller's turn by `turns`.
    pub fn new(client: Client, turns: Arc<Turns>) -> Self {
        let known = Room { most: CAPACITY, fresh: FRESH, kept: KNOWN };
        Self::remembering(known, Room { kept: FRESH, ..known }, client, turns)
    }

    fn remembering(known: Room, unknown: Room, client: Client, turns: Arc<Turns>) -> Self {
        Self(Arc::new(Reviewer {
            api: Api::all(client),
            turns,
            answering: Answering::default(),
            flights: Flights::new(),
            known: Mutex::new(Answers::new(known)),
            unknown: Mutex::new(Answers::new(unknown)),
        }))
    }

    /// The token's user, who is in `system:authenticated`; 401 if the host does not know it or cannot be asked, 429 if
    /// too many tokens of the same origin wait to be asked about.
    pub async fn review(&self, token: &str, origin: &Origin) -> Result<Arc<User>, ApiError> {
        if token.len() > LONGEST {
            return Err(ApiError::unauthorized());
        }
        let key: Key = Arc::from(Sha256::digest(token.as_bytes()).as_slice());
        let payer = match self.0.remembered(&key) {
            Remembered::Answer(answer) => return answer.ok_or_else(ApiError::unauthorized),
            Remembered::Was(user) => Payer::user(&user),
            Remembered::Nothing => Payer::stranger(origin),
        };
        let turn = self.0.turns.turn(payer.clone(), origin);
        let known = || match self.0.remembered(&key) {
            Remembered::Answer(answer) => Some(answer),
            _ => None,
        };
        let ask = |turn, flight| {
            let (reviewer, token, key, origin) = (self.0.clone(), token.to_owned(), key.clone(), *origin);
            async move { reviewer.ask(token, key, &origin, turn, flight).await }
        };
        let answer = self.0.flights.answer(key.clone(), turn, known, ask).await?;
        answer.flatten().ok_or_else(ApiError::unauthorized)
    }
}

/// What is known of a token.
enum Remembered {
    Answer(Option<Arc<User>>),
    Was(Arc<User>),
    Nothing,
}

impl Reviewer {
    fn remembered(&self, key: &Key) -> Remembered {
        let now = Instant::now();
        if let Some((user, is_fresh)) = self.known.lock().get(key, now) {
            let user = user.clone();
            return if is_fresh { Remembered::Answer(Some(user)) } else { Remembered::Was(user) };
        }
        match self.unknown.lock().get(key, now) {
            Some(_) => Remembered::Answer(None),
            None => Remembered::Nothing,
        }
    }

    /// Asks, and remembers the answer. Whoever turns out to be no stranger has not cost a stranger's turn.
    async fn ask(
        &self,
        token: String,
        key: Key,
        origin: &Origin,
        turn: Turn,
        flight: Flight<Option<Arc<User>>>,
    ) -> Option<Option<Arc<User>>> {
        let spec = TokenReviewSpec { token: Some(token), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status: TokenReviewStatus =
            review::ask(&self.api, &review, &self.answering, || flight.is_awaited()).await?;
        let user = status.authenticated.unwrap_or(false).then(|| user(status.user.unwrap_or_default()));
        let now = Instant::now();
        match &user {
            Some(user) => {
                self.known.lock().put(key, user.clone(), Payer::user(user), now);
                turn.end_known();
            }
            None => {
                self.known.lock().remove(&key);
                self.unknown.lock().put(key, (), Payer::stranger(origin), now);
            }
        }
        Some(user)
    }
}

/// The token of `Authorization: Bearer TOKEN`, if there is one.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn user(info: UserInfo) -> Arc<User> {
    super::with_authenticated_group(User {
        name: info.username.unwrap_or_default(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    })
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
