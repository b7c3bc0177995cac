//! Tests against a real Kubernetes control plane: one binary, so that they share one host.

mod host;
mod observer;
mod rights;
