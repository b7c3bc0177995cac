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
    /// Most reviews a second that the attack may cause on the host, where that is judged.
    pub reviews: Option<u64>,
    /// Whether our API server runs with a store that is soon short of space.
    pub small_store: bool,
    /// Runs the attack, and judges what only the attack can see.
    pub run: AttackRun,
}

impl Attack {
    /// An attack of a tenant, after which the server may hold the usual memory.
    pub const fn new(name: &'static str, what: &'static str, run: AttackRun) -> Attack {
        Attack { name, what, memory: MEMORY, reviews: None, small_store: false, run }
    }

    /// The same where the store is soon short of space.
    pub const fn in_a_small_store(mut self) -> Attack {
        self.small_store = true;
        self
    }

    /// The same by strangers, whose reviews are bounded for all of them together.
    pub const fn by_strangers(mut self) -> Attack {
        self.reviews = Some(STRANGERS_REVIEWS);
        self
    }

    /// The same with requests whose reviews are not cached; reviews are bounded for each user.
    pub const fn by_new_questions(mut self) -> Attack {
        self.reviews = Some(USERS_REVIEWS);
        self
    }
}

/// Reviews a second that strangers together may cause on the host.
const STRANGERS_REVIEWS: u64 = 200;
/// Reviews a second that one user may cause, beside a burst.
const USERS_REVIEWS: u64 = 100;
/// MiB that a server may take beside what it holds at rest (60 MiB in a debug build) under whatever one tenant does.
const MEMORY: u64 = 384;
