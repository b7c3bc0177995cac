//! What deploy/ holds: manifests that a host takes, the rights that they give, and the command that removes all again.

mod can_i;
mod deploy;
mod removal;
mod removal_attacks;
mod rights;
