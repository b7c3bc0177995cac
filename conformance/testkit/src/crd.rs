//! CustomResourceDefinitions with the schemas of our OpenAPI document, so that kube-apiserver serves the same kinds. Their
//! group is another one, since a CRD in coordination.k8s.io is never served.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::host::TestHost;
use crate::wait::LIMIT;

/// The names of a custom resource; the kind is that of the schema.
#[derive(Clone, Copy, Debug)]
pub struct CustomNames {
    /// API group, none that the host serves.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// CamelCase kind.
    pub kind: &'static str,
    /// Lower-case plural.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// The definition, with the schema that an OpenAPI document (v3) has for the kind.
pub fn definition(names: &CustomNames, document: &Value) -> Result<Value> {
    let schemas = document["components"]["schemas"].as_object().context("no schemas in the document")?;
    let of_kind = |(name, _): &(&String, &Value)| name.ends_with(&format!(".{}", names.kind));
    let (_, whole) = schemas.iter().find(of_kind).with_context(|| format!("no schema of {}", names.kind))?;
    let mut schema = structural(whole, schemas);
    // Kubernetes knows the metadata itself and takes no schema of it.
    schema["properties"]["metadata"] = json!({"type": "object"});
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", names.plural, names.group)},
        "spec": {
            "group": names.group, "scope": if names.namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": names.plural, "singular": names.kind.to_lowercase(), "kind": names.kind},
            "versions": [{
                "name": names.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    }))
}

/// Creates a definition and waits until it is served.
pub fn install(host: &TestHost, definition: &Value) -> Result<()> {
    let name = definition["metadata"]["name"].as_str().context("a definition without a name")?;
    let file = host.dir.join(format!("{name}.json"));
    std::fs::write(&file, definition.to_string())?;
    host.kubectl(&["create", "-f", &file.to_string_lossy()])?;
    host.kubectl(&[
        "wait",
        "--for=condition=Established",
        &format!("--timeout={}s", LIMIT.as_secs()),
        &format!("crd/{name}"),
    ])
    .map(drop)
}

/// Inlines references, and removes what a structural schema may not contain.
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
            // The published document shows Go zero values as defaults.
            "default" if *value == json!({}) || *value == json!("") => {}
            // These are names of fields, not keywords.
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                out[key] = fields.map(|(name, s)| (name.clone(), structural(s, schemas))).collect();
            }
            _ => out[key] = structural(value, schemas),
        }
    }
    out.take()
}
