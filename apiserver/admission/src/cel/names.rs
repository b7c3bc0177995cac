//! Functions that an expression may call. One that is not here is refused when the expression is compiled: the
//! interpreter would notice it only when it came to it.

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

/// Called by name alone, or by a name with a namespace.
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

/// Called on a value.
const MEMBER: &[&str] = &[
    // The language's own, and ext.Strings.
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
    // Lists: those of Kubernetes, and ext.Lists.
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

/// Names of types, which stand where variables do.
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

/// The function that a call names with its namespace, if that is what its target is.
pub fn qualified(call: &CallExpr) -> Option<String> {
    let Expr::Ident(namespace) = &call.target.as_deref()?.expr else { return None };
    let name = format!("{namespace}.{}", call.func_name);
    GLOBAL.contains(&name.as_str()).then_some(name)
}

/// Whether a selection from this is a name of its own: a variable's or a type's.
pub fn is_path(operand: &IdedExpr) -> bool {
    match &operand.expr {
        Expr::Ident(name) => name == "authorizer" || name == "google",
        Expr::Select(select) => matches!(&select.operand.expr, Expr::Ident(name) if name == "google"),
        _ => false,
    }
}

/// Whether there is such a function.
pub fn is_known(call: &CallExpr) -> bool {
    let name = call.func_name.as_str();
    match &call.target {
        None => OPERATORS.contains(&name) || GLOBAL.contains(&name),
        Some(_) => MEMBER.contains(&name) || qualified(call).is_some(),
    }
}
