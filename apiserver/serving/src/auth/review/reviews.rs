//! Reviews of one type, shared and bounded. A review goes on when the request that began it is gone; it is tried
//! again only while a request waits for it.

use std::sync::Arc;

use drydock_machinery::ApiError;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::Instrument;

use super::ask::{HostAnswer, HostAnswers, ask};
use super::limiter::ReviewLimiter;
use super::payer::Payer;
use super::queue::ReviewPermit;
use super::singleflight::{Awaited, Begun, Flight, ReviewKey, Singleflight};
use crate::auth::caller::Origin;

/// Asks the host by objects of `K`. The caller makes a `V` of each answer, and remembers it.
pub(crate) struct Reviews<K, V> {
    api: Api<K>,
    limiter: Arc<ReviewLimiter>,
    host: HostAnswers,
    singleflight: Arc<Singleflight<V>>,
}

/// What sharing and bounding need to know of a question.
pub(crate) struct ReviewRequest<'a> {
    /// Equal questions have equal keys.
    pub(crate) key: ReviewKey,
    /// The payer of its review.
    pub(crate) payer: Payer,
    /// Where the request comes from.
    pub(crate) origin: &'a Origin,
}

impl<K, V> Reviews<K, V>
where
    K: kube::Resource<DynamicType = ()> + Clone + Serialize + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Asks through `client` with a permit of `limiter`.
    pub(crate) fn new(client: Client, limiter: Arc<ReviewLimiter>) -> Arc<Self> {
        let (host, singleflight) = (HostAnswers::default(), Singleflight::new());
        Arc::new(Self { api: Api::all(client), limiter, host, singleflight })
    }

    /// The bounds on reviews.
    pub(crate) fn limiter(&self) -> &ReviewLimiter {
        &self.limiter
    }

    /// Returns the answer to `question`. Joins a review of it that is in flight; otherwise waits for a permit and
    /// begins one, unless the answer is `known` by then. `review` returns the object to send. `finish` makes a `V` of
    /// the host's answer, remembers it, and gives the permit back. Returns `None` if the host gives no answer; fails
    /// with 429 if too many requests of the payer wait.
    pub(crate) async fn answer<S>(
        self: &Arc<Self>,
        question: ReviewRequest<'_>,
        known: impl FnOnce() -> Option<V>,
        review: impl FnOnce() -> K,
        finish: impl FnOnce(HostAnswer<S>, ReviewPermit) -> Option<V> + Send + 'static,
    ) -> Result<Option<V>, ApiError>
    where
        S: DeserializeOwned + Default + Send + 'static,
    {
        let ReviewRequest { key, payer, origin } = question;
        if let Some(flight) = self.singleflight.find(&key) {
            return self.join(&payer, flight).await;
        }
        let permit = self.limiter.permit(payer.clone(), origin).await?;
        match self.singleflight.begin(key, known) {
            Begun::Now(flight, answer) => {
                let task = self.clone().run(review(), flight, permit, finish);
                tokio::spawn(task.in_current_span());
                Ok(answer.answer().await)
            }
            Begun::Before(flight) => {
                permit.end_uncounted();
                self.join(&payer, flight).await
            }
            Begun::Known(answer) => {
                permit.end_uncounted();
                Ok(Some(answer))
            }
        }
    }

    async fn join(&self, payer: &Payer, flight: Awaited<V>) -> Result<Option<V>, ApiError> {
        let _joined = self.limiter.join(payer)?;
        Ok(flight.answer().await)
    }

    async fn run<S>(
        self: Arc<Self>,
        review: K,
        flight: Flight<V>,
        permit: ReviewPermit,
        finish: impl FnOnce(HostAnswer<S>, ReviewPermit) -> Option<V>,
    ) where
        S: DeserializeOwned + Default,
    {
        let answer = ask(&self.api, &review, &self.host, || flight.is_awaited()).await;
        flight.finish(answer.and_then(|answer| finish(answer, permit)));
    }
}
