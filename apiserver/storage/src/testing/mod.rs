//! The behaviour suites: written once, and run by the tests of each backend. A backend calls
//! [`backend_behaviours`](crate::backend_behaviours), [`storage_behaviours`](crate::storage_behaviours) on the store and
//! on the cache over it, and [`cache_behaviours`](crate::cache_behaviours), each with a function that starts it.
// They are tests: a failed unwrap is the assertion, and a behaviour's name says what it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

pub mod backend_suite;
pub mod cache_suite;
pub mod storage_suite;
