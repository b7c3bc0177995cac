//! A generic Kubernetes API server: everything between the secure port (`drydock_serving`) and storage, with no
//! knowledge of the kinds that it serves. A module uses those below it alone; `conformance/architecture` keeps that.
//!
//! ```text
//!   generic             a whole server from options and kinds
//!   grpc                the calls of a mounted gRPC service, by the same steps as requests
//!   chain               the order of a request: deadline, authentication, audit, flow control, authorization ...
//!   api_group           what is mounted where: resources, discovery, OpenAPI
//!   handlers            the verbs, one file each, and the state of a request that they share
//!   watch               the body of a watch's response
//!   admission           what a deployment checks and changes in a write
//!   audit               the audit log
//!   wire                bytes from and to objects, in the wire formats of `drydock_serving::wire`
//!   responses           responses on their way out: what they hold, and what ends them
//!   metrics             what /metrics shows
//!   flow_control        seats, budgets and threads, shared fairly
//!   request             the options of a request, and what the log and its answer say of it
//! ```

pub mod generic;

pub mod chain;
pub mod grpc;

pub mod api_group;
pub mod handlers;
mod watch;

pub mod admission;
pub mod audit;
mod wire;

pub mod flow_control;
pub mod metrics;
pub mod request;
pub mod responses;

#[cfg(test)]
mod testing;
