//! Our programs by themselves: their flags and files, and how they report that they cannot start.

mod audiences;
mod audit_log;
mod bad_input;
mod data;
mod database;
mod metrics;
mod ports;
mod resumed_stream;
pub mod setup;
mod verbosity;
