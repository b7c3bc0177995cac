//! Errors of storage as Status: the only place that translates them (k8s.io/apiserver/pkg/storage/errors).

use drydock_machinery::ApiError;
use drydock_machinery::kind::Names;
use drydock_storage::backend::BackendError;
use drydock_storage::storage::StorageError;

/// Another process has taken the writer's place while the write was on its way.
const TERM_OVER: &str = "the writer's term is over: another one has begun meanwhile";

/// What the client is told when `operation` on the object `name` failed below.
pub fn translate(error: StorageError, names: &Names, name: &str, operation: &str) -> ApiError {
    match error {
        StorageError::NotFound => ApiError::not_found(names.group, names.plural, name),
        StorageError::AlreadyExists => ApiError::already_exists(names.group, names.plural, name),
        StorageError::Expired { requested, oldest } => expired(requested, oldest),
        StorageError::TooLarge { requested, current } => {
            ApiError::resource_version_too_large(requested, current)
        }
        StorageError::Guarded => ApiError::conflict(names.group, names.plural, name, TERM_OVER),
        StorageError::Refused(refusal) => refusal,
        StorageError::NotReady => ApiError::too_many_requests("storage is (re)initializing", 1),
        StorageError::Backend(error) => backend(error, names, operation),
    }
}

/// The error of a read at a revision that is gone.
pub fn expired(requested: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// Whether a write failed because its object is too large to store.
pub fn is_too_large(error: &StorageError) -> bool {
    matches!(error, StorageError::Backend(BackendError::TooLarge))
}

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
            tracing::warn!(resource, operation, why, "storage is unavailable");
            ApiError::server_timeout(names.group, resource, operation, 2)
        }
        BackendError::NoSpace(_) => {
            tracing::warn!(resource, operation, %error, "a write was refused");
            ApiError::insufficient_storage(error.to_string())
        }
        BackendError::Corrupt(_) => {
            tracing::error!(resource, operation, %error, "storage failed");
            ApiError::internal(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use drydock_machinery::kind::Names;

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
