//! Continue tokens of paged lists (k8s.io/apiserver/pkg/storage/continue.go).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use drydock_machinery::go_json;
use serde::{Deserialize, Serialize};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// Revision of the first page; `None` goes on at the latest state.
    pub revision: Option<u64>,
    /// Key to start at, below the list's prefix.
    pub start: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";
const INVALID: &str = "continue key is not valid";

impl Continue {
    /// The token.
    pub fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |r| i64::try_from(r).unwrap_or(i64::MAX));
        let wire = Wire { v: VERSION.to_owned(), rv, start: self.start.clone() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Reads a token; the error is for the client.
    pub fn decode(token: &str) -> Result<Self, String> {
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|e| format!("{INVALID}: {e}"))?;
        let wire: Wire = serde_json::from_slice(&json)
            .map_err(|e| format!("{INVALID}: {}", go_json::message(&json, &e)))?;
        if wire.v != VERSION {
            return Err(format!("{INVALID}: server does not recognize this encoded version {}", wire.v));
        }
        if wire.rv == 0 || wire.rv < -1 {
            return Err(format!("{INVALID}: incorrect encoded start resourceVersion (version {VERSION})"));
        }
        if wire.start.is_empty() {
            return Err(format!("{INVALID}: encoded start key empty (version {VERSION})"));
        }
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if !is_clean(start) {
            return Err(format!("{INVALID}: {}", wire.start));
        }
        Ok(Self { revision: u64::try_from(wire.rv).ok(), start: start.to_owned() })
    }
}

/// A start key must not climb out of the list's prefix.
fn is_clean(key: &str) -> bool {
    key.split('/').all(|segment| !segment.is_empty() && segment != "." && segment != "..")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn raw(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    #[test]
    fn a_token_is_read_back() {
        let token = Continue { revision: Some(7), start: "ns/a\0".to_owned() };
        assert_eq!(Continue::decode(&token.encode()), Ok(token));
        let latest = Continue { revision: None, start: "ns/a\0".to_owned() };
        assert_eq!(Continue::decode(&latest.encode()), Ok(latest));
    }

    #[test]
    fn a_token_that_climbs_out_is_refused() {
        for start in ["../a", "a/../../b", "a//b", "./a", "a/", ".."] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{start}"}}"#);
            assert!(Continue::decode(&raw(&json)).is_err(), "{start}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for token in ["", "!", "e30", &raw("[]"), &raw(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#)] {
            assert!(Continue::decode(token).unwrap_err().starts_with(INVALID), "{token}");
        }
    }
}
