//! What bodies and answers are written in.

use serde_json::json;

use super::{budget, map};
use crate::area::Area::Formats;
use crate::request::SequenceRequest;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP, LEASE, TargetKind};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(super) fn all() -> Vec<Sequence> {
    let mut all = accepted();
    all.extend(of_each_kind());
    all.extend(tables());
    all.extend(bodies());
    all.extend(printing());
    all.extend(discovery());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Formats, BUDGET, name).post(budget("x"))
}

/// Requests an object, a list, an error and a deletion in each of several formats.
fn accepted() -> Vec<Sequence> {
    let accept = [
        "application/json",
        "application/yaml",
        PROTOBUF,
        "*/*",
        "application/*",
        "text/html",
        "text/plain, */*",
        "",
        "application/json;q=0.1, application/yaml",
        "application/yaml;q=0.5,application/json;q=0.4",
        "application/cbor",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
        "application/json;as=Table;g=meta.k8s.io;v=v9",
        "application/json;as=Table;g=other.io;v=v1",
        "application/json;as=Chair;g=meta.k8s.io;v=v1",
        "application/yaml;as=Table;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        "application/json;as=Chair;g=meta.k8s.io;v=v1,application/json",
        "application/json;charset=utf-8",
        "application/json;stream=watch",
        "nonsense",
        "application/json;;",
        "application/vnd.kubernetes.protobuf,application/json",
    ];
    let one = |accept: &str| {
        of(&format!("accepting {accept:?}"))
            .get("x")
            .header("accept", accept)
            .list("")
            .header("accept", accept)
            .get("nothing")
            .header("accept", accept)
            .delete("x")
            .header("accept", accept)
    };
    accept.into_iter().map(one).collect()
}

fn of_each_kind() -> Vec<Sequence> {
    let mut all = Vec::new();
    let kinds: [(TargetKind, _); 3] = [
        (
            ACCOUNT,
            json!({"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}, {}], "automountServiceAccountToken": false}),
        ),
        (CONFIG_MAP, json!({"data": {"a": "", "b": "x"}, "binaryData": {"c": "AAEC"}, "immutable": true})),
        (
            LEASE,
            json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 5, "renewTime": "2020-01-02T03:04:05.678901Z"}}),
        ),
    ];
    for (target, rest) in kinds {
        for accept in ["application/yaml", PROTOBUF, "application/json;as=Table;g=meta.k8s.io;v=v1"] {
            // In YAML the core group's version cannot be told from others.
            if target.theirs.group.is_empty() && accept == "application/yaml" {
                continue;
            }
            let sequence = Sequence::new(Formats, target, format!("a {} in {accept}", target.kind));
            let made = sequence.post(object("x", rest.clone())).post(object("y", json!({})));
            all.push(made.get("x").header("accept", accept).list("").header("accept", accept));
        }
    }
    all
}

fn tables() -> Vec<Sequence> {
    let mut all = Vec::new();
    for include in ["None", "Metadata", "Object", "All", ""] {
        for version in ["v1", "v1beta1"] {
            let accept = format!("application/json;as=Table;g=meta.k8s.io;v={version}");
            let named = of(&format!("a table of {version} with {include:?}"));
            let query = format!("includeObject={include}");
            all.push(
                named.get("x").header("accept", &accept).query(&query).list(&query).header("accept", &accept),
            );
        }
    }
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    all.push(of("a table of a new object").post(budget("y")).header("accept", table));
    all.push(
        of("a table of a changed object")
            .merge_patch("x", json!({"spec": {"minAvailable": "5%"}}))
            .header("accept", table),
    );
    all.push(of("a table of nothing").delete("x").list("").header("accept", table));
    all.push(of("a table of a page").post(budget("y")).list("limit=1").header("accept", table));
    all
}

fn bodies() -> Vec<Sequence> {
    let typed = |type_: &str| {
        let whole = r#"{"apiVersion":"$(apiVersion)","kind":"$(kind)","metadata":{"name":"y"}}"#;
        let created = of(&format!("a body of {type_:?}")).post(budget("y")).with(|r| r.body(type_, whole));
        created.put("x", budget("x")).with(|r| r.body(type_, whole))
    };
    let patched = |type_: &str| {
        of(&format!("a patch of {type_:?}")).merge_patch("x", json!({})).with(|r| r.body(type_, "{}"))
    };
    let types = [
        "application/json",
        "application/json; charset=utf-8",
        "text/plain",
        "application/cbor",
        "",
        "nonsense",
        "application/*",
        "*/*",
    ];
    let patches = [
        "application/json",
        "application/merge-patch+json; charset=utf-8",
        "application/yaml",
        "",
        "application/apply-patch+cbor",
        "text/plain",
    ];
    let mut all: Vec<Sequence> = types.map(typed).into();
    all.extend(patches.map(patched));
    all.push(of("a body of protobuf that is none").post(budget("y")).with(|r| r.bytes(PROTOBUF, *b"hello")));
    let metadata = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for type_ in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
        let empty = of(&format!("metadata of an empty list in {type_}"));
        all.push(empty.list("").with(|r| r.accept(&format!("{type_};{metadata}"))));
    }
    let pretty = of("metadata of an empty list, indented").list("pretty=true");
    all.push(pretty.with(|r| r.accept(&format!("application/json;{metadata}"))));
    all.push(of("a body of protobuf that is empty").post(budget("y")).with(|r| r.bytes(PROTOBUF, *b"k8s\0")));
    all
}

fn printing() -> Vec<Sequence> {
    let agent = |agent: &str| {
        of(&format!("what {agent} reads"))
            .get("x")
            .header("user-agent", agent)
            .get("y")
            .header("user-agent", agent)
    };
    let large = || map("x", json!({"a": "x".repeat(200_000)}));
    vec![
        of("pretty printing").get("x").query("pretty=true"),
        of("no pretty printing").get("x").query("pretty=false").header("user-agent", "curl/8"),
        of("pretty printing of a list").list("pretty=1"),
        of("pretty printing of an error").get("y").query("pretty=true"),
        of("pretty printing of YAML").get("x").query("pretty=true").header("accept", "application/yaml"),
        agent("curl/8.0"),
        agent("Wget/1.0"),
        agent("Mozilla/5.0 (X11)"),
        Sequence::new(Formats, CONFIG_MAP, "a large object is compressed")
            .post(large())
            .get("x")
            .header("accept-encoding", "gzip")
            .list("")
            .header("accept-encoding", "gzip, deflate"),
        Sequence::new(Formats, CONFIG_MAP, "a large object is not compressed unasked").post(large()).get("x"),
        of("a small object is not compressed").get("x").header("accept-encoding", "gzip"),
    ]
}

/// Documents of discovery differ as the servers' kinds do, but not their refusals.
fn discovery() -> Vec<Sequence> {
    let one = |accept: &str| {
        of(&format!("discovery accepting {accept:?}"))
            .ask(SequenceRequest::get("$(root)").header("accept", accept))
            .ask(SequenceRequest::get("/version").header("accept", accept))
            .ask(SequenceRequest::get("/openapi/v2").header("accept", accept))
    };
    ["text/html", "application/cbor", "application/json-seq;as=APIGroupDiscoveryList"].map(one).into()
}
