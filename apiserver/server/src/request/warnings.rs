//! Warnings for the client, collected and written as response headers
//! (k8s.io/apiserver/pkg/endpoints/filters/warning.go).

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;

/// Past this many runes in total every warning is cut.
const TOTAL_RUNES: usize = 4096;
/// Runes that are left of a cut warning.
const ITEM_RUNES: usize = 256;

/// Warnings for the client, each kept once, and no more of them than can be shown.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    texts: Vec<String>,
    known: HashSet<String>,
    /// Number of runes that are shown of them at least.
    runes: usize,
}

impl Warnings {
    /// Adds a warning. Past what the headers have room for, it is dropped: a webhook may send any number of them.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let collected = &mut *self.0.lock();
        if text.is_empty() || collected.runes >= TOTAL_RUNES || collected.known.contains(&text) {
            return;
        }
        collected.runes += text.chars().take(ITEM_RUNES).count();
        collected.known.insert(text.clone());
        collected.texts.push(text);
    }

    /// Takes what was added.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock()).texts
    }
}

/// Adds a `Warning` header for each text.
pub fn write(headers: &mut HeaderMap, warnings: &[String]) {
    let total: usize = warnings.iter().map(|w| w.chars().count()).sum();
    let mut written = 0;
    for text in warnings {
        if total > TOTAL_RUNES && written >= TOTAL_RUNES {
            break;
        }
        let keep = if total > TOTAL_RUNES { ITEM_RUNES } else { usize::MAX };
        let text: String = text.chars().take(keep).collect();
        written += text.chars().count();
        let Ok(value) = HeaderValue::from_str(&format!("299 - {}", quoted(&text))) else { continue };
        headers.append(HeaderName::from_static("warning"), value);
    }
}

/// A quoted-string of printable ASCII and UTF-8: control characters become spaces.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(warnings: &[String]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        write(&mut headers, warnings);
        headers
            .get_all("warning")
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect()
    }

    #[test]
    fn a_warning_is_quoted() {
        assert_eq!(
            written(&["unknown field \"spec.x\"\n".to_owned()]),
            [r#"299 - "unknown field \"spec.x\" ""#]
        );
    }

    #[test]
    fn no_more_are_kept_than_are_shown_and_each_once() {
        let all = Warnings::default();
        for i in 0..20_000 {
            all.add(format!("{i:05}"));
            all.add(format!("{:05}", 0));
        }
        let collected = all.take();
        assert_eq!(collected.len(), TOTAL_RUNES.div_ceil(5));
        let more: Vec<String> = collected.iter().cloned().chain(["more".to_owned()]).collect();
        assert_eq!(written(&collected), written(&more));
    }

    #[test]
    fn many_long_warnings_are_cut() {
        let long: Vec<String> = (0..20).map(|i| format!("{i:04}{}", "x".repeat(500))).collect();
        let headers = written(&long);
        assert_eq!(headers.len(), 16);
        assert!(headers.iter().all(|h| h.len() == "299 - \"\"".len() + 256));
    }
}
