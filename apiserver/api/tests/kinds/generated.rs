//! Tests that the files which are generated from the Rust definitions are current: the .proto file, both OpenAPI
//! documents, the reference of the fields and the list of protobuf tags. `UPDATE=1 cargo test -p drydock-api --test
//! kinds` writes them anew.

use std::path::PathBuf;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequestStrategy;
use drydock_api::node_maintenance::NodeMaintenanceStrategy;
use drydock_machinery::generate::{Tags, field_reference, proto_file};
use drydock_machinery::kind::Kind;
use drydock_machinery::openapi::{OpenApi, v2_document, v3_document};
use drydock_machinery::strategy::Strategy;

const PROTO: &str = "proto/k8s.io/api/coordination/v1alpha1/generated.proto";
const TAGS: &str = "proto/k8s.io/api/coordination/v1alpha1/tags.txt";
const HEADER: &str = "Both kinds on the wire: `application/vnd.kubernetes.protobuf`. Generated from the Rust definitions \
    in apiserver/api, from which the server encodes.\n\napiVersion and kind travel in the envelope (runtime.Unknown). \
    Field numbers of EvictionRequest are the KEP's, or free ones where it gives none or repeats one. They never change.";

fn with_kinds<R>(run: impl FnOnce(&[&dyn Kind]) -> R) -> R {
    let (eviction, maintenance) = (
        EvictionRequestStrategy::new(Duration::from_secs(1200)).into_kind(),
        NodeMaintenanceStrategy.into_kind(),
    );
    run(&[&eviction, &maintenance])
}

fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../..", file].iter().collect()
}

fn committed(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap_or_default()
}

/// Compares a committed file with what is generated, or writes it.
fn check(file: &str, generated: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path(file).parent().unwrap()).unwrap();
        std::fs::write(path(file), generated).unwrap();
        return;
    }
    let text = committed(file);
    let differs = text.lines().zip(generated.lines()).find(|(committed, generated)| committed != generated);
    assert!(
        text == generated,
        "{file} is not what the definitions generate. The first lines that differ: {differs:#?}\nWrite it anew with \
         `UPDATE=1 cargo test -p drydock-api --test kinds`"
    );
}

fn tags() -> Tags {
    Tags::parse(&committed(TAGS))
}

#[test]
fn a_tag_that_clients_rely_on_is_not_changed_or_used_again() {
    let (before, now) = (tags(), with_kinds(Tags::of));
    let breaks = before.breaks(&now);
    assert!(breaks.is_empty(), "{TAGS}: {breaks:#?}");
    check(TAGS, &before.with(now).to_string());
}

#[test]
fn the_proto_file_is_current() {
    check(PROTO, &with_kinds(|kinds| proto_file(kinds, HEADER, &tags())));
}

#[test]
fn the_reference_of_the_fields_is_current() {
    let title = "Fields of coordination.k8s.io/v1alpha1";
    check("apiserver/api/fields.md", &with_kinds(|kinds| field_reference(kinds, title)));
}

#[test]
fn the_openapi_documents_are_current() {
    with_kinds(|kinds| {
        let (title, version) = ("Drydock", "v1alpha1");
        let text = |document| serde_json::to_string_pretty(&document).unwrap() + "\n";
        check("apiserver/api/openapi/v2.json", &text(v2_document(kinds, title, version)));
        check("apiserver/api/openapi/v3.json", &text(v3_document(kinds, title, version)));
    });
}

#[test]
fn the_openapi_documents_have_a_form_in_protobuf() {
    let documents = with_kinds(|kinds| OpenApi::new(kinds, "Drydock", "v1alpha1"));
    for document in [&documents.v2, &documents.v3[0].1] {
        assert!(
            document.protobuf.is_some(),
            "a field of the document is in no table of machinery's openapi/gnostic"
        );
    }
}
