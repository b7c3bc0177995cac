//! drydock-machinery
