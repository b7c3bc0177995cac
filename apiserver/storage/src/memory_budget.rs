//! Memory that a read requests before it uses it.

use async_trait::async_trait;
use drydock_machinery::ApiError;

/// Grants memory to a read before it reads objects from the backend that no cache holds, and which are therefore not
/// shared.
#[async_trait]
pub trait MemoryBudget: Send + Sync {
    /// Reserves `bytes` more, and waits for them if necessary.
    ///
    /// # Errors
    /// If there is not enough memory: the error for the client.
    async fn take(&mut self, bytes: usize) -> Result<(), ApiError>;
}

/// Grants any amount: for reads that a program makes for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnlimitedMemory;

#[async_trait]
impl MemoryBudget for UnlimitedMemory {
    async fn take(&mut self, _: usize) -> Result<(), ApiError> {
        Ok(())
    }
}
