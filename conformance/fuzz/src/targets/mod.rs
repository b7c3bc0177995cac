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
pub struct FuzzTarget {
    /// Name, also of the folder of its seeds.
    pub name: &'static str,
    /// Tries one input.
    pub run: fn(&[u8]),
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Every decoder of outside bytes.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "json", run: objects::json },
    FuzzTarget { name: "yaml", run: objects::yaml },
    FuzzTarget { name: "protobuf", run: objects::protobuf },
    FuzzTarget { name: "delete-options", run: objects::delete_options },
    FuzzTarget { name: "status-update", run: objects::status_update },
    FuzzTarget { name: "json-patch", run: patches::json },
    FuzzTarget { name: "merge-patch", run: patches::merge },
    FuzzTarget { name: "strategic-merge-patch", run: patches::strategic },
    FuzzTarget { name: "apply-patch", run: patches::apply },
    FuzzTarget { name: "fields-v1", run: managed_fields::fields_v1 },
    FuzzTarget { name: "managed-fields", run: managed_fields::entries },
    FuzzTarget { name: "label-selector", run: selectors::labels },
    FuzzTarget { name: "field-selector", run: selectors::fields },
    FuzzTarget { name: "continue-token", run: requests::continue_token },
    FuzzTarget { name: "accept", run: requests::accept },
    FuzzTarget { name: "url", run: requests::url },
    FuzzTarget { name: "audit-policy", run: requests::audit_policy },
    FuzzTarget { name: "cel", run: admission::cel },
    FuzzTarget { name: "webhook-answer", run: admission::answer },
    FuzzTarget { name: "request", run: server::request },
];
