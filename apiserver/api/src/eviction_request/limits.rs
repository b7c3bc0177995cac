//! Limits of EvictionRequests: the bytes of one, and the quota of a namespace. How many requesters one may have is in
//! `validation.rs`.

use drydock_machinery::Object;
use drydock_machinery::kind::{BytesQuota, Quota};
use serde_json::Value;

use super::conditions::{CANCELED, EVICTED};

/// Maximum bytes of metadata and spec together, with the managed fields of the spec. (Elsewhere, annotations alone
/// may have 256 KiB.) The rest of the maximum object size of the storage is for the status.
pub const MAX_BYTES_WITHOUT_STATUS: usize = 64 << 10;
/// Maximum bytes of all conditions of other types than Evicted and Canceled together, as JSON.
pub const MAX_CONDITION_BYTES: usize = 256 << 10;

/// Maximum number of characters of a reason and a state in `blocked`, and of a pod type.
pub const MAX_REASON: usize = 64;
/// Maximum number of characters of a node name, and of a name in `blocked`, which can be those of two budgets, or that of a finalizer.
pub const MAX_NAME: usize = 512;

/// Whether a name in `blocked` may have a character: the printable ones of ASCII.
pub fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~')
}

/// Returns what of a name `blocked` may have: its first [`MAX_NAME`] characters that are printable.
pub fn blocked_name(name: &str) -> String {
    name.chars().filter(|c| is_printable(*c)).take(MAX_NAME).collect()
}

/// Maximum bytes of all requests of a namespace: enough for 15,000 of 4 KiB, which are 10,000 active and 5,000
/// finished requests. Finished requests count because they can be as large as others and are deleted only at a
/// limited rate.
pub const MAX_NAMESPACE_BYTES: u64 = 64 << 20;

/// The quota of a namespace. The number limits the requests that the controller has not taken up, and those that are
/// being deleted and wait for a finalizer: both can be produced with creates alone, and no controller ever removes
/// them.
pub const QUOTA: Quota = Quota {
    name: "evictionrequests-not-taken-up",
    hard: 1_000,
    reads: &["metadata.deletionTimestamp", "status.conditions", "status.targetInterceptors"],
    counts: is_pending,
    remedy: "eviction requests count until the controller has set their status.targetInterceptors or a condition Evicted \
           or Canceled, and while they are being deleted: wait, see that drydock-controller-manager runs, or remove \
           requests and their finalizers",
    bytes: BytesQuota {
        name: "evictionrequests-bytes",
        hard: MAX_NAMESPACE_BYTES,
        remedy: "all eviction requests of the namespace count with their status: remove requests or make them smaller, or \
               wait until finished ones are removed",
    },
};

fn is_pending(object: &Object) -> bool {
    let status = |field: &str| object.0.get("status")?.get(field)?.as_array();
    let is_end = |condition: &Value| {
        let is = |field: &str, texts: &[&str]| {
            condition.get(field).and_then(Value::as_str).is_some_and(|text| texts.contains(&text))
        };
        is("type", &[EVICTED, CANCELED]) && is("status", &["True"])
    };
    let taken_up = status("targetInterceptors").is_some_and(|targets| !targets.is_empty());
    let finished = status("conditions").is_some_and(|conditions| conditions.iter().any(is_end));
    (!taken_up && !finished) || object.deletion_timestamp().is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_machinery::field_mask::FieldMask;
    use serde_json::json;

    use super::super::EvictionRequest;
    use super::*;

    /// Whether the typed request and the quota agree that a request with this status is taken up.
    fn agrees(status: &Value, taken_up: bool) -> bool {
        let object = json!({"status": if status.is_null() { json!({}) } else { status.clone() }});
        let request: EvictionRequest = serde_json::from_value(object).unwrap();
        request.is_taken_up() == taken_up
    }

    #[test]
    fn a_request_counts_until_it_is_taken_up_or_ends_and_while_it_is_being_deleted() {
        let counts = |object: &Value| {
            let mask = FieldMask::of(QUOTA.reads.iter().copied());
            (QUOTA.counts)(&mask.read(object.to_string().as_bytes()))
        };
        let condition =
            |type_: &str, status: &str| json!({"conditions": [{"type": type_, "status": status}]});
        for status in [
            json!(null),
            json!({}),
            json!({"targetInterceptors": []}),
            condition("Evicted", "False"),
            condition("example.com/Odd", "True"),
        ] {
            assert!(counts(&json!({"status": status})), "{status}");
            assert!(agrees(&status, false), "{status}");
        }
        for status in [
            json!({"targetInterceptors": [{"name": "a.b"}]}),
            condition("Evicted", "True"),
            condition("Canceled", "True"),
        ] {
            assert!(!counts(&json!({"status": status})), "{status}");
            assert!(agrees(&status, true), "{status}");
            let deleted =
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status});
            assert!(counts(&deleted), "{status}");
        }
    }
}
