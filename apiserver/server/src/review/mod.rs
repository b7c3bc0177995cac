//! Reviews: questions to the host about tokens and access, shared, remembered and bounded for each caller.
//!
//! ```text
//!   authn::TokenReviewer, authz::Authorizer
//!        │  an answer that is remembered       answers
//!        │  a review of the same in flight     flights
//!        │  a turn                             turns: queue (waits) over lanes (decides)
//!        ▼
//!   ask                                        the request to the host
//! ```

pub mod caller;
pub mod turns;

mod answers;
mod ask;
mod flights;
mod lanes;
mod pace;
mod queue;

pub use caller::{Caller, Origin};
pub use turns::Turns;

pub(crate) use answers::{Answers, Room};
pub(crate) use ask::{Answering, ask};
pub(crate) use caller::Payer;
pub(crate) use flights::{Flight, Flights, Key};
pub(crate) use queue::Turn;
