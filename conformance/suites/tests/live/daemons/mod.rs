//! Our programs by themselves: what they say when they cannot start, and how they live with a host that is not there.

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
