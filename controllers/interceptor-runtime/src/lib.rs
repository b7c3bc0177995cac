//! Write an interceptor (KEP-4563) in Rust: a function that acts on one pod, and this crate for the protocol.
//!
//! ```no_run
//! use drydock_interceptor_runtime::{EvictionTurn, InterceptorRuntime, TurnEnd};
//!
//! async fn save(turn: EvictionTurn) -> std::io::Result<TurnEnd> {
//!     turn.set_message("writing a checkpoint");
//!     // Save what the pod turn.pod_name() must not lose.
//!     Ok(TurnEnd::Done("checkpoint written".to_owned()))
//! }
//!
//! #[tokio::main]
//! async fn main() -> kube::Result<()> {
//!     let client = kube::Client::try_default().await?;
//!     InterceptorRuntime::new(client, "checkpoint.example.com").in_namespace("shop").run(save).await;
//!     Ok(())
//! }
//! ```
//!
//! `examples/checkpoint.rs` is a whole one. The README has the protocol, for interceptors in other languages.

mod runtime;
mod turn;

mod serve;

pub mod entry;

mod requests;

#[cfg(test)]
mod testing;

pub use drydock_api::eviction_request::{Blocked, EvictionRequest, InterceptorStatus};
pub use runtime::InterceptorRuntime;
pub use turn::{EvictionTurn, TurnEnd};
