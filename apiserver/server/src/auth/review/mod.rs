//! Reviews: questions to the host about tokens and access, shared, remembered and bounded for each caller.
//!
//! ```text
//!   authn::TokenReviewer, authz::Authorizer
//!        │  an answer that is remembered            answers
//!        ▼
//!   reviews
//!        │  a review of the same that is in flight  flights
//!        │  a turn of the payer                     turns: queue (waits) over lanes (decide; lane, pace)
//!        ▼
//!   ask                                             the request to the host
//! ```

pub mod turns;

mod answers;
mod ask;
mod flights;
mod lane;
mod lanes;
mod pace;
mod payer;
mod queue;
mod reviews;

pub use turns::Turns;

pub(crate) use answers::{Answers, CacheLimits};
pub(crate) use ask::Answer;
pub(crate) use flights::Key;
pub(crate) use payer::Payer;
pub(crate) use queue::Turn;
pub(crate) use reviews::{Question, Reviews};
