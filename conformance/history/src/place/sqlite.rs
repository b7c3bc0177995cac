//! The embedded store in a temporary folder.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use drydock_storage::backend::Backend;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use drydock_testkit::wait::LIMIT;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::StorePlace;
use crate::recorder::Recorder;

/// One file.
pub struct Sqlite(TempDir);

impl Sqlite {
    pub fn new() -> Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix("drydock-history-").tempdir()?))
    }
}

#[async_trait]
impl StorePlace for Sqlite {
    fn servers(&self) -> usize {
        1
    }

    /// Requests of the last server that are still running hold the file for a moment.
    async fn open(&self, _which: usize) -> Result<Arc<dyn Backend>> {
        let began = Instant::now();
        loop {
            match SqliteBackend::open(self.0.path().join("store.db"), SqliteOptions::default()) {
                Ok(backend) => return Ok(Arc::new(backend)),
                Err(error) if began.elapsed() > LIMIT => {
                    return Err(error).context("the file is not free");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn fault(&self, _rng: &mut StdRng, _recorder: &Recorder) -> Result<Option<&'static str>> {
        Ok(None)
    }

    async fn mend(&self) -> Result<()> {
        Ok(())
    }
}
