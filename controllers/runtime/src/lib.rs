//! drydock-runtime
