//! AdmissionReview: the request to a webhook, and its response (k8s.io/apiserver
//! pkg/admission/plugin/webhook/request/admissionreview.go).

use std::collections::BTreeMap;

use base64::Engine;
use drydock_machinery::Object;
use drydock_machinery::quote::go_quote;
use drydock_server::admission::AdmissionAttributes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::input::admission_request;

/// A version of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// admission.k8s.io/v1
    V1,
    /// admission.k8s.io/v1beta1, whose responses are checked less strictly.
    V1beta1,
}

impl ReviewVersion {
    /// Returns the version with this name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Returns the AdmissionReview for a request.
pub fn review(
    version: ReviewVersion,
    uid: &str,
    request: &AdmissionAttributes<'_>,
    object: Option<&Object>,
) -> Value {
    let value = |object: Option<&Object>| object.map_or(Value::Null, Object::to_value);
    let mut asked = admission_request(request, uid);
    asked.insert("object".to_owned(), value(object));
    asked.insert("oldObject".to_owned(), value(request.old));
    json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": asked})
}

/// A valid response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookResponse {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The metav1.Status of a rejection.
    pub result: Option<Value>,
    /// A JSON patch; empty if the object does not change.
    pub patch: Vec<u8>,
    /// Audit annotations.
    pub annotations: BTreeMap<String, String>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    response: Option<AdmissionResponse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionResponse {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// Parses and validates the response in `body`.
pub fn verify(
    version: ReviewVersion,
    uid: &str,
    mutating: bool,
    body: &[u8],
) -> Result<WebhookResponse, String> {
    let review: AdmissionReview = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let Some(response) = review.response else { return Err("webhook response was absent".to_owned()) };
    if version == ReviewVersion::V1 {
        check_identity(&review.kind, &review.api_version, &response.uid, uid)?;
    }
    let encoded = response.patch.unwrap_or_default();
    let patch =
        base64::engine::general_purpose::STANDARD.decode(&encoded).map_err(|error| error.to_string())?;
    if version == ReviewVersion::V1 {
        check_patch(mutating, !patch.is_empty(), response.patch_type.as_deref())?;
    }
    Ok(WebhookResponse {
        allowed: response.allowed,
        result: response.status.filter(|status| !status.is_null()),
        patch: if mutating { patch } else { Vec::new() },
        annotations: response.audit_annotations.unwrap_or_default(),
        warnings: response.warnings.unwrap_or_default(),
    })
}

fn check_identity(kind: &str, api_version: &str, given: &str, uid: &str) -> Result<(), String> {
    if given != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(given)));
    }
    if kind != "AdmissionReview" || api_version != ReviewVersion::V1.api_version() {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        ));
    }
    Ok(())
}

fn check_patch(mutating: bool, has_patch: bool, patch_type: Option<&str>) -> Result<(), String> {
    let wrong = match (mutating, has_patch, patch_type) {
        (true, true, None) => "webhook returned response.patch but not response.patchType".to_owned(),
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch".to_owned(),
        (true, true, Some("")) => "webhook returned invalid response.patchType of \"\"".to_owned(),
        (true, true, Some(other)) if other != "JSONPatch" => {
            format!("unsupported patch type {}", go_quote(other))
        }
        (false, true, _) => "validating webhook may not return response.patch".to_owned(),
        (false, false, Some(_)) => "validating webhook may not return response.patchType".to_owned(),
        _ => return Ok(()),
    };
    Err(wrong)
}
