//! The objects: the same bytes for everyone, but for the names of the API.

use anyhow::{Result, ensure};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Which API the objects belong to.
#[derive(Clone, Copy, Debug)]
pub struct ObjectApi {
    /// Group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub resource: &'static str,
    /// Whether the kind has a status of its own.
    pub has_status: bool,
    /// What the kind's spec is made from.
    pub spec: fn(&str) -> Value,
}

/// Where all objects are.
pub const NAMESPACE: &str = "bench";
/// Bytes of an object that is created, 1.2 KiB.
pub const SMALL: usize = 1228;
/// Bytes of an object that is read and listed.
pub const LARGE: usize = 2048;

const PADDING: &str = "drydock.example.com/padding";
const BEAT: &str = "bench.example.com/beat";

impl ObjectApi {
    /// Path of the collection.
    pub fn collection(&self) -> String {
        let Self { group, version, resource, .. } = self;
        format!("/apis/{group}/{version}/namespaces/{NAMESPACE}/{resource}")
    }

    /// An object of exactly so many bytes of compact JSON.
    pub fn object(&self, name: &str, size: usize) -> Result<Bytes> {
        let bare = self.padded(name, 0)?.len();
        ensure!(bare <= size, "an object named {name} has {bare} bytes at least");
        self.padded(name, size - bare)
    }

    /// An object of about [`SMALL`] bytes whose status says `beat`, as it is sent to replace the one of a revision.
    pub fn beating(&self, name: &str, beat: u64, revision: Option<&str>) -> Result<Bytes> {
        let mut object: Value = serde_json::from_slice(&self.object(name, SMALL - BEAT.len())?)?;
        if let Some(revision) = revision {
            object["metadata"]["resourceVersion"] = revision.into();
        }
        let beat = beat.to_string();
        if self.has_status {
            object["status"] = json!({"conditions": [{
                "type": BEAT, "status": "True", "reason": "Bench", "message": beat,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]});
        } else {
            object["metadata"]["annotations"][BEAT] = beat.into();
        }
        Ok(serde_json::to_vec(&object)?.into())
    }

    fn padded(&self, name: &str, padding: usize) -> Result<Bytes> {
        let object = json!({
            "apiVersion": format!("{}/{}", self.group, self.version),
            "kind": self.kind,
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": {"app": "bench", "tier": "batch"},
                "annotations": {PADDING: "x".repeat(padding)},
            },
            "spec": (self.spec)(name),
        });
        Ok(serde_json::to_vec(&object)?.into())
    }
}

/// A name like a pod's UID, the same in every run.
pub fn name(number: u64) -> String {
    // A bijection, so that neighbours in time are not neighbours in key order.
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4{:03x}-8000-{number:012x}", mixed >> 32, mixed >> 16 & 0xffff, mixed >> 4 & 0xfff)
}

/// The beat in the status of an object; `None` if none was written.
pub fn beat(object: &Value) -> Option<u64> {
    let of_status = object["status"]["conditions"][0]["message"].as_str();
    of_status.or_else(|| object["metadata"]["annotations"][BEAT].as_str())?.parse().ok()
}

/// The text in the first field of a name within compact JSON; it must hold nothing escaped, as revisions and tokens do.
pub fn text<'a>(json: &'a [u8], field: &str) -> Option<&'a str> {
    let before = format!("\"{field}\":\"");
    let from = json.windows(before.len()).position(|at| at == before.as_bytes())? + before.len();
    let rest = json.get(from..)?;
    let length = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..length]).ok()
}

/// The number in the first name within some bytes.
pub fn number(bytes: &[u8]) -> Option<u64> {
    const BEFORE: &[u8] = b"-8000-";
    let at = bytes.windows(BEFORE.len()).position(|at| at == BEFORE)? + BEFORE.len();
    u64::from_str_radix(std::str::from_utf8(bytes.get(at..at + 12)?).ok()?, 16).ok()
}

/// Spec of an EvictionRequest.
pub fn eviction_request(name: &str) -> Value {
    json!({
        "target": {"pod": {"name": format!("pod-{name}"), "uid": name}},
        "requesters": [{"name": "maintenance.drydock.example.com"}],
    })
}

/// Spec of sample-apiserver's Flunder.
pub fn flunder(name: &str) -> Value {
    json!({"reference": format!("pod-{name}"), "referenceType": "Flunder"})
}

/// What the client of an object wrote, without what servers add; `None` for what is no object.
pub fn as_sent(object: &Value) -> Option<Value> {
    let mut sent: Map<String, Value> = object.as_object()?.clone();
    sent.remove("status");
    let metadata = sent.get_mut("metadata")?.as_object_mut()?;
    for server in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(server);
    }
    Some(Value::Object(sent))
}

/// Whether an object is what was sent. Items of a list need not name their type.
pub fn check(found: &Value, sent: &[u8]) -> Result<()> {
    let mut sent: Value = serde_json::from_slice(sent)?;
    let found = as_sent(found).unwrap_or_default();
    if let Some(map) = sent.as_object_mut().filter(|_| found.get("kind").is_none()) {
        map.retain(|key, _| key != "kind" && key != "apiVersion");
    }
    ensure!(found == sent, "what came back is not what was sent:\n{found}\n{sent}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const API: ObjectApi = ObjectApi {
        group: "g",
        version: "v1",
        kind: "K",
        resource: "ks",
        has_status: true,
        spec: eviction_request,
    };

    #[test]
    fn an_object_has_the_size_asked_for() {
        for size in [SMALL, LARGE] {
            assert_eq!(API.object(&name(7), size).unwrap().len(), size);
        }
    }

    #[test]
    fn an_object_tells_its_beat_and_its_revision() {
        for has_status in [true, false] {
            let sent = ObjectApi { has_status, ..API }.beating(&name(7), 41, Some("12")).unwrap();
            assert_eq!(beat(&serde_json::from_slice(&sent).unwrap()), Some(41));
            assert_eq!(text(&sent, "resourceVersion"), Some("12"));
        }
    }

    #[test]
    fn a_name_tells_its_number() {
        assert_eq!(number(&API.object(&name(70_000), SMALL).unwrap()), Some(70_000));
        assert_eq!(number(b"-8000-12"), None);
    }

    #[test]
    fn what_servers_add_is_no_difference_and_what_they_change_is() {
        let sent = API.object(&name(7), SMALL).unwrap();
        let mut found: Value = serde_json::from_slice(&sent).unwrap();
        found["metadata"]["uid"] = "u".into();
        found["status"] = json!({});
        check(&found, &sent).unwrap();
        found["spec"]["requesters"] = json!([]);
        assert!(check(&found, &sent).is_err());
    }
}
