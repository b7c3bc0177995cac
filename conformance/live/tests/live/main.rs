//! Tests against a real Kubernetes control plane: one binary, so that they share one host.

mod shared;

mod authorization;
mod clients;
mod deploy;
mod garbage;
mod host;
mod kubectl;
mod namespaces;
mod observer;
mod rights;
mod strangers;
