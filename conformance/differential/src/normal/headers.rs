//! Headers that clients read.

use serde_json::{Map, Value};

use super::symbols::Symbols;
use super::text;
use crate::setup::ServerRoute;

/// Headers that are not compared. The first four belong to the connection, or depend on the body's length or the
/// time. The others come from the host's priority and fairness, and our server does not send them (k8s.io/apiserver
/// pkg/server/config.go, DefaultBuildHandlerChain).
const NOT_COMPARED: [&str; 6] = [
    "connection",
    "content-length",
    "date",
    "transfer-encoding",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
];

/// The host puts its own in front of those of an aggregated server (kube-aggregator pkg/apiserver/handler_proxy.go).
const TWICE_THROUGH_THE_AGGREGATOR: [&str; 2] = ["audit-id", "cache-control"];

/// Headers by name, each with its values in order.
pub fn normal(headers: &[(String, String)], symbols: &Symbols<'_>) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for (name, value) in headers.iter().filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str())) {
        let value: Value = match name.as_str() {
            "audit-id" => "<audit id>".into(),
            _ => text::normal(value, symbols).into(),
        };
        let twice = symbols.record.route == ServerRoute::Aggregated
            && TWICE_THROUGH_THE_AGGREGATOR.contains(&name.as_str());
        if let Value::Array(values) = all.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()))
            && !(twice && values.contains(&value))
        {
            values.push(value);
        }
    }
    all.into()
}
