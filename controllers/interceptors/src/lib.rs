//! drydock-interceptors
