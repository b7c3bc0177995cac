//! Limits of EvictionRequests: the bytes of one, and the quota of a namespace. How many requesters one may have is in
//! `validation.rs`.

use drydock_machinery::Object;
use drydock_machinery::kind::{BytesQuota, Quota};
use drydock_machinery::object::json_len;
use serde_json::Value;

use super::conditions::{CANCELED, EVICTED};
use super::permissions::{INTERCEPTORS, fields, is_same, status};

/// Maximum bytes of metadata and spec together, with the managed fields of the spec, and without the users of the requesters: a
/// hundred requesters of names of 253 bytes take 26 KiB, as much again as managed fields, and with their users up to 128 KiB
/// more. (Elsewhere, annotations alone may have 256 KiB.) The rest of the maximum object size of the storage is for the status.
pub const MAX_BYTES_WITHOUT_STATUS: usize = 64 << 10;
/// Maximum bytes of all conditions of other types than Evicted and Canceled together, as JSON.
pub const MAX_CONDITION_BYTES: usize = 16 << 10;
/// Maximum bytes of an interceptor's entry, as JSON without its times, that is written although the namespace or the store
/// is full, unless the entry was as large before: a name, a reason, and a message of some lines.
pub const MAX_NEEDED_ENTRY_BYTES: usize = 2 << 10;
/// The fields of an entry that say when its turn begins, goes on and ends. Their size is limited, and they always count as
/// needed.
const TIMES: [&str; 4] = ["startTime", "heartbeatTime", "expectedFinishTime", "completionTime"];
/// Maximum bytes of the managed fields of the status: many times what one of each interceptor and the controller take.
pub const MAX_STATUS_MANAGER_BYTES: usize = 32 << 10;

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
        counts_status: true,
        remedy: "all eviction requests of the namespace count with their status: remove requests or make them smaller, or \
               wait until finished ones are removed; an interceptor's own entry of up to 2 KiB is still taken",
    },
};

/// Whether a write to the status changes entries of interceptors only, and leaves each of those small: reports must come
/// through although the tenant, or another one, has filled the store. (Whose entry a writer may change is decided before.)
pub fn is_report(new: &Object, old: &Object) -> bool {
    let is_small = |(after, before): (&Value, &Value)| {
        after == before
            || (after.get("name") == before.get("name")
                && without_times(after) <= MAX_NEEDED_ENTRY_BYTES.max(without_times(before)))
    };
    let are_small = |after: &[Value], before: &[Value]| {
        after.len() == before.len() && after.iter().zip(before).all(is_small)
    };
    fields(status(new), status(old)).all(|(field, after, before)| match (field, after, before) {
        (INTERCEPTORS, Value::Array(after), Value::Array(before)) => are_small(after, before),
        _ => is_same(after, before),
    })
}

/// Bytes of an entry's fields, but for its times.
fn without_times(entry: &Value) -> usize {
    let fields = entry.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !TIMES.contains(&name.as_str()))
        .map(|(name, value)| json_len(name) + json_len(value))
        .sum()
}

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
    fn a_small_change_of_entries_alone_is_a_report() {
        let object = |message: &str, phase: &str| {
            let status = json!({"interceptors": [{"name": "a.b", "message": message}, {"name": "c.d"}], "phase": phase});
            Object::from(json!({"status": status}).as_object().unwrap().clone())
        };
        let old = object("", "");
        assert!(is_report(&object("copied", ""), &old));
        assert!(is_report(&object(&"m".repeat(MAX_NEEDED_ENTRY_BYTES - 100), ""), &old));
        let long = object(&"m".repeat(MAX_NEEDED_ENTRY_BYTES), "");
        assert!(!is_report(&long, &old) && is_report(&long, &long));
        let mut ended = long.clone();
        ended.0["status"]["interceptors"][0]["completionTime"] = json!("2026-01-01T00:00:00Z");
        assert!(is_report(&ended, &long), "a turn with a long message ends");
        assert!(!is_report(&object("", "other"), &old));
        let mut more = object("", "");
        more.0["status"]["conditions"] = json!([{ "type": "Other" }]);
        assert!(!is_report(&more, &old) && !is_report(&old, &more));
        let mut fewer = object("", "");
        fewer.0["status"]["interceptors"].as_array_mut().unwrap().pop();
        assert!(!is_report(&old, &fewer));
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
