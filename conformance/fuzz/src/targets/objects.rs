//! Whole objects, in each of the formats that a body comes in.

use drydock_machinery::decode::{Format, decode, decode_patched, decode_value};
use drydock_machinery::kind::Kind;
use drydock_machinery::{Object, meta, names, protobuf as wire};
use serde_json::Value;

use crate::kinds;

/// A JSON body of either kind.
pub fn json(data: &[u8]) {
    body(data, Format::Json);
}

/// A YAML body of either kind.
pub fn yaml(data: &[u8]) {
    body(data, Format::Yaml);
}

fn body(data: &[u8], format: Format) {
    // Free form takes what the schema takes, and more.
    let _ = decode_value(data, format);
    for kind in kinds::all() {
        if let Ok(decoded) = decode(data, format, kind.names(), kind.schema()) {
            reads_back(kind, &decoded.object);
            in_protobuf(kind, &decoded.object);
            judged(kind, decoded.object);
        }
    }
}

/// A protobuf envelope around either kind.
pub fn protobuf(data: &[u8]) {
    for kind in kinds::all() {
        let Ok(object) = wire::decode(data, kind.schema()) else { continue };
        if let Ok(decoded) = decode(&object.to_json(), Format::Json, kind.names(), kind.schema()) {
            in_protobuf(kind, &decoded.object);
            judged(kind, decoded.object);
        }
    }
}

/// The options of a delete, in protobuf and in JSON.
pub fn delete_options(data: &[u8]) {
    let _ = wire::decode_delete_options(data);
    let _ = decode_value(data, Format::Json);
}

/// Two bodies with a zero byte between them: the object that is, and the one that a status update brings.
pub fn status_update(data: &[u8]) {
    let middle = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (old, new) = (&data[..middle], data.get(middle + 1..).unwrap_or_default());
    for kind in kinds::all() {
        let read = |body| decode(body, Format::Json, kind.names(), kind.schema()).map(|d| d.object);
        let (Ok(old), Ok(mut new)) = (read(old), read(new)) else { continue };
        let mut status = new.clone();
        kind.prepare_for_status_update(&mut status, &old);
        let _ = kind.validate_status_update(&status, &old, kinds::now());
        kind.set_defaults(&mut new);
        kind.record_user(&mut new, Some(&old), "user");
        kind.prepare_for_update(&mut new, &old);
        let _ = kind.validate_update(&new, &old, kinds::now());
        let _ = meta::validate_object_meta_update(&new, &old, kind.names().namespaced);
        let _ = kind.warnings(&new, Some(&old));
    }
}

/// What was accepted is accepted again, unchanged and without complaint.
fn reads_back(kind: &dyn Kind, object: &Object) {
    let again = decode(&object.to_json(), Format::Json, kind.names(), kind.schema());
    let again = again.unwrap_or_else(|e| panic!("written and not read: {}: {object:?}", e.status.message));
    assert_eq!((&again.object, &again.strict_errors), (object, &Vec::new()));
}

/// An object means the same in protobuf. Empty values are not written there, so both are compared after one trip.
fn in_protobuf(kind: &dyn Kind, object: &Object) {
    let trip = |object: &Object| {
        let read = wire::decode(&wire::encode(object, kind.schema()), kind.schema());
        let mut read = read.unwrap_or_else(|e| panic!("{}: {object:?}", e.status.message));
        decode_patched(&mut read, kind.names(), kind.schema())
            .unwrap_or_else(|e| panic!("{}: {object:?}", e.status.message));
        read
    };
    let once = trip(object);
    assert_eq!(once, trip(&once));
}

/// Whatever decodes can be defaulted, judged and shown.
fn judged(kind: &dyn Kind, mut object: Object) {
    kind.set_defaults(&mut object);
    let mut again = object.clone();
    kind.set_defaults(&mut again);
    assert_eq!(object, again, "defaults of defaults are the same");
    let _ = kind.cells(&object, kinds::now());
    kind.record_user(&mut object, None, "user");
    kind.prepare_for_create(&mut object);
    let _ = kind.validate_create(&object, kinds::now());
    let _ = meta::validate_object_meta(&object, kind.names().namespaced, names::name_is_dns_subdomain);
    let _ = kind.warnings(&object, None);
    let shown: Value = serde_json::from_slice(&object.to_json()).expect("JSON");
    assert_eq!(shown, object.into_value());
}
