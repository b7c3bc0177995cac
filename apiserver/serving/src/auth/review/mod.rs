//! Reviews: questions to the host about tokens and access, shared, remembered and bounded for each caller.
//!
//! ```text
//!   authn::TokenReviewer, authz::Authorizer
//!        │  an answer that is remembered            answers
//!        ▼
//!   reviews
//!        │  a review of the same that is in flight  singleflight
//!        │  a permit of the payer                   limiter: queue (waits) over fair_queues (decide; fair_queue, rate)
//!        ▼
//!   ask                                             the request to the host
//! ```

pub mod limiter;
pub mod rate;

mod answers;
mod ask;
mod fair_queue;
mod fair_queues;
mod payer;
mod queue;
mod reviews;
mod singleflight;

pub use limiter::ReviewLimiter;

pub(crate) use answers::{Answers, CacheLimits};
pub(crate) use ask::HostAnswer;
pub(crate) use payer::Payer;
pub(crate) use queue::ReviewPermit;
pub(crate) use reviews::{ReviewRequest, Reviews};
pub(crate) use singleflight::ReviewKey;
