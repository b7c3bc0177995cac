//! Maps etcd's errors to [`BackendError`] (etcd: api/v3rpc/rpctypes/error.go).

use drydock_storage::backend::{BackendError, Revision};
use etcd_client::Error;

/// Translates an error. The revisions in it are 0; [`about`] fills in those that the caller knows.
pub(super) fn translate(error: Error) -> BackendError {
    let text = match &error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    let unknown = Revision(0);
    match text.as_str() {
        t if t.contains("required revision has been compacted") => {
            BackendError::Compacted { requested: unknown, oldest: unknown }
        }
        t if t.contains("required revision is a future revision") => {
            BackendError::FutureRevision { requested: unknown, current: unknown }
        }
        t if t.contains("request is too large") || t.contains("message larger than max") => {
            BackendError::TooLarge
        }
        t if t.contains("database space exceeded") => BackendError::NoSpace(format!(
            "{text}: let etcd compact and defragment, or raise its --quota-backend-bytes, then `etcdctl alarm disarm`"
        )),
        t if t.contains("too many requests") => BackendError::Overloaded,
        t if t.contains("corrupt cluster") => BackendError::Corrupt(text),
        _ => BackendError::Unavailable(with_causes(text, &error)),
    }
}

/// Appends the causes to the message: a connection that fails is a "transport error", whether the certificate, the
/// port or the name is wrong.
fn with_causes(text: String, error: &Error) -> String {
    causes(error).map(ToString::to_string).fold(text, |text, cause| match text.contains(&cause) {
        true => text,
        false => format!("{text}: {cause}"),
    })
}

/// Returns the causes of an error, the nearest first.
fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let nearest = match error {
        Error::GRpcStatus(status) => std::error::Error::source(status),
        other => std::error::Error::source(other),
    };
    std::iter::successors(nearest, |cause| cause.source())
}

/// Returns whether a request was certainly not carried out, so that even a write may be sent again: no connection was
/// made, or the member rejected the request because it knew no leader (etcd: api/v3rpc, where unary
/// calls come in), or it had no leader to propose the request to.
pub(super) fn is_not_carried_out(error: &Error) -> bool {
    let Error::GRpcStatus(status) = error else { return false };
    let refused = ["etcdserver: no leader", "raft proposal dropped"];
    causes(error).any(|cause| cause.is::<tonic::ConnectError>()) || refused.contains(&status.message())
}

/// Fills in the revision that an error is about.
pub(super) fn with_revision(error: BackendError, at: Revision) -> BackendError {
    match error {
        BackendError::Compacted { oldest, .. } => {
            BackendError::Compacted { requested: at, oldest: oldest.max(Revision(at.0.saturating_add(1))) }
        }
        BackendError::FutureRevision { current, .. } => {
            BackendError::FutureRevision { requested: at, current }
        }
        other => other,
    }
}
