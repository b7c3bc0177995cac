//! drydock-eviction
