//! The gRPC status stream: how drains go, for tools that know nothing of our objects.
//!
//! ```text
//!   two watch caches ──> hub (one task) ──> views: one log for each filter ──> subscribers: a cursor each ──> gRPC
//! ```
//!
//! One computation and one encoding a change, whoever reads it. A subscriber holds no changes: it reads its view's log at
//! its own pace, and a slow one continues with what is current. No HTTP server and no access checks are here: see
//! [`service::StatusStream`] for what a server calls.

pub mod config;
pub mod service;

pub mod request;
pub mod token;

mod codec;
mod error;
mod get;
mod history;
mod hub;
mod hubs;
mod subscriber;

mod metrics;

mod index;
mod log;
mod view;
mod views;

mod facts;
mod filter;
mod messages;
mod rate;

pub use config::Config;
pub use log::TombstoneLimit;
pub use request::Read;
pub use service::StatusStream;
pub use views::ViewLimits;
