//! What the programs that run controllers share: the flags of the lease and of the port for probes and scrapers, and what
//! is made of them.

mod leader_election;
mod secure_port;

pub use leader_election::LeaderElectionFlags;
pub use secure_port::SecurePortFlags;
