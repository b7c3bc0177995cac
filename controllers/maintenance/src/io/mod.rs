//! The controller around the machine: what it reads, and how its actions are carried out.

pub(crate) mod controller;

mod events;
pub(crate) mod metrics;
mod pending;
mod shown;
mod write_queues;
mod writer;
