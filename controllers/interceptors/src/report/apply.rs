//! Writes a whole entry, by server-side apply under the name of its interceptor.

use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_interceptor_runtime::entry::apply_body;
use drydock_logging::{target, with_causes};
use drydock_runtime::cache::api;
use drydock_runtime::{ApiErrorKind, Cacheable, ControllerContext, classify};
use kube::api::{Patch, PatchParams};
use tracing::debug;

/// How the write of an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryWrite {
    /// It is written.
    Written,
    /// It was refused: it is no longer our turn, the request is gone, or the API server does not accept the
    /// entry.
    NotOurs,
}

/// Writes an entry.
pub(super) async fn send(
    context: &ControllerContext,
    request: &EvictionRequest,
    entry: &InterceptorStatus,
) -> Result<EntryWrite, kube::Error> {
    let key = request.key();
    let params = PatchParams::apply(&entry.name).force();
    let api = api::<EvictionRequest>(&context.client, &key.namespace);
    match api.patch_status(&key.name, &params, &Patch::Apply(apply_body(request, entry))).await {
        Ok(_) => {
            debug!(target: target::WRITES, request = %key, interceptor = entry.name, "reported: {}", entry.message);
            Ok(EntryWrite::Written)
        }
        Err(error) => match classify(&error) {
            failure @ (ApiErrorKind::NotFound | ApiErrorKind::Conflict | ApiErrorKind::Invalid) => {
                if failure == ApiErrorKind::Invalid {
                    context.report_skew(request).await;
                }
                debug!(request = %key, error = with_causes(&error), "report refused");
                Ok(EntryWrite::NotOurs)
            }
            _ => Err(error),
        },
    }
}
