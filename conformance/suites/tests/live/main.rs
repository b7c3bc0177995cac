//! Tests against a real Kubernetes control plane: one binary, so that they share one host.

mod shared;

mod admission;
mod audit;
mod authorization;
mod cancelled;
mod clients;
mod direct;

mod documents;
mod drains;
mod example;
mod filling;
mod garbage;
mod guide;
mod host;
mod hostile_bodies;
mod interceptors;
mod kubectl;
mod manager;
mod manifests;
mod namespaces;
mod outages;
mod programs;
mod quota;
mod refusals;
mod status_stream;
mod stories;
mod strangers;
mod surge;
