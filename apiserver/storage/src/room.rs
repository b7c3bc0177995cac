//! Memory for what a read is about to hold.

use async_trait::async_trait;
use drydock_machinery::ApiError;

/// Where a read asks for memory before it reads objects from the backend that no cache holds: nobody shares them with it.
#[async_trait]
pub trait Room: Send + Sync {
    /// Makes room for so many bytes more, and waits for it if need be.
    ///
    /// # Errors
    /// What the client is told where there is none.
    async fn take(&mut self, bytes: usize) -> Result<(), ApiError>;
}

/// Room without an end, for what a program reads for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Endless;

#[async_trait]
impl Room for Endless {
    async fn take(&mut self, _: usize) -> Result<(), ApiError> {
        Ok(())
    }
}
