//! By hand with kubectl through the aggregator: whatever a user does with an object of either kind.

mod eviction_request;
mod host_as_before;
mod manual;
mod node_maintenance;
mod strategic;
mod watching;

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
