//! Errors of storage as Status: the only place that translates them (k8s.io/apiserver/pkg/storage/errors).

use drydock_machinery::ApiError;
use drydock_machinery::kind::Names;
use drydock_storage::backend::BackendError;
use drydock_storage::storage::StorageError;

/// The message if another process has become the leader while the write was on its way.
const OUTDATED_TOKEN: &str = "the fencing token is outdated: a newer leader term has started";

/// The error for the client when `operation` on the object `name` failed in storage.
pub fn translate(error: StorageError, names: &Names, name: &str, operation: &str) -> ApiError {
    match error {
        StorageError::NotFound => ApiError::not_found(names.group, names.plural, name),
        StorageError::AlreadyExists => ApiError::already_exists(names.group, names.plural, name),
        StorageError::Expired { requested, oldest } => expired(requested, oldest),
        StorageError::TooLarge { requested, current } => {
            ApiError::resource_version_too_large(requested, current)
        }
        StorageError::Oversized(_) => backend(BackendError::TooLarge, names, operation),
        StorageError::GuardFailed => {
            ApiError::refused_token(names.group, names.plural, name, OUTDATED_TOKEN, None)
        }
        StorageError::Refused(refusal) => refusal,
        StorageError::NotReady => ApiError::too_many_requests("storage is (re)initializing", 1),
        StorageError::Backend(error) => backend(error, names, operation),
    }
}

/// The error of a read at a revision that is gone.
pub fn expired(requested: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// A failure that concerns every request is logged by the backend when it begins and when it ends; here it would be
/// logged once for each request.
fn backend(error: BackendError, names: &Names, operation: &str) -> ApiError {
    let resource = names.plural;
    match error {
        BackendError::Compacted { requested, oldest } => expired(requested.0, oldest.0),
        BackendError::FutureRevision { requested, current } => {
            ApiError::resource_version_too_large(requested.0, current.0)
        }
        BackendError::Overloaded => ApiError::too_many_requests("too many writes are waiting", 1),
        BackendError::TooLarge => ApiError::request_entity_too_large("request is too large"),
        BackendError::Unavailable(why) => {
            tracing::debug!(resource, operation, why, "storage is unavailable");
            unavailable(names, operation)
        }
        BackendError::Closed(_) => {
            tracing::debug!(resource, operation, %error, "a write was refused");
            ApiError::service_unavailable(error.to_string())
        }
        BackendError::NoSpace(_) => {
            tracing::debug!(resource, operation, %error, "a write was refused");
            ApiError::insufficient_storage(error.to_string())
        }
        BackendError::Corrupt(_) => {
            tracing::error!(resource, operation, %error, "storage failed");
            ApiError::internal(error)
        }
    }
}

/// A client may repeat a read. A write may have been made, and a client that repeats it by itself would meet its own
/// effect: client-go repeats after every answer that has Retry-After (rest/with_retry.go), kube's client after 429,
/// 503 and 504. So the error of a write is a 500 without Retry-After, as of a kube-apiserver whose etcd timed out.
fn unavailable(names: &Names, operation: &str) -> ApiError {
    match operation {
        "get" | "list" | "watch" => ApiError::server_timeout(names.group, names.plural, operation, 2),
        _ => ApiError::internal("storage did not answer in time: whether the write was made is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names {
        group: "g",
        version: "v1",
        kind: "K",
        plural: "ks",
        singular: "k",
        short_names: &[],
        categories: &[],
        namespaced: false,
    };

    /// Regression: a write that etcd had taken and not answered got an error with Retry-After. client-go repeated
    /// it by itself, and the create that had been made got 409, as if another client had made it.
    #[test]
    fn a_write_of_unknown_outcome_is_not_asked_to_be_sent_again() {
        let unknown = || StorageError::Backend(BackendError::Unavailable("no answer".to_owned()));
        for operation in ["create", "update", "patch", "delete"] {
            let status = translate(unknown(), &NAMES, "a", operation).status;
            assert_eq!((status.code, status.reason.as_str()), (500, "InternalError"), "{operation}");
            assert_eq!(status.details.map_or(0, |details| details.retry_after_seconds), 0, "{operation}");
        }
        let status = translate(unknown(), &NAMES, "a", "get").status;
        assert_eq!((status.code, status.reason.as_str()), (500, "ServerTimeout"));
        assert_eq!(status.details.map_or(0, |details| details.retry_after_seconds), 2);
    }

    /// It names no time to try again: it is refused until the server is started elsewhere.
    #[test]
    fn a_store_that_was_moved_is_503_and_says_where_to() {
        let closed = BackendError::Closed("its objects were moved to /a in etcd".to_owned());
        let said = translate(StorageError::Backend(closed), &NAMES, "a", "create");
        assert_eq!((said.code(), said.reason(), said.retry_after()), (503, "ServiceUnavailable", None));
        assert!(said.to_string().contains("moved to /a in etcd"), "{said}");
    }

    #[test]
    fn a_full_disk_is_507_and_a_full_queue_429() {
        let said = |error| translate(StorageError::Backend(error), &NAMES, "a", "create");
        let full = said(BackendError::NoSpace("database or disk is full: make room".to_owned()));
        assert_eq!((full.code(), full.reason()), (507, "InsufficientStorage"));
        assert!(full.to_string().contains("make room"), "{full}");
        let busy = said(BackendError::Overloaded);
        assert_eq!((busy.code(), busy.retry_after()), (429, Some(1)));
    }
}
