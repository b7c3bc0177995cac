//! What the host itself says about evictions: its audit log.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

/// An eviction that the host refused with 429.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// The host's words, which name the budget.
    pub message: String,
}

/// All evictions that the host has refused so far for a budget's sake.
pub fn refusals(log: &Path) -> Result<Vec<Refusal>> {
    let text = std::fs::read_to_string(log)?;
    // The last line may still be in the writing.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter_map(|e| refusal(&e)).collect())
}

fn refusal(event: &Value) -> Option<Refusal> {
    let status = &event["responseStatus"];
    if event["objectRef"]["subresource"] != "eviction" || status["code"] != 429 {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(Refusal {
        namespace: text(&event["objectRef"]["namespace"]),
        pod: text(&event["objectRef"]["name"]),
        message: format!("{} {}", text(&status["message"]), status["details"]["causes"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refused_evictions_count() {
        let event = |code: u16, subresource: &str| {
            serde_json::json!({
                "objectRef": {"namespace": "n", "name": "p", "subresource": subresource},
                "responseStatus": {"code": code, "message": "no",
                                   "details": {"causes": [{"reason": "DisruptionBudget"}]}},
            })
        };
        let found = refusal(&event(429, "eviction")).map(|refusal| refusal.message);
        assert_eq!(found.as_deref(), Some(r#"no [{"reason":"DisruptionBudget"}]"#));
        assert_eq!(refusal(&event(201, "eviction")), None);
        assert_eq!(refusal(&event(429, "binding")), None);
    }
}
