//! The route of requests for our own kinds: straight to drydock-apiserver, past the host's aggregator, which costs the host
//! about half a millisecond of CPU for each. Everything else goes to the host.
//!
//! ```text
//!  controllers ──▶ router ── any other path ────────────────────────────▶ host
//!                    │ ours ──▶ client of the Service ──▶ drydock-apiserver ◀──┐
//!                    │            ▲ api_service: Service and caBundle          │
//!                    └── while breaker is open ─────────▶ host's aggregator ───┘
//! ```
//!
//! Both ways lead to the same server, so that resourceVersions, fencing tokens and rights are the same on both. The
//! aggregator is taken when no connection can be made, when TLS fails, after a 503, and when a request gets no answer. Any other
//! answer or error is the request's own.

mod api_service;
mod breaker;
mod failure;
mod route;
mod router;

pub use route::DirectRoute;
