//! FieldsV1, and managed fields as a client may send them.

use drydock_machinery::managed_fields::{FieldManager, Set};
use serde_json::Value;

use crate::kinds;

/// Two FieldsV1 documents with a zero byte between them: reading, writing, and the algebra of sets.
pub fn fields_v1(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0).map(Set::from_json);
    let Some(Ok(one)) = parts.next() else { return };
    assert_eq!(Set::from_json(one.to_json().as_bytes()).as_ref(), Ok(&one));
    let Some(Ok(other)) = parts.next() else { return };
    let (union, common) = (one.union(&other), one.intersection(&other));
    assert_eq!(union, other.union(&one));
    assert_eq!(common, other.intersection(&one));
    assert_eq!(one.difference(&other).union(&common), one);
    assert!(one.difference(&one).is_empty());
    assert!(one.recursive_difference(&one).is_empty());
}

/// `metadata.managedFields` as the JSON value that an update brings.
pub fn entries(data: &[u8]) {
    let Ok(entries) = serde_json::from_slice::<Value>(data) else { return };
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        let mut new = sample.clone();
        new.set_meta("managedFields", Some(entries.clone()));
        let api_version = kind.names().api_version();
        let manager = FieldManager {
            schema: kind.schema(),
            api_version: &api_version,
            kind: kind.names().kind,
            subresource: "",
            reset: &Set::of_fields(&[&["status"]]),
            versions: None,
        };
        let tracked = manager.update(Some(&sample), new.clone(), "fuzz", kinds::now());
        let _ = manager.apply(&tracked, kinds::samples()[0].clone(), "fuzz", true, kinds::now());
        let _ = manager.apply(&new, sample, "fuzz", true, kinds::now());
    }
}
