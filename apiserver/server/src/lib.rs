//! drydock-server
