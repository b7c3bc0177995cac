//! Requests read: alone, in lists, in tables, as metadata.

use serde_json::json;

use super::{X, Y, labels, made, of, request};
use crate::area::Area::{Formats, List};
use crate::request::SequenceRequest;
use crate::sequence::Sequence;

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// A list of metadata.
pub(super) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(super) fn all() -> Vec<Sequence> {
    let mut all = lists();
    all.extend(formats());
    all
}

/// Two requests, of which the second has a label.
fn two(name: &str) -> Sequence {
    made(List, name).apply(Y, "maker", request(Y, labels(json!({"a": "b"}))))
}

/// A list of metadata, so that only those items are compared in full which a sequence is about.
fn listed(sequence: Sequence, query: &str) -> Sequence {
    sequence.list(query).with(|r| r.accept(METADATA_LIST))
}

fn lists() -> Vec<Sequence> {
    let query = |query: &str| listed(two(&format!("a list with {query:?}")), query);
    let mut all: Vec<Sequence> = [
        "labelSelector=a",
        "labelSelector=%21a",
        "labelSelector=a%20in%20%28b%2Cc%29",
        "labelSelector=a%20b",
        "fieldSelector=metadata.name%3D00000000-0000-1000-8000-000000000002",
        "fieldSelector=metadata.name%21%3D00000000-0000-1000-8000-000000000002",
        "fieldSelector=metadata.namespace%3Delsewhere",
        "fieldSelector=spec.x%3D1",
        "resourceVersion=$(0.metadata.resourceVersion)&resourceVersionMatch=Exact",
        "resourceVersion=$(1.metadata.resourceVersion)&resourceVersionMatch=NotOlderThan",
        "resourceVersion=abc",
        "resourceVersionMatch=Exact",
        "limit=1",
        "limit=-1",
        "continue=abc",
    ]
    .map(query)
    .into();
    all.extend([
        of(List, "an empty list").list(""),
        made(List, "a list of one").list(""),
        listed(listed(two("pages"), "limit=1"), "limit=1&continue=$(2.metadata.continue)"),
        of(List, "one that is not there").get(X),
        made(List, "one at its version").get(X).query("resourceVersion=$(0.metadata.resourceVersion)"),
        made(List, "one of all namespaces")
            .ask(
                SequenceRequest::get("$(root)/$(plural)")
                    .query("fieldSelector=metadata.namespace%3D$(namespace)"),
            )
            .with(|r| r.accept(METADATA_LIST)),
    ]);
    all
}

fn formats() -> Vec<Sequence> {
    let got = |name: &str, accept: &str| made(Formats, name).get(X).with(|r| r.accept(accept));
    vec![
        got("a table", TABLE),
        got("a table with what there is not", TABLE).query("includeObject=Odd"),
        of(Formats, "a table of an empty list").list("").with(|r| r.accept(TABLE)),
        got("metadata", METADATA),
        got("metadata in YAML", "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        got("YAML", "application/yaml"),
        got("indented", "application/json").query("pretty=true"),
        got("a transformation that there is not", "application/json;as=Odd;g=meta.k8s.io;v=v1"),
        got("the second choice", "text/csv,application/json;q=0.5"),
    ]
}
