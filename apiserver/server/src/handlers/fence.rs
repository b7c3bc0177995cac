//! Writers who take turns say in which term they write; a write of a term that is over is refused.
//!
//! What is remembered of a writer is a key in storage by the writer's name, for ever. So only the users of the priority
//! level of controllers, whom flags name, may have a term; and group system:masters, which may do anything. Another user
//! who names one is refused (403) rather than let through: whoever sends the header relies on late writes being refused.

use std::sync::Arc;

use drydock_machinery::ApiError;
use drydock_storage::backend::Guard;
use drydock_storage::fence::{FenceError, Fences};
use http::HeaderMap;

use crate::flow_control::PriorityLevel;
use crate::request::user::User;

/// Carries the term, a number that grows with each of them. Terms belong to the user that writes: nobody can end
/// anybody else's.
pub const EPOCH_HEADER: &str = "drydock-lease-epoch";

/// Whose terms are kept, and where.
#[derive(Clone)]
pub struct Terms {
    fences: Arc<Fences>,
}

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
    /// The writer is nobody who has terms.
    Stranger(String),
    /// The term is over, or storage failed.
    Fence(FenceError),
}

impl Terms {
    /// Terms of the controllers among the users, and of system:masters.
    pub fn new(fences: Arc<Fences>) -> Self {
        Self { fences }
    }

    /// The term that the headers of an authorized write name, if they name one.
    pub async fn admit(
        &self,
        level: PriorityLevel,
        user: &User,
        headers: &HeaderMap,
    ) -> Result<Option<Term>, Refusal> {
        let Some(value) = headers.get(EPOCH_HEADER) else { return Ok(None) };
        let term = value.to_str().ok().and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| {
            let message =
                format!("the header {EPOCH_HEADER} is {value:?}: it takes a whole number from 0 on");
            Refusal::Malformed(ApiError::bad_request(message))
        })?;
        if !level.has_terms() {
            let why = format!(
                "the header {EPOCH_HEADER} may be sent only by the users of --controller-users and system:masters"
            );
            return Err(Refusal::Stranger(why));
        }
        let guard = self.fences.enter(&user.name, term).await.map_err(Refusal::Fence)?;
        Ok(Some(Term { fences: self.fences.clone(), writer: user.name.clone(), guard }))
    }
}

impl Term {
    /// What each write of the term depends on.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The guard has moved: what is known of the writer is old.
    pub fn forget(&self) {
        self.fences.forget(&self.writer);
    }
}
