//! drydock-conformance
