//! Patches: RFC 6902 (`application/json-patch+json`), RFC 7386 (`application/merge-patch+json`) and Kubernetes' own
//! (`application/strategic-merge-patch+json`).
//!
//! The first two do not depend on a schema; their results are decoded and validated like an object from a client.
//! Errors have the codes and messages of kube-apiserver (apiserver/pkg/endpoints/handlers/patch.go). A short JSON
//! patch can cause much work, so [`json_patch`] spends from a budget; the other patches use each part
//! of themselves once, and add no more than their own length.

mod budget;
mod json;
mod location;
mod merge;
mod operation;
mod pointer;
mod strategic;

pub use json::{WebhookPatch, json_patch, json_patch_errors};
pub use merge::merge_patch;
pub use strategic::strategic_merge_patch;

#[cfg(test)]
mod tests;
