//! Our programs by themselves: how they report that they cannot start, and what they do without a host.

mod audiences;
mod audit_log;
mod bad_input;
mod data;
mod database;
mod metrics;
mod ports;
pub mod programs;
mod resumed_stream;
mod verbosity;
