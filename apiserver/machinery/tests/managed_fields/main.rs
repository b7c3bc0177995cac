//! Managed fields, compared with the results of k8s.io/apimachinery's field manager and structured-merge-diff for the
//! same input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod manager;
mod schema;
mod sequences;
mod sets;
mod versions;
