//! The functions that an expression may call. A call of another function fails when the expression is compiled; the
//! interpreter would fail only when it reached the call.

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

/// The variable with the composed variables of a policy.
pub const VARIABLES: &str = "variables";

const OPERATORS: [&str; 22] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::OPT_INDEX,
    operators::OPT_SELECT,
    operators::NOT_STRICTLY_FALSE,
    operators::IN,
    "@sortByAssociatedKeys",
];

/// Called by name, or by a name with a namespace.
const GLOBAL: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "matches",
    "null_type",
    "size",
    "string",
    "timestamp",
    "type",
    "uint",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "isURL",
    "url",
    "isQuantity",
    "quantity",
    "sign",
    "cidr",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isIP",
    "isSemver",
    "semver",
    "lists.range",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "strings.quote",
    "format.named",
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    "@entries",
    "@mapOf",
    "@mergeEntries",
];

/// Called as a method of a value.
const MEMBER: &[&str] = &[
    // The functions of CEL itself, and of ext.Strings.
    "charAt",
    "contains",
    "endsWith",
    "format",
    "indexOf",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "replace",
    "size",
    "split",
    "startsWith",
    "substring",
    "trim",
    "upperAscii",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "or",
    "orValue",
    "value",
    // List functions: those of Kubernetes, and of ext.Lists.
    "isSorted",
    "max",
    "min",
    "sum",
    "distinct",
    "flatten",
    "reverse",
    "slice",
    "sort",
    "@sortByAssociatedKeys",
    "find",
    "findAll",
    "getEscapedPath",
    "getHost",
    "getHostname",
    "getPort",
    "getQuery",
    "getScheme",
    "add",
    "asApproximateFloat",
    "asInteger",
    "compareTo",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "sub",
    "containsCIDR",
    "containsIP",
    "family",
    "ip",
    "isGlobalUnicast",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isUnspecified",
    "masked",
    "prefixLength",
    "major",
    "minor",
    "patch",
    "validate",
    "allowed",
    "check",
    "error",
    "errored",
    "fieldSelector",
    "group",
    "labelSelector",
    "name",
    "namespace",
    "path",
    "reason",
    "resource",
    "serviceAccount",
    "subresource",
];

/// Names of types, which may be used like variables.
pub const TYPES: [&str; 15] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "type",
    "uint",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "optional_type",
];

/// Returns the function with its namespace, if the target of the call is a namespace.
pub fn qualified(call: &CallExpr) -> Option<String> {
    let Expr::Ident(namespace) = &call.target.as_deref()?.expr else { return None };
    let name = format!("{namespace}.{}", call.func_name);
    GLOBAL.contains(&name.as_str()).then_some(name)
}

/// Whether a selection from this operand is a qualified name of a variable or type.
pub fn is_path(operand: &IdedExpr) -> bool {
    match &operand.expr {
        Expr::Ident(name) => name == "authorizer" || name == "google",
        Expr::Select(select) => matches!(&select.operand.expr, Expr::Ident(name) if name == "google"),
        _ => false,
    }
}

/// Whether the function exists.
pub fn is_known(call: &CallExpr) -> bool {
    let name = call.func_name.as_str();
    match &call.target {
        None => OPERATORS.contains(&name) || GLOBAL.contains(&name),
        Some(_) => MEMBER.contains(&name) || qualified(call).is_some(),
    }
}
