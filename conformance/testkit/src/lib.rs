//! The harness of Drydock's live tests and of the playground: a real Kubernetes control plane, our servers in
//! it, and the cluster of imaginary kubelets on which both are tried.
//!
//! ```text
//! Host: etcd <- kube-apiserver <- controller manager, scheduler, kwok
//!                    | aggregator (front proxy)
//! Drydock:     drydock-apiserver <- drydock-controller-manager
//! ```

pub mod host;

pub mod cluster;
pub mod crd;
pub mod daemon;
pub mod drydock;
pub mod go_client;
pub mod kinds;
pub mod kubectl;
pub mod link;
pub mod proc;
pub mod wait;

pub mod finding;
pub mod observer;
