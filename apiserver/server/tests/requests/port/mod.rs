//! Requests through the secure port: TLS, who asks, who may, and how long anybody is waited for.

mod certificates;
mod connections;
mod fixture;
mod identity;
mod limits;
