//! drydock-api
