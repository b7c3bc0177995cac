//! Patches: RFC 6902 (`application/json-patch+json`) and RFC 7386 (`application/merge-patch+json`).
//!
//! Both work on JSON trees and know no schema: what they produce is decoded and validated like a client's own object.
//! Refusals carry the codes and words of kube-apiserver (apiserver/pkg/endpoints/handlers/patch.go). A patch is small
//! while what it asks for may be large, so [`json_patch`] spends from a [`budget::Budget`].

mod budget;
mod json;
mod merge;
mod pointer;

pub use json::json_patch;
pub use merge::merge_patch;

#[cfg(test)]
mod tests;
