//! The gRPC status stream: the progress of drains, for tools that do not know our objects.
//!
//! ```text
//!   two watch caches ──> hub (one task) ──> views: one log for each filter ──> subscribers: a cursor each ──> gRPC
//! ```
//!
//! Each change is computed and encoded once for all subscribers. A subscriber buffers no changes: it reads its view's
//! log at its own pace, and a slow one skips states that have been replaced. This crate has no HTTP server and checks
//! no access: a server does both and calls [`service::StatusStream`].

mod config;
mod service;

mod request;
mod token;

mod codec;
mod error;
mod get;
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
pub use request::ReadAttributes;
pub use service::StatusStream;
pub use views::ViewLimits;
