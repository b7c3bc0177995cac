//! `vectors.jsonl` has objects as k8s.io/apimachinery's protobuf serializer wrote them, with their JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Envelope, decode, decode_delete_options, decode_message, encode, encode_message};
use crate::object::Object;
use crate::schema::common::{meta_schema, object, optional, text};
use crate::schema::{Field, Schema, Shape};

fn lease() -> Schema {
    let shaped = |name, number, shape| optional(name, number, Schema::new("", shape));
    let spec = vec![
        text("holderIdentity", 1, ""),
        shaped("leaseDurationSeconds", 2, Shape::Int32),
        shaped("acquireTime", 3, Shape::MicroTime),
        shaped("renewTime", 4, Shape::MicroTime),
        shaped("leaseTransitions", 5, Shape::Int32),
    ];
    let spec = Field { always: true, ..optional("spec", 2, object("", "", spec)) };
    let meta = Field { always: true, ..optional("metadata", 1, meta_schema()) };
    object("", "", vec![text("apiVersion", 0, ""), text("kind", 0, ""), meta, spec])
}

fn vector(name: &str) -> (Vec<u8>, Object) {
    let lines = include_str!("vectors.jsonl").lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let vector = lines.into_iter().find(|v| v["name"] == name).unwrap();
    let hex = vector["hex"].as_str().unwrap().as_bytes();
    let digit = |b: u8| char::from(b).to_digit(16).unwrap() as u8;
    let bytes = hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    (bytes, Object::from(vector["object"].as_object().unwrap().clone()))
}

#[test]
fn objects_have_the_bytes_that_the_host_gives_them() {
    let (bytes, object) = vector("full lease");
    assert_eq!(decode(&bytes, &lease()).unwrap(), object);
    assert_eq!(encode(&object, &lease()), bytes);
}

#[test]
fn what_is_absent_stays_absent() {
    let (bytes, object) = vector("bare lease");
    assert_eq!(decode(&bytes, &lease()).unwrap(), object);
    assert_eq!(decode(&encode(&object, &lease()), &lease()).unwrap(), object);
}

#[test]
fn delete_options_are_read() {
    let (bytes, object) = vector("delete options");
    assert_eq!(decode_delete_options(&bytes).unwrap(), object);
}

#[test]
fn every_truncation_is_a_bad_request_or_another_object() {
    let (bytes, whole) = vector("full lease");
    for end in 0..bytes.len() {
        match decode(&bytes[..end], &lease()) {
            Ok(object) => assert!(object != whole || end >= bytes.len() - 4, "{end}"),
            Err(error) => assert_eq!(error.code(), 400),
        }
    }
}

#[test]
fn what_no_schema_knows_is_skipped() {
    let mut raw = encode_message(json!({"metadata": {"name": "x"}}).as_object().unwrap(), &lease());
    // Field 99: a varint, four bytes, eight bytes, text.
    for extra in
        [&[0x98, 6, 1][..], &[0x9d, 6, 0, 0, 0, 0], &[0x99, 6, 0, 0, 0, 0, 0, 0, 0, 0], &[0x9a, 6, 1, 65]]
    {
        raw.extend_from_slice(extra);
    }
    assert_eq!(decode_message(&raw, &lease()).unwrap()["metadata"]["name"], "x");
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    for bad in [
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..], // a length beyond the end
        &[0xff; 16],                                                             // a varint without end
        &[0x0b, 0x0c],                                                           // a group
        &[0x00, 0x00],                                                           // field 0
        &[0x08, 0x01],                                                           // metadata as a number
        &[0x0a, 0x03, 0x0a, 0x01, 0xff],                                         // a name that is no text
        &[0x0a, 0x04, 0x42, 0x02, 0x10, 0x7f, 0x0a],                             // cut within
        &[0x12, 0x06, 0x1a, 0x04, 0x08, 0x01, 0x10, 0xff],                       // a time cut short
    ] {
        assert_eq!(decode_message(bad, &lease()).unwrap_err().code(), 400, "{bad:x?}");
    }
}

#[test]
fn an_envelope_of_something_else_is_refused() {
    assert_eq!(decode(b"{}", &lease()).unwrap_err().code(), 400);
    let words = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(Envelope::open(b"").unwrap_err().status.message, words);
    assert_eq!(Envelope::open(b"k8s\0\x1a\x02gz").unwrap_err().code(), 400);
    assert_eq!(Envelope::open(b"k8s\0\x22\x04json").unwrap_err().code(), 400);
}

#[test]
fn json_within_managed_fields_is_bounded_in_depth() {
    let deep = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    let mut fields = Vec::new();
    super::wire::write_bytes(&mut fields, 1, &deep);
    let (mut entry, mut meta, mut message) = (Vec::new(), Vec::new(), Vec::new());
    super::wire::write_bytes(&mut entry, 7, &fields);
    super::wire::write_bytes(&mut meta, 17, &entry);
    super::wire::write_bytes(&mut message, 1, &meta);
    assert_eq!(decode_message(&message, &lease()).unwrap_err().code(), 400);
}

proptest! {
    #[test]
    fn any_object_survives_the_round_trip(
        name in "[a-zé]{1,9}",
        labels in proptest::collection::btree_map("[a-z]{1,5}", "[ -~]{0,5}", 1..4),
        finalizers in proptest::collection::vec("[a-z]{1,5}", 1..4),
        duration in any::<i32>(),
        generation in any::<i64>(),
        micros in 1_i64..4_000_000_000_000_000,
    ) {
        let time = crate::metav1::time::format_micros(crate::kind::Now::from_microsecond(micros).unwrap());
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "labels": labels, "finalizers": finalizers, "generation": generation},
            "spec": {"leaseDurationSeconds": duration, "renewTime": time},
        });
        let object = Object::from(object.as_object().unwrap().clone());
        prop_assert_eq!(decode(&encode(&object, &lease()), &lease()).unwrap(), object);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_message(&bytes, &lease());
        let _ = decode(&[&b"k8s\0"[..], &bytes].concat(), &lease());
    }

    #[test]
    fn no_damage_makes_the_reader_panic(at in 0_usize..600, to in any::<u8>()) {
        let (mut bytes, _) = vector("full lease");
        let at = at % bytes.len();
        bytes[at] = to;
        let _ = decode(&bytes, &lease());
    }
}
