//! K's kind: a CustomResourceDefinition of D's own schema, read from D's OpenAPI document. Its group is another one,
//! since a CRD in coordination.k8s.io is never served.

use anyhow::{Context, Result};
use drydock_conformance::host::Host;
use serde_json::{Map, Value, json};

use super::{Contender, DRYDOCK_API};
use crate::client::Windows;
use crate::object::{self, Api};

/// What K serves.
pub const API: Api = Api {
    group: "bench.drydock.example.com",
    version: "v1alpha1",
    kind: "EvictionRequest",
    resource: "evictionrequests",
    has_status: true,
    spec: object::eviction_request,
};

/// Creates the definition and waits until it is served.
pub async fn install(host: &Host, drydock: &Contender) -> Result<()> {
    let client = drydock.http(1, Windows::USUAL).await?;
    let path = format!("/openapi/v3/apis/{}/{}", DRYDOCK_API.group, DRYDOCK_API.version);
    let document: Value = serde_json::from_slice(&client.read(&path).await?)?;
    let definition = definition(&document)?;
    let file = host.dir.join("crd.json");
    std::fs::write(&file, definition.to_string())?;
    host.kubectl(&["create", "-f", &file.to_string_lossy()])?;
    let name = format!("crd/{}.{}", API.resource, API.group);
    host.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", &name]).map(drop)
}

fn definition(document: &Value) -> Result<Value> {
    let schemas = document["components"]["schemas"].as_object().context("no schemas in the document")?;
    let of_kind = |(name, _): &(&String, &Value)| name.ends_with(&format!(".{}", API.kind));
    let (_, whole) = schemas.iter().find(of_kind).with_context(|| format!("no schema of {}", API.kind))?;
    let mut schema = structural(whole, schemas);
    // Kubernetes knows the metadata itself and takes no schema of it.
    schema["properties"]["metadata"] = json!({"type": "object"});
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", API.resource, API.group)},
        "spec": {
            "group": API.group, "scope": "Namespaced",
            "names": {"plural": API.resource, "singular": "evictionrequest", "kind": API.kind},
            "versions": [{
                "name": API.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    }))
}

/// Without references, and without what a structural schema may not say.
fn structural(schema: &Value, schemas: &Map<String, Value>) -> Value {
    match schema {
        Value::Object(map) => structural_map(map, schemas),
        Value::Array(all) => all.iter().map(|s| structural(s, schemas)).collect(),
        other => other.clone(),
    }
}

fn structural_map(map: &Map<String, Value>, schemas: &Map<String, Value>) -> Value {
    let referred = |v: &Value| {
        let name = v.get("$ref")?.as_str()?.rsplit('/').next()?;
        Some(structural(schemas.get(name)?, schemas))
    };
    let single = map.get("allOf").and_then(|all| all.get(0));
    let mut out = referred(&Value::Object(map.clone())).or_else(|| single.and_then(referred));
    let out = out.get_or_insert_with(|| json!({}));
    for (key, value) in map {
        match key.as_str() {
            "$ref" | "allOf" | "x-kubernetes-group-version-kind" => {}
            "x-kubernetes-patch-strategy" | "x-kubernetes-patch-merge-key" => {}
            // What the published document shows for a Go zero value is no default.
            "default" if *value == json!({}) || *value == json!("") => {}
            // Names of fields, not keywords.
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                out[key] = fields.map(|(name, s)| (name.clone(), structural(s, schemas))).collect();
            }
            _ => out[key] = structural(value, schemas),
        }
    }
    out.take()
}
