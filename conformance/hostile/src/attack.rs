//! What an attack is.

use anyhow::Result;
use futures::future::LocalBoxFuture;

use crate::field::Field;

/// What an attack does, on its field.
pub type Run = fn(Field) -> LocalBoxFuture<'static, Result<Vec<Finding>>>;

/// One attack.
pub struct Attack {
    /// Its name, with hyphens.
    pub name: &'static str,
    /// What is done, by whom.
    pub what: &'static str,
    /// Most resident memory of our API server in MiB.
    pub memory: u64,
    /// Whether those who attack are nobody the host knows: their reviews are bounded.
    pub strangers: bool,
    /// Does it, and judges what it alone can see.
    pub run: Run,
}

/// A fact that an attack has seen of itself.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Whether it is as it should be.
    pub good: bool,
    /// The fact.
    pub text: String,
}

impl Finding {
    /// A fact.
    pub fn new(good: bool, text: impl Into<String>) -> Finding {
        Finding { good, text: text.into() }
    }
}

impl Attack {
    /// An attack of a tenant, after which the server may hold the usual memory.
    pub const fn new(name: &'static str, what: &'static str, run: Run) -> Attack {
        Attack { name, what, memory: MEMORY, strangers: false, run }
    }

    /// The same by strangers.
    pub const fn by_strangers(mut self) -> Attack {
        self.strangers = true;
        self
    }
}

/// MiB that a server may take beside what it holds at rest (60 MiB in a debug build) under whatever one tenant does.
const MEMORY: u64 = 384;
