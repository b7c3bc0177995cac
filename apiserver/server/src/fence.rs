//! Writers who take turns say in which term they write; a write of a term that is over is refused.

use std::sync::Arc;

use drydock_machinery::ApiError;
use drydock_storage::backend::Guard;
use drydock_storage::fence::{FenceError, Fences};
use http::HeaderMap;

use crate::user::User;

/// Carries the term, a number that grows with each of them. Terms belong to the user that writes: nobody can end
/// anybody else's.
pub const EPOCH_HEADER: &str = "drydock-lease-epoch";

/// A term that was admitted.
pub struct Term {
    fences: Arc<Fences>,
    writer: String,
    guard: Guard,
}

/// Why a writer may not write.
pub enum Refusal {
    /// The header is not a number.
    Malformed(ApiError),
    /// The term is over, or storage failed.
    Fence(FenceError),
}

impl Term {
    /// The term that the headers name, if they name one.
    pub async fn admit(
        fences: &Arc<Fences>,
        user: &User,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, Refusal> {
        let Some(value) = headers.get(EPOCH_HEADER) else { return Ok(None) };
        let term = value.to_str().ok().and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| {
            let message =
                format!("the header {EPOCH_HEADER} is {value:?}: it takes a whole number from 0 on");
            Refusal::Malformed(ApiError::bad_request(message))
        })?;
        let guard = fences.enter(&user.name, term).await.map_err(Refusal::Fence)?;
        Ok(Some(Self { fences: fences.clone(), writer: user.name.clone(), guard }))
    }

    /// What each write of the term depends on.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The guard has moved: what is known of the writer is old.
    pub fn forget(&self) {
        self.fences.forget(&self.writer);
    }
}
