//! drydock-plan
