//! What tests, attacks, benchmarks and the playground share: a real Kubernetes control plane, our programs in it, and
//! nodes whose kubelets kwok plays.
//!
//! ```text
//! host:     etcd <- kube-apiserver <- controller manager, scheduler, kwok
//!                        | aggregator (front proxy)
//! drydock:          drydock-apiserver <- drydock-controller-manager
//! ```

// The control plane: its processes, certificates, ports and audit log.
pub mod host;

// Drydock in it, or one of our programs by itself.

pub mod drydock;
pub mod program;

// Nodes, objects and clients.
pub mod cluster;
pub mod crd;
pub mod informer;
pub mod kinds;
pub mod kubectl;

// What a test waits for, cuts and measures.
pub mod link;
pub mod proc;
pub mod wait;

// What a run is judged by.
pub mod finding;
pub mod observer;
