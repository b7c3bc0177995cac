//! Tests against a real Kubernetes control plane: one binary, so that they share one host.

mod shared;

mod host;
mod kubectl;
mod observer;
mod rights;
