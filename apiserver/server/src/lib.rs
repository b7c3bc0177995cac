//! A generic Kubernetes API server: everything between a connection and storage, with no knowledge of the kinds
//! that it serves.
//!
//! ```text
//!   generic                    a whole server from options and kinds
//!   serve                      connections: TLS, HTTP/1.1 and HTTP/2, orderly shutdown
//!   chain                      one file: deadline, authn, audit, impersonation, flow control, authz ...
//!        ├── grpc              calls of a mounted gRPC service, in the same order
//!        │  request::Request
//!   api_group::ApiGroup        what is mounted where
//!        ├── discovery, openapi
//!        └── verbs             one file a verb
//!              ├── negotiate, encode    bytes <-> objects, the only place that knows wire formats
//!              ├── admission            what a deployment adds
//!              └── watch                streams
//! ```

pub mod generic;

pub mod audit;
pub mod auth;
pub mod chain;
pub mod flow_control;
pub mod grpc;
pub mod handlers;
pub mod host;
pub mod metrics;
pub mod serve;
pub mod tls;

pub mod admission;
pub mod api_group;
pub mod request;
pub mod responses;
#[cfg(test)]
mod testing;
pub mod watch;
pub mod wire;
