//! drydock-storage
