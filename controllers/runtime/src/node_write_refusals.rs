//! Nodes whose last write was refused. Writers note a refusal when it happens; decisions read it beside the
//! caches.

use std::collections::HashMap;

use drydock_api::text::cut;
use parking_lot::Mutex;

use crate::{ApiErrorKind, classify};
use drydock_logging::with_causes;

/// Most characters that are kept of the words of a refusal.
const MAX_WORDS: usize = 256;

/// The words with which the last write of each node was refused, by node.
#[derive(Debug, Default)]
pub struct NodeWriteRefusals(Mutex<HashMap<String, String>>);

impl NodeWriteRefusals {
    /// Notes why a write failed; returns whether the words differ from those noted before. A Conflict, a
    /// NotFound and a host that asks to wait are no refusals, and are not noted.
    pub fn note(&self, node: &str, error: &kube::Error) -> bool {
        if matches!(
            classify(error),
            ApiErrorKind::Conflict | ApiErrorKind::NotFound | ApiErrorKind::Throttled
        ) {
            return false;
        }
        let words = cut(&with_causes(error), MAX_WORDS);
        self.0.lock().insert(node.to_owned(), words.clone()) != Some(words)
    }

    /// Forgets the refusal of a node, because a write has succeeded or is not wanted any more.
    pub fn forget(&self, node: &str) {
        self.0.lock().remove(node);
    }

    /// The words of the last refusal of a node.
    pub fn of(&self, node: &str) -> Option<String> {
        self.0.lock().get(node).cloned()
    }

    /// All refusals that are known, by node.
    pub fn all(&self) -> HashMap<String, String> {
        self.0.lock().clone()
    }

    /// Forgets the nodes that are not to be written any more.
    pub fn retain(&self, is_wanted: impl Fn(&str) -> bool) {
        self.0.lock().retain(|node, _| is_wanted(node));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn long_words_of_a_refusal_end_in_an_ellipsis() {
        let refusals = NodeWriteRefusals::default();
        let status = serde_json::json!({ "code": 403, "reason": "Forbidden", "message": "x".repeat(1000) });
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        assert!(refusals.note("n", &error));
        let words = refusals.of("n").unwrap();
        assert_eq!((words.chars().count(), words.ends_with("x\u{2026}")), (MAX_WORDS, true));
        assert!(!refusals.note("n", &error), "it is no news twice");
    }
}
