//! Converts Swagger 2.0 to OpenAPI 3.0 (k8s.io/kube-openapi/pkg/openapiconv).

use serde_json::{Map, Value, json};

/// Returns the document as OpenAPI 3.0.
pub(super) fn from_v2(mut document: Value) -> Value {
    let security = take(&mut document, "securityDefinitions");
    let schemas = convert_schemas(take(&mut document, "definitions"));
    json!({
        "openapi": "3.0.0",
        "info": take(&mut document, "info"),
        "paths": each(take(&mut document, "paths"), convert_path),
        "components": {"schemas": schemas, "securitySchemes": security},
    })
}

fn convert_schemas(definitions: Value) -> Value {
    each(definitions, convert_schema)
}

/// Wraps a reference that has siblings, because siblings of `$ref` are ignored.
fn convert_schema(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    let reference = schema
        .remove("$ref")
        .and_then(|r| Some(r.as_str()?.replace("#/definitions/", "#/components/schemas/")));
    for nested in ["items", "additionalProperties"] {
        if let Some(value) = schema.remove(nested) {
            schema.insert(nested.to_owned(), convert_schema(value));
        }
    }
    if let Some(properties) = schema.remove("properties") {
        schema.insert("properties".to_owned(), convert_schemas(properties));
    }
    if schema.get("format").is_some_and(|format| format == "int-or-string") {
        schema.remove("type");
        schema.insert("oneOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    match reference {
        Some(reference) if schema.is_empty() => {
            schema.insert("$ref".to_owned(), reference.into());
        }
        Some(reference) => {
            schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
        None => (),
    }
    Value::Object(schema)
}

fn convert_path(item: Value) -> Value {
    let Value::Object(item) = item else { return item };
    let convert = |(key, value): (String, Value)| {
        let value = if key == "parameters" { convert_parameters(value) } else { convert_operation(value) };
        (key, value)
    };
    Value::Object(item.into_iter().map(convert).collect())
}

fn convert_operation(mut operation: Value) -> Value {
    let (consumes, produces) = (take(&mut operation, "consumes"), take(&mut operation, "produces"));
    take(&mut operation, "schemes");
    let responses = take(&mut operation, "responses");
    operation["responses"] = each(responses, |response| with_content(response, &produces));
    if let Value::Array(parameters) = take(&mut operation, "parameters") {
        let (body, others): (Vec<_>, Vec<_>) = parameters.into_iter().partition(|p| p["in"] == "body");
        if !others.is_empty() {
            operation["parameters"] = convert_parameters(others.into());
        }
        if let Some(body) = body.into_iter().next() {
            operation["requestBody"] = request_body(body, &consumes);
        }
    }
    operation
}

fn request_body(mut body: Value, consumes: &Value) -> Value {
    let required = take(&mut body, "required");
    let mut request = with_content(json!({"schema": take(&mut body, "schema")}), consumes);
    if !required.is_null() {
        request["required"] = required;
    }
    request
}

/// Puts the schema under each content type.
fn with_content(mut holder: Value, types: &Value) -> Value {
    let schema = take(&mut holder, "schema");
    if !schema.is_null() {
        let media = json!({"schema": convert_schema(schema)});
        let types = types.as_array().into_iter().flatten().filter_map(Value::as_str);
        let content: Map<_, _> = types.map(|t| (t.to_owned(), media.clone())).collect();
        holder["content"] = content.into();
    }
    holder
}

fn convert_parameters(parameters: Value) -> Value {
    let Value::Array(parameters) = parameters else { return parameters };
    parameters.into_iter().map(convert_parameter).collect()
}

/// Moves type and uniqueness into a schema.
fn convert_parameter(mut parameter: Value) -> Value {
    let mut schema = Map::new();
    for field in ["type", "uniqueItems"] {
        match take(&mut parameter, field) {
            Value::Null => (),
            value => drop(schema.insert(field.to_owned(), value)),
        }
    }
    parameter["schema"] = schema.into();
    parameter
}

fn each(map: Value, convert: impl Fn(Value) -> Value) -> Value {
    let Value::Object(map) = map else { return map };
    Value::Object(map.into_iter().map(|(key, value)| (key, convert(value))).collect())
}

/// Removes a field; null if it is absent.
fn take(object: &mut Value, field: &str) -> Value {
    object.as_object_mut().and_then(|map| map.remove(field)).unwrap_or_default()
}
