//! Where the objects are kept, how a server opens it, and what can go wrong with it.

pub mod etcd;
pub mod links;
pub mod servers;
pub mod sqlite;

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use drydock_storage::backend::Backend;
use rand::rngs::StdRng;

use crate::recorder::Recorder;

/// A store that faults can be made in.
#[async_trait]
pub trait StorePlace: Send + Sync {
    /// How many servers use it.
    fn servers(&self) -> usize;
    /// Opens it for one of them.
    async fn open(&self, which: usize) -> Result<Arc<dyn Backend>>;
    /// Makes a fault and mends it again; says what it was. None if this kind of place has none of its own.
    async fn fault(&self, rng: &mut StdRng, recorder: &Recorder) -> Result<Option<&'static str>>;
    /// Whether it must answer while any one of its parts has failed.
    fn survives(&self) -> bool {
        false
    }
    /// Mends a fault that was broken off.
    async fn mend(&self) -> Result<()>;
}
