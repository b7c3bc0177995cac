//! Tests against a real Kubernetes control plane: one binary, so that they share one host.
//! They start in the order of their names; the longest one is the first.

mod shared;

mod absence;
mod admission;
mod audit;
mod authorization;
mod can_i;
mod cancelled;
mod clients;
mod daemons;
mod deploy;
mod documents;
mod drains;
mod failover;
mod filling;
mod garbage;
mod go_clients;
mod guide;
mod host;
mod hostile_bodies;
mod kubectl;
mod manager;
mod namespaces;
mod protobuf;
mod quota;
mod refusals;
mod removal;
mod rights;
mod runtime_controller;
mod status_stream;
mod strangers;
