//! One constructor for each reason, with the messages of k8s.io/apimachinery/pkg/api/errors.

use std::fmt::Display;

use crate::error::{ApiError, Status, StatusCause, StatusDetails};
use crate::field::{ERRORS_MAX, Error, ErrorList, aggregate, beginning, cut};
use crate::quote::go_quote;
use crate::{REFUSED_TOKEN_REASON, RefusedToken};

/// The cause of a timeout for a resourceVersion that the server has not reached.
pub const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";

/// Maximum number of bytes of all causes of a 422 together; the first cause may be longer by itself.
pub const CAUSES_MAX_BYTES: usize = 256 << 10;

/// Maximum number of bytes of a message; some messages repeat a value of the request.
const MESSAGE_MAX: usize = 512 << 10;

/// Maximum number of bytes of the object's name in a 422; no valid name is as long.
const NAME_SHOWN: usize = 1024;

const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl ApiError {
    /// A failure with this code, reason, message and details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>, details: Option<StatusDetails>) -> Self {
        let status = Status {
            status: "Failure".into(),
            message: cut(message.into(), MESSAGE_MAX),
            reason: reason.into(),
            details,
            code,
            continue_token: String::new(),
        };
        Self { status: Box::new(status) }
    }

    /// 404: `leases.coordination.k8s.io "x" not found`
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(group, resource), go_quote(name));
        Self::new(404, "NotFound", message, Some(details(group, resource, name)))
    }

    /// Sets the seconds after which the same request may be sent again. Only for a request of which nothing was
    /// carried out.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.status.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 404 of a path that the server does not know.
    pub fn unknown_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
            Some(StatusDetails::default()),
        )
    }

    /// 409: an object of this name exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} already exists", qualified(group, resource), go_quote(name));
        Self::new(409, "AlreadyExists", message, Some(details(group, resource, name)))
    }

    /// 409: every name generated from generateName was taken; the client may try again.
    pub fn generate_name_conflict(group: &str, resource: &str, name: &str) -> Self {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            qualified(group, resource),
            go_quote(name)
        );
        let details = StatusDetails { retry_after_seconds: 1, ..details(group, resource, name) };
        Self::new(409, "AlreadyExists", message, Some(details))
    }

    /// 409: `Operation cannot be fulfilled on leases.coordination.k8s.io "x": why`
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl Display) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            qualified(group, resource),
            go_quote(name)
        );
        Self::new(409, "Conflict", message, Some(details(group, resource, name)))
    }

    /// 409 of its own kind: the fencing token of the write is refused. `token` is `None` if the server has not looked which
    /// ones it would take.
    pub fn refused_token(
        group: &str,
        resource: &str,
        name: &str,
        why: impl Display,
        token: Option<RefusedToken>,
    ) -> Self {
        let mut error = Self::conflict(group, resource, name, why);
        REFUSED_TOKEN_REASON.clone_into(&mut error.status.reason);
        if let (Some(details), Some(token)) = (&mut error.status.details, token) {
            details.causes = token.causes();
        }
        error
    }

    /// 409: the resourceVersion is not the current one.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(group, resource, name, OPTIMISTIC_LOCK)
    }

    /// 409 whose details have only causes, as for conflicts of server-side apply.
    pub fn conflict_with_causes(message: impl Into<String>, causes: Vec<StatusCause>) -> Self {
        Self::new(409, "Conflict", message, Some(StatusDetails { causes, ..StatusDetails::default() }))
    }

    /// 422 with one cause for each error, up to [`CAUSES_MAX_BYTES`] and [`ERRORS_MAX`];
    /// the message says if there are more.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: ErrorList) -> Self {
        let name = beginning(name, NAME_SHOWN);
        let subject = format!("{} {} is invalid", qualified(group, kind), go_quote(name));
        let causes = causes(&errors);
        let more = if causes.len() < errors.len() { ", and more" } else { "" };
        let message = match aggregate(errors.get(..causes.len()).unwrap_or_default()) {
            Some(all) => format!("{subject}: {all}{more}"),
            None => subject,
        };
        Self::new(422, "Invalid", message, Some(StatusDetails { causes, ..details(group, kind, name) }))
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", None)
    }

    /// 403: `leases.coordination.k8s.io "x" is forbidden: why`; without the subject if group and resource are empty.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl Display) -> Self {
        let message = match (group.is_empty() && resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{} is forbidden: {why}", qualified(group, resource)),
            (false, false) => {
                format!("{} {} is forbidden: {why}", qualified(group, resource), go_quote(name))
            }
        };
        Self::new(403, "Forbidden", message, Some(details(group, resource, name)))
    }

    /// 405 for a path that exists with other methods.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message, Some(StatusDetails::default()))
    }

    /// 406: no media type in Accept can be served.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(406, "NotAcceptable", message, None)
    }

    /// 415: the body's Content-Type is none of these.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message, None)
    }

    /// 410: the resourceVersion or the continue token is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message, None)
    }

    /// 410 with the reason of older servers; new code uses [`ApiError::expired`].
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Gone", message, None)
    }

    /// 413.
    pub fn request_entity_too_large(why: impl Display) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"), None)
    }

    /// 429: try again after so many seconds.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        Self::new(429, "TooManyRequests", message, Some(details))
    }

    /// 500: `Internal error occurred: why`
    pub fn internal(why: impl Display) -> Self {
        let cause = StatusCause { message: why.to_string(), ..StatusCause::default() };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"), Some(details))
    }

    /// 507: there is no space to store the object. Kubernetes has no reason of its own for it (it answers etcd's
    /// "database space exceeded" with 500); the code is that of RFC 4918, 11.5.
    pub fn insufficient_storage(message: impl Into<String>) -> Self {
        Self::new(507, "InsufficientStorage", message, None)
    }

    /// 503.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message, None)
    }

    /// 504: `Timeout: why`
    pub fn timeout(why: impl Display, retry_after_seconds: u32) -> Self {
        let details = StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        Self::new(504, "Timeout", format!("Timeout: {why}"), Some(details))
    }

    /// 504 for a read at a resourceVersion in the future (storage.NewTooLargeResourceVersionError).
    pub fn resource_version_too_large(asked: u64, current: u64) -> Self {
        let why = format!("Too large resource version: {asked}, current: {current}");
        let mut error = Self::timeout(why, 1);
        let message = "Too large resource version".to_owned();
        let cause = StatusCause { reason: RESOURCE_VERSION_TOO_LARGE.into(), message, field: String::new() };
        if let Some(details) = &mut error.status.details {
            details.causes.push(cause);
        }
        error
    }

    /// 500 that the client should retry: a temporary failure of `verb` on the resource.
    pub fn server_timeout(group: &str, resource: &str, verb: &str, retry_after_seconds: u32) -> Self {
        let on = qualified(group, resource);
        let message = format!(
            "The {verb} operation against {on} could not be completed at this time, please try again."
        );
        let details = StatusDetails { retry_after_seconds, ..details(group, resource, verb) };
        Self::new(500, "ServerTimeout", message, Some(details))
    }
}

/// Returns the errors as causes, up to the limits of one response.
fn causes(errors: &[Error]) -> Vec<StatusCause> {
    let mut bytes = 0;
    let within = |cause: &StatusCause| {
        let first = bytes == 0;
        bytes += cause.message.len() + cause.field.len();
        first || bytes <= CAUSES_MAX_BYTES
    };
    errors.iter().take(ERRORS_MAX).map(Error::to_cause).take_while(within).collect()
}

/// `resource.group`, or `resource` alone in the legacy group.
fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn details(group: &str, kind: &str, name: &str) -> StatusDetails {
    StatusDetails { name: name.into(), group: group.into(), kind: kind.into(), ..StatusDetails::default() }
}
