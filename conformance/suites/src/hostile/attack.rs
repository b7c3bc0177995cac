//! What an attack is.

use anyhow::Result;
use drydock_testkit::finding::Finding;
use futures::future::LocalBoxFuture;

use crate::context::AttackContext;

/// What an attack does, in its context.
pub type AttackRun = fn(AttackContext) -> LocalBoxFuture<'static, Result<Vec<Finding>>>;

/// One attack.
pub struct Attack {
    /// Its name, with hyphens.
    pub name: &'static str,
    /// What is done, by whom.
    pub what: &'static str,
    /// Most resident memory of our API server in MiB.
    pub memory: u64,
    /// Most reviews a second that the attack may cause on the host; not judged if absent.
    pub reviews: Option<u64>,
    /// Whether our API server runs with a small store, which the attack can fill.
    pub small_store: bool,
    /// Runs the attack, and judges what only the attack can see.
    pub run: AttackRun,
}

impl Attack {
    /// An attack of a tenant, with the usual bound on memory.
    pub const fn new(name: &'static str, what: &'static str, run: AttackRun) -> Attack {
        Attack { name, what, memory: MEMORY, reviews: None, small_store: false, run }
    }

    /// The same on a small store.
    pub const fn in_a_small_store(mut self) -> Attack {
        self.small_store = true;
        self
    }

    /// The same by clients without a user, whose reviews have one bound for all of them.
    pub const fn by_strangers(mut self) -> Attack {
        self.reviews = Some(STRANGERS_REVIEWS);
        self
    }

    /// The same with requests whose reviews are not cached, which have a bound for each user.
    pub const fn by_new_questions(mut self) -> Attack {
        self.reviews = Some(USERS_REVIEWS);
        self
    }
}

/// Reviews a second that all clients without a user may cause on the host.
const STRANGERS_REVIEWS: u64 = 200;
/// Reviews a second that one user may cause, beside a burst.
const USERS_REVIEWS: u64 = 100;
/// MiB that the server may take under an attack, 60 MiB of which a debug build takes at rest.
const MEMORY: u64 = 384;
