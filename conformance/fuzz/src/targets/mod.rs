//! One function a decoder. A target panics when an input shows a fault of the code under test, and never otherwise.

mod admission;
mod managed_fields;
mod objects;
mod patches;
mod requests;
mod selectors;
mod server;

/// A decoder, and how to try it.
#[derive(Debug)]
pub struct Target {
    /// Name, also of the folder of its seeds.
    pub name: &'static str,
    /// Tries one input.
    pub run: fn(&[u8]),
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Every decoder of outside bytes.
pub const TARGETS: &[Target] = &[
    Target { name: "json", run: objects::json },
    Target { name: "yaml", run: objects::yaml },
    Target { name: "protobuf", run: objects::protobuf },
    Target { name: "delete-options", run: objects::delete_options },
    Target { name: "status-update", run: objects::status_update },
    Target { name: "json-patch", run: patches::json },
    Target { name: "merge-patch", run: patches::merge },
    Target { name: "strategic-merge-patch", run: patches::strategic },
    Target { name: "apply-patch", run: patches::apply },
    Target { name: "fields-v1", run: managed_fields::fields_v1 },
    Target { name: "managed-fields", run: managed_fields::entries },
    Target { name: "label-selector", run: selectors::labels },
    Target { name: "field-selector", run: selectors::fields },
    Target { name: "continue-token", run: requests::continue_token },
    Target { name: "accept", run: requests::accept },
    Target { name: "url", run: requests::url },
    Target { name: "audit-policy", run: requests::audit_policy },
    Target { name: "cel", run: admission::cel },
    Target { name: "webhook-answer", run: admission::answer },
    Target { name: "request", run: server::request },
];
