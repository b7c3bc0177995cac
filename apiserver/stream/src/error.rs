//! Errors as gRPC statuses, with details for programs.

use std::time::Duration;

use drydock_storage::storage::StorageError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Domain of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "drydock.status.v1alpha1";
/// When clients should retry after UNAVAILABLE.
const RETRY: Duration = Duration::from_secs(1);

/// Returns the status for a request with a wrong field.
pub fn invalid(field: &str, why: impl Into<String>) -> Status {
    let why = why.into();
    let message = format!("{field}: {why}");
    let mut details = details("INVALID_FIELD");
    details.add_bad_request_violation(field, why);
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// Returns the status for a message that cannot be decoded.
pub fn undecodable(error: &prost::DecodeError) -> Status {
    let message = format!("the request message cannot be decoded: {error}");
    Status::with_error_details(Code::InvalidArgument, message, details("INVALID_MESSAGE"))
}

/// Returns the status for a message of more than `most` bytes.
pub fn request_too_long(most: usize) -> Status {
    let message = format!("a request message has at most {most} bytes");
    Status::with_error_details(Code::ResourceExhausted, message, details("INVALID_MESSAGE"))
}

/// Returns the status for a path without a method.
pub fn no_such_method(path: &str) -> Status {
    let message = format!("there is no method {path}");
    Status::with_error_details(Code::Unimplemented, message, details("NO_SUCH_METHOD"))
}

/// Returns the status for an entity that does not exist.
pub fn not_found(kind: &str, name: &str) -> Status {
    let mut details = details("NOT_FOUND");
    details.set_resource_info(kind, name, "", "it does not exist, or not any more");
    Status::with_error_details(Code::NotFound, format!("{kind} {name:?} not found"), details)
}

/// Returns the status for a token that no stream can resume from.
pub fn token_expired() -> Status {
    let message = "the resume token is too old: begin a new Watch without options.resume_token, and replace \
        everything by its snapshot";
    Status::with_error_details(Code::OutOfRange, message, details("RESUME_TOKEN_EXPIRED"))
}

/// Returns the status for too many different filters: of the caller if `is_own`, or of all users together.
pub fn too_many_filters(is_own: bool) -> Status {
    let message = if is_own {
        "you watch with too many different filters, with filters that select too much, or with label selectors of too \
            many terms: share streams, or watch with one wider filter and select in the client"
    } else {
        "the server follows as many different filters as it can: try again later, or use a filter that others use, for \
            example no filter at all"
    };
    let mut details = details("TOO_MANY_FILTERS");
    details.set_retry_info(Some(30 * RETRY));
    Status::with_error_details(Code::ResourceExhausted, message, details)
}

/// Returns the status of a server that cannot answer now.
pub fn unavailable(why: &str) -> Status {
    let mut details = details("NOT_READY");
    details.set_retry_info(Some(RETRY));
    Status::with_error_details(Code::Unavailable, why, details)
}

/// Returns the status for a read of storage that failed. `kind` and `name` say what was read.
pub fn of_storage(error: &StorageError, kind: &str, name: &str) -> Status {
    match error {
        StorageError::NotFound => not_found(kind, name),
        StorageError::Refused(refused) => unavailable(&refused.to_string()),
        StorageError::NotReady | StorageError::TooLarge { .. } => unavailable("storage is (re)initializing"),
        other => {
            tracing::warn!(error = %other, kind, name, "cannot read for the status stream");
            unavailable("storage cannot be read")
        }
    }
}

fn details(reason: &str) -> ErrorDetails {
    ErrorDetails::with_error_info(reason, DOMAIN, [])
}
