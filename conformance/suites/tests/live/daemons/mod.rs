//! Our programs by themselves: how they report that they cannot start, and what they do without a host.

mod audiences;
mod audit_log;
mod bad_input;
mod data;
mod database;
mod etcd_away;
mod frozen;
mod host_away;
mod metrics;
mod ports;
mod programs;
mod status_stream;
mod verbosity;
