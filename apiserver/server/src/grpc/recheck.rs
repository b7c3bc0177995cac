//! Reviews of open streams: when an answer of the host is no longer remembered, the question is asked again, once for
//! all streams that depend on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_serving::auth::authn::{Authenticator, Certificates};
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::auth::impersonation::{Impersonation, ImpersonationMode};
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::clock;
use drydock_serving::request::user::User;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;
use tonic::Status;

use super::streams::{Key, Streams};

/// Time for one review of an open stream.
const LIMIT: Duration = Duration::from_secs(30);
/// Shortest time between two looks at what is due.
const PAUSE: Duration = Duration::from_millis(20);

const NOT_CERTIFIED: &str =
    "the client certificate is not trusted any more: connect again with one that a trusted CA has issued";

/// Something that has to hold for as long as a stream is open.
pub(super) enum StreamCondition {
    /// The token is still this user's.
    Token { token: String, user: Arc<User>, origin: Origin },
    /// The certificates still prove that the sender is this user, or a front proxy.
    Certificates { certificates: Arc<Certificates>, user: Arc<User> },
    /// The user may still do this, asked in the name of the caller.
    Access { caller: Caller, user: Arc<User>, attributes: AuthorizationAttributes },
    /// The caller may still act, in the same way, as the user whom these headers name.
    Impersonation {
        caller: Caller,
        mode: ImpersonationMode,
        headers: HeaderMap,
        attributes: AuthorizationAttributes,
    },
}

/// What a review says.
#[derive(Clone, Debug)]
pub(super) enum RecheckResult {
    /// It holds, and that is known until then.
    Holds(Instant),
    /// It does not hold: the streams end with this status.
    Refused(Status),
    /// The review was not made because the user has too many of them.
    Throttled,
    /// The review could not be made.
    Unknown,
}

/// Makes reviews.
#[async_trait]
pub(super) trait Recheck: Send + Sync {
    /// Asks the host, unless the answer is remembered.
    async fn ask(&self, question: &StreamCondition) -> RecheckResult;
}

/// Reviews open streams for as long as this is polled.
pub(super) async fn recheck_streams(streams: &Arc<Streams>, asker: impl Recheck + Clone + 'static) {
    let mut asking = JoinSet::new();
    loop {
        let (due, next) = streams.take_due(clock::now());
        for (key, question) in due {
            let (streams, asker) = (streams.clone(), asker.clone());
            asking.spawn(async move { ask(&streams, key, &question, &asker).await });
        }
        while asking.try_join_next().is_some() {}
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = streams.earlier.notified() => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks one question. If the asker panics, the review counts as one that could not be made.
async fn ask(streams: &Streams, key: Key, question: &StreamCondition, asker: &impl Recheck) {
    let unanswered = Unanswered { streams, key, is_answered: false };
    let answer = tokio::time::timeout(LIMIT, asker.ask(question)).await.unwrap_or(RecheckResult::Unknown);
    unanswered.answer(answer);
}

/// A question that is being asked.
struct Unanswered<'a> {
    streams: &'a Streams,
    key: Key,
    is_answered: bool,
}

impl Unanswered<'_> {
    fn answer(mut self, answer: RecheckResult) {
        self.is_answered = true;
        self.streams.settle(&self.key, answer, clock::now());
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.streams.settle(&self.key, RecheckResult::Unknown, clock::now());
        }
    }
}

impl StreamCondition {
    /// Equal questions have equal keys.
    pub(super) fn key(&self) -> Key {
        let mut digest = Sha256::new();
        let mut put = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        match self {
            Self::Token { token, user, .. } => {
                put(b"token");
                put(token.as_bytes());
                put(&Authorizer::key(user, &AuthorizationAttributes::default()));
            }
            Self::Access { caller, user, attributes } => {
                put(b"access");
                put(caller.user.flow().as_bytes());
                put(&Authorizer::key(user, attributes));
            }
            Self::Certificates { certificates, user } => {
                put(b"certificates");
                put(&Authorizer::key(user, &AuthorizationAttributes::default()));
                certificates.der().for_each(put);
            }
            Self::Impersonation { caller, mode, headers, attributes } => {
                put(b"impersonation");
                put(&Authorizer::key(&caller.user, attributes));
                put(mode.verb().as_bytes());
                for (name, value) in headers {
                    put(name.as_str().as_bytes());
                    put(value.as_bytes());
                }
            }
        }
        digest.finalize().into()
    }

    /// Bytes that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let about =
            |attributes: &AuthorizationAttributes| attributes.namespace.len() + attributes.name.len() + 512;
        match self {
            Self::Token { token, user, .. } => 512 + token.len() + user.bytes(),
            Self::Certificates { certificates, user } => {
                512 + user.bytes() + certificates.der().map(<[u8]>::len).sum::<usize>()
            }
            Self::Access { attributes, user, .. } => about(attributes) + user.bytes(),
            Self::Impersonation { caller, headers, attributes, .. } => {
                let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                    name.as_str().len() + value.len()
                };
                about(attributes) + caller.user.bytes() + headers.iter().map(header).sum::<usize>()
            }
        }
    }
}

/// Asks the host as requests do: answers are remembered and shared with them, and reviews are bounded for each
/// caller.
#[derive(Clone, Copy)]
pub(super) struct HostRechecker<'a> {
    pub(super) authenticator: &'a Authenticator,
    pub(super) impersonation: &'a Impersonation,
    pub(super) authorizer: &'a Authorizer,
}

impl HostRechecker<'_> {
    /// Until when the answer to a question is remembered.
    pub(super) fn known_until(&self, question: &StreamCondition) -> Instant {
        match question {
            StreamCondition::Token { token, .. } => self.authenticator.known_until(token),
            StreamCondition::Access { user, attributes, .. } => self.authorizer.known_until(user, attributes),
            StreamCondition::Certificates { .. } | StreamCondition::Impersonation { .. } => {
                clock::now() + drydock_serving::auth::authz::REMEMBER
            }
        }
    }

    /// What the host says of a question.
    pub(super) async fn answer(&self, question: &StreamCondition) -> RecheckResult {
        match question {
            StreamCondition::Token { token, user, origin } => {
                let origin = Origin { deadline: clock::now() + LIMIT, ..*origin };
                match self.authenticator.owner(token, &origin).await {
                    Ok(Some(owner)) if owner.is_same(user) => self.holds(question),
                    Ok(Some(_)) => {
                        refused("the token is another user's now, or the user's groups have changed")
                    }
                    Ok(None) => refused("the token has expired or was revoked"),
                    Err(error) => not_made(&error.into()),
                }
            }
            StreamCondition::Access { caller, user, attributes } => {
                let allowed =
                    self.authorizer.require(&caller.until(clock::now() + LIMIT), user, attributes).await;
                self.judged(question, allowed)
            }
            StreamCondition::Certificates { certificates, user } => {
                match self.authenticator.certifies(certificates, user) {
                    Some(true) => self.holds(question),
                    Some(false) => RecheckResult::Refused(Status::unauthenticated(NOT_CERTIFIED)),
                    None => RecheckResult::Unknown,
                }
            }
            StreamCondition::Impersonation { caller, mode, headers, attributes } => {
                let caller = caller.until(clock::now() + LIMIT);
                let allowed =
                    self.impersonation.may_still_act_as(*mode, &caller, headers, attributes, self.authorizer);
                let allowed = allowed.await;
                self.judged(question, allowed)
            }
        }
    }

    fn judged(&self, question: &StreamCondition, allowed: Result<(), ApiError>) -> RecheckResult {
        match allowed {
            Ok(()) => self.holds(question),
            Err(error) if error.code() == 403 => {
                RecheckResult::Refused(super::CallRefusal::from(error).status)
            }
            Err(error) => not_made(&error),
        }
    }

    fn holds(&self, question: &StreamCondition) -> RecheckResult {
        RecheckResult::Holds(self.known_until(question))
    }
}

/// A review that has no answer, and why.
fn not_made(error: &ApiError) -> RecheckResult {
    match error.code() {
        429 => RecheckResult::Throttled,
        _ => RecheckResult::Unknown,
    }
}

fn refused(why: &str) -> RecheckResult {
    RecheckResult::Refused(Status::unauthenticated(format!(
        "{why}: open the stream again with a valid token"
    )))
}

#[cfg(test)]
#[path = "recheck_tests.rs"]
mod tests;
