//! The rules of both kinds, the files that are generated from them, and attacks with objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod drain_plan_indexes;
mod eviction_request_blocked;
mod eviction_request_spec;
mod eviction_request_status;
mod generated;
mod hostile;
mod last_pod_type;
mod maintenance;
mod node_maintenance;
mod schemas;
