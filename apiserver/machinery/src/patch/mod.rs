//! Patches: RFC 6902 (`application/json-patch+json`), RFC 7386 (`application/merge-patch+json`) and Kubernetes' own
//! (`application/strategic-merge-patch+json`).
//!
//! The first two know no schema; what any of them produces is decoded and validated like a client's own object.
//! Refusals carry the codes and words of kube-apiserver (apiserver/pkg/endpoints/handlers/patch.go). A JSON patch is
//! small while what it asks for may be large, so [`json_patch`] spends from a [`budget::Budget`]; the others use each
//! part of themselves once, and add no more than they are long.

mod budget;
mod json;
mod merge;
mod operation;
mod place;
mod pointer;
mod strategic;

pub use json::{WebhookPatch, json_patch};
pub use merge::merge_patch;
pub use strategic::strategic_merge_patch;

#[cfg(test)]
mod tests;
