//! The rules of both kinds, the files that are generated from them, and attacks with objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod schemas;
mod generated;
mod eviction_request_spec;
mod eviction_request_status;
mod eviction_request_blocked;
mod node_maintenance;
mod drain_plan_indexes;
mod last_pod_type;
mod hostile;
