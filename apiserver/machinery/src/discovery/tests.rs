//! The documents that kubectl and the aggregator read.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{NAMES, Thing};

fn with_kinds<T>(test: impl Fn(&[&dyn Kind]) -> T) -> T {
    test(&[&Thing::namespaced(), &Thing::cluster()])
}

#[test]
fn a_group_prefers_its_first_version() {
    let group = with_kinds(|kinds| api_group(kinds, "g.io")).unwrap();
    let version = json!({"groupVersion": "g.io/v1", "version": "v1"});
    assert_eq!(
        group,
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": "g.io", "versions": [version], "preferredVersion": version})
    );
    assert_eq!(with_kinds(api_group_list)["groups"][0]["name"], "g.io");
    assert_eq!(with_kinds(|kinds| api_group(kinds, "x")), None);
}

#[test]
fn resources_have_a_status_each() {
    let list = with_kinds(|kinds| api_resource_list(kinds, "g.io", "v1")).unwrap();
    let names: Vec<_> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["things", "things/status", "others", "others/status"]);
    assert_eq!(list["resources"][0]["shortNames"], json!(["th"]));
    assert_eq!(list["resources"][2].get("shortNames"), None);
    assert_eq!(list["resources"][3]["namespaced"], false);
    assert_eq!(with_kinds(|kinds| api_resource_list(kinds, "g.io", "v2")), None);
}

#[test]
fn the_storage_version_hash_is_that_of_kubernetes() {
    let lease = Names { group: "coordination.k8s.io", kind: "Lease", ..NAMES };
    assert_eq!(storage_version_hash(&lease), "gqkMMb/YqFM=");
}

#[test]
fn aggregated_discovery_tells_the_kind_of_subresources_too() {
    let document = with_kinds(api_group_discovery_list);
    let value: Value = serde_json::from_slice(&document.body).unwrap();
    let resource = &value["items"][0]["versions"][0]["resources"][0];
    assert_eq!(resource["subresources"][0]["responseKind"], resource["responseKind"]);
    assert_eq!(resource["scope"], "Namespaced");
    assert_eq!(document.etag().len(), 130);
    assert_eq!(document, with_kinds(api_group_discovery_list));
}
