//! Fencing tokens: numbers that writers who take turns, such as leaders, send with their writes.

use crate::error::StatusCause;

/// Header of a write with its fencing token, a number that grows with each term of the writer's lease: the time at which the
/// term began, in microseconds since 1970. A token is refused if it is below the newest one, or if it is new, more than a
/// day ahead of the server's clock and more than a second above the newest one. Tokens belong to the user that writes: no
/// user can make another one's outdated.
pub const FENCING_TOKEN_HEADER: &str = "drydock-lease-epoch";
/// Reason of the 409 to a write whose fencing token is outdated, or too far ahead: reading the object again does not help.
pub const REFUSED_TOKEN_REASON: &str = "FencingTokenRefused";
/// Reason of the cause in that error whose message is the newest token of the writer: a new one has to be above it.
const NEWEST_TOKEN_CAUSE: &str = "NewestFencingToken";
/// Reason of the cause in that error whose message is the highest token that the writer may begin with now.
const HIGHEST_TOKEN_CAUSE: &str = "HighestFencingToken";

/// A fencing token that is older than the newest one, or too far ahead, and the tokens that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fencing token {term} {}", self.why())]
pub struct RefusedToken {
    /// The number of the term.
    pub term: u64,
    /// The newest number that the server has taken from the writer; 0 if there is none.
    pub newest: u64,
    /// The highest number with which a term may begin now.
    pub highest: u64,
}

impl RefusedToken {
    fn why(&self) -> String {
        let Self { term, newest, highest } = self;
        match term < newest {
            true => format!("is outdated; the newest is {newest}"),
            false => format!(
                "is more than a day ahead of the server's clock, in microseconds since 1970; the newest is {newest}, and \
                 the highest that may begin now is {highest}"
            ),
        }
    }

    /// The causes of the error that the writer gets.
    pub(crate) fn causes(&self) -> Vec<StatusCause> {
        let cause = |reason: &str, token: u64| StatusCause {
            reason: reason.to_owned(),
            message: token.to_string(),
            ..StatusCause::default()
        };
        vec![cause(NEWEST_TOKEN_CAUSE, self.newest), cause(HIGHEST_TOKEN_CAUSE, self.highest)]
    }

    /// Reads the reasons and messages of the causes in the error to a write of this term. `None` if they do not say which
    /// tokens are taken: a newer term began while the write was under way.
    pub fn read<'c>(term: u64, causes: impl Iterator<Item = (&'c str, &'c str)> + Clone) -> Option<Self> {
        let number = |name: &str| {
            let cause = causes.clone().find(|(reason, _)| *reason == name);
            cause.and_then(|(_, message)| message.parse().ok())
        };
        Some(Self { term, newest: number(NEWEST_TOKEN_CAUSE)?, highest: number(HIGHEST_TOKEN_CAUSE)? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ApiError;

    #[test]
    fn the_writer_reads_which_tokens_are_taken() {
        let refused = RefusedToken { term: 5, newest: 8, highest: 9 };
        let read = |error: &ApiError| {
            let causes = error.status.details.as_ref().unwrap().causes.iter();
            RefusedToken::read(5, causes.map(|cause| (cause.reason.as_str(), cause.message.as_str())))
        };
        let error = ApiError::refused_token("g", "r", "n", refused, Some(refused));
        assert_eq!((error.code(), error.reason(), read(&error)), (409, "FencingTokenRefused", Some(refused)));
        assert!(error.status.message.ends_with("fencing token 5 is outdated; the newest is 8"), "{error}");
        assert_eq!(read(&ApiError::refused_token("g", "r", "n", "outdated", None)), None);
        let ahead = RefusedToken { newest: 1, highest: 4, ..refused }.to_string();
        assert!(ahead.contains("the newest is 1, and the highest that may begin now is 4"), "{ahead}");
    }
}
