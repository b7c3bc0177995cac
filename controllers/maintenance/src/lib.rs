//! drydock-maintenance
