//! What deploy/ holds: manifests that a host takes, the rights that they give, and the script that removes all again.

mod can_i;
mod deploy;
mod removal;
mod rights;
