//! Client libraries through the aggregator: kube-rs and client-go, in JSON and in protobuf.

mod informers;
mod kube_rs;
mod protobuf;
mod watchers;
