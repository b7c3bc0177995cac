//! What `$(...)` in a request stands for.
//!
//! | | |
//! |---|---|
//! | `$(apiVersion)`, `$(group)`, `$(version)`, `$(kind)`, `$(plural)` | the target's, in the server that is asked |
//! | `$(namespace)` | the sequence's own namespace |
//! | `$(root)` | `/apis/GROUP/VERSION` |
//! | `$(collection)` | the target's collection in that namespace |
//! | `$(0.metadata.uid)` | a field of the first answer's body; `$(2.items.1...)` goes into lists |
//!
//! A placeholder that is not known stays as it is, so that the server's answer shows the mistake.

use serde_json::Value;

use crate::target::{TargetApi, TargetKind};

/// The values of the placeholders in one run.
pub struct TemplateScope<'a> {
    /// The kind.
    pub target: &'a TargetKind,
    /// Where this server has it.
    pub api: TargetApi,
    /// The run's namespace.
    pub namespace: &'a str,
    /// Bodies of the answers so far.
    pub bodies: &'a [Value],
}

impl TemplateScope<'_> {
    /// Returns the text with all placeholders replaced.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            filled.push_str(before);
            match after.split_once(')').and_then(|(word, rest)| Some((self.word(word)?, rest))) {
                Some((value, after)) => {
                    filled.push_str(&value);
                    rest = after;
                }
                None => {
                    filled.push_str("$(");
                    rest = after;
                }
            }
        }
        filled + rest
    }

    fn word(&self, word: &str) -> Option<String> {
        let TargetKind { kind, plural, namespaced, .. } = self.target;
        Some(match word {
            "apiVersion" => self.api.api_version(),
            "group" => self.api.group.into(),
            "version" => self.api.version.into(),
            "kind" => (*kind).into(),
            "plural" => (*plural).into(),
            "namespace" => self.namespace.into(),
            "root" => self.api.root(),
            "collection" if *namespaced => {
                format!("{}/namespaces/{}/{plural}", self.api.root(), self.namespace)
            }
            "collection" => format!("{}/{plural}", self.api.root()),
            field => self.field(field)?,
        })
    }

    fn field(&self, word: &str) -> Option<String> {
        let (answer, path) = word.split_once('.')?;
        let mut value = self.bodies.get(answer.parse::<usize>().ok()?)?;
        for step in path.split('.') {
            value = match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                value => value.get(step)?,
            };
        }
        match value {
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::target::{ACCOUNT, BUDGET};

    #[test]
    fn words_stand_for_the_target_and_for_earlier_answers() {
        let bodies = [json!({"items": [{"metadata": {"uid": "u"}}]})];
        let scope = TemplateScope { target: &BUDGET, api: BUDGET.theirs, namespace: "n", bodies: &bodies };
        assert_eq!(scope.fill("$(collection)/x"), "/apis/policy/v1/namespaces/n/poddisruptionbudgets/x");
        assert_eq!(scope.fill("a $(0.items.0.metadata.uid) $(1.x) $(no"), "a u $(1.x) $(no");
        let scope = TemplateScope { target: &ACCOUNT, api: ACCOUNT.theirs, ..scope };
        assert_eq!(scope.fill("$(root) $(apiVersion)"), "/api/v1 v1");
    }
}
