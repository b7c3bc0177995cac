//! Says which tests of this crate a plain `cargo test` leaves out.

fn main() {
    // Runners of tests ask for a list first.
    if !std::env::args().any(|argument| argument == "--list") {
        println!("left out: tests that need a Kubernetes control plane. `conformance/test live` runs them.");
    }
}
