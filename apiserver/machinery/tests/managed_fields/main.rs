//! Managed fields against what k8s.io/apimachinery's field manager made of the same sequences of writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod schema;
mod sequences;
