//! The failures of a webhook, with the host's messages (k8s.io/apiserver pkg/util/webhook/error.go,
//! pkg/admission/plugin/webhook/errors).

use drydock_machinery::error::{Status, StatusDetails};
use drydock_machinery::quote::go_quote;
use drydock_machinery::{ApiError, REFUSED_TOKEN_REASON};
use serde_json::Value;

/// Why a webhook did not admit a request.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookError {
    /// It could not be called, or its response is invalid: the failure policy decides. The code is for the metrics.
    Calling(String, u16),
    /// It rejected the request.
    Refused(ApiError),
    /// An error that the failure policy does not apply to: the webhook cannot be called for this request, or its
    /// patch cannot be applied.
    Internal(ApiError),
}

impl WebhookError {
    /// The failed call of the webhook `name`.
    pub fn calling(name: &str, code: u16, why: impl std::fmt::Display) -> Self {
        Self::Calling(format!("failed calling webhook {}: {why}", go_quote(name)), code)
    }

    /// The webhook does not support dry runs.
    pub fn no_dry_run(name: &str) -> Self {
        Self::Internal(ApiError::bad_request(format!(
            "admission webhook {} does not support dry run",
            go_quote(name)
        )))
    }

    /// A rejection, with a metav1.Status or without.
    pub fn rejection(name: &str, result: Option<&Value>) -> Self {
        let empty = Value::Null;
        let result = result.unwrap_or(&empty);
        let text = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default();
        let code = result.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let denied = format!("admission webhook {} denied the request", go_quote(name));
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("{denied} without explanation"),
            ("", why) | (why, _) => format!("{denied}: {why}"),
        };
        let details = result.get("details").cloned();
        let details: Option<StatusDetails> = details.and_then(|details| serde_json::from_value(details).ok());
        let status = Status {
            status: match text("status") {
                "" | "Success" => "Failure".to_owned(),
                other => other.to_owned(),
            },
            message,
            // The server alone says that a fencing token is refused: a writer takes a higher one then.
            reason: if text("reason") == REFUSED_TOKEN_REASON { "" } else { text("reason") }.to_owned(),
            details,
            // A rejection never has a success code.
            code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
            continue_token: String::new(),
        };
        Self::Refused(ApiError { status: Box::new(status) })
    }
}
