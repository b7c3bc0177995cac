//! Where the objects are kept, how a server opens it, and what can go wrong with it.

pub mod etcd;
pub mod links;
pub mod sqlite;

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use drydock_storage::backend::Backend;
use rand::rngs::StdRng;

/// A store that faults can be made in.
#[async_trait]
pub trait Place: Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// How many servers use it.
    fn servers(&self) -> usize;
    /// Opens it for one of them.
    async fn open(&self, which: usize) -> Result<Arc<dyn Backend>>;
    /// Makes a fault and mends it again; says what it was. None if this kind of place has none of its own.
    async fn fault(&self, rng: &mut StdRng) -> Result<Option<&'static str>>;
    /// Mends a fault that was broken off.
    async fn mend(&self) -> Result<()>;
}
