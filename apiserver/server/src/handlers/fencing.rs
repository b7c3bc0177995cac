//! Fencing tokens: a writer that leads by a lease sends the number of its term, and a write with an older number than
//! the newest known one of that writer is refused.
//!
//! The newest number is stored under the writer's name, and never removed. So only the users of the priority level of
//! controllers, whom flags name, and group system:masters may send one. Any other user's write is refused with 403
//! rather than let through: a writer that sends the header relies on late writes being refused.
//!
//! A number is a time in microseconds since 1970, that at which the term began. A number far ahead of the server's clock
//! is refused: the clock of its writer is wrong, and the right numbers of later terms would all be older.

use std::sync::Arc;

use drydock_machinery::kind::Now;
use drydock_machinery::{ApiError, FENCING_TOKEN_HEADER};
use drydock_serving::request::user::User;
use drydock_storage::backend::Guard;
use drydock_storage::fence::{FenceError, Fences};
use http::HeaderMap;

use crate::flow_control::PriorityLevel;

/// The newest token of each writer.
#[derive(Clone)]
pub struct FencingTokens {
    fences: Arc<Fences>,
}

/// The token of a write, as new as any known one.
pub struct FencingToken {
    fences: Arc<Fences>,
    writer: String,
    guard: Guard,
}

/// Why a write with a token is refused.
pub enum TokenError {
    /// The header is not a number.
    Malformed(ApiError),
    /// The writer may not send tokens.
    Stranger(String),
    /// The token is outdated or too far ahead, or storage failed.
    Fence(FenceError),
}

impl FencingTokens {
    /// Checks tokens against those that `fences` stores.
    pub fn new(fences: Arc<Fences>) -> Self {
        Self { fences }
    }

    /// The token of an authorized write, if its headers carry one.
    pub async fn accept(
        &self,
        level: PriorityLevel,
        user: &User,
        headers: &HeaderMap,
        now: Now,
    ) -> Result<Option<FencingToken>, TokenError> {
        let Some(value) = headers.get(FENCING_TOKEN_HEADER) else { return Ok(None) };
        let token = value.to_str().ok().and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| {
            let message =
                format!("the header {FENCING_TOKEN_HEADER} is {value:?}: it takes a whole number from 0 on");
            TokenError::Malformed(ApiError::bad_request(message))
        })?;
        if !level.has_fencing_tokens() {
            let why = format!(
                "the header {FENCING_TOKEN_HEADER} may be sent only by the users of --controller-users and system:masters"
            );
            return Err(TokenError::Stranger(why));
        }
        let now = u64::try_from(now.as_microsecond()).unwrap_or_default();
        let guard = self.fences.enter(&user.name, token, now).await.map_err(TokenError::Fence)?;
        Ok(Some(FencingToken { fences: self.fences.clone(), writer: user.name.clone(), guard }))
    }
}

impl FencingToken {
    /// The guard that each write with the token has to pass.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Forgets what is known of the writer, because the guard has failed.
    pub fn forget(&self) {
        self.fences.forget(&self.writer);
    }
}
