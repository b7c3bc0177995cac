//! OpenAPIv3.proto of github.com/google/gnostic-models.

use super::Type::{Any, Boolean, Double, Integer, List, Message as Struct, Named, OneOf, Text, Wrapped};
use super::{Choice, MessageTable, Type, is_any, is_reference};

/// An OpenAPI 3.0 document.
pub(in crate::openapi) static DOCUMENT: MessageTable = MessageTable {
    fields: &[
        ("openapi", 1, Text),
        ("info", 2, Struct(&INFO)),
        ("paths", 4, Named(1, &Struct(&PATH_ITEM))),
        ("components", 5, Struct(&COMPONENTS)),
        ("security", 6, List(&Named(1, &Wrapped(&Text)))),
    ],
    extensions: 9,
};

static INFO: MessageTable =
    MessageTable { fields: &[("title", 1, Text), ("version", 6, Text)], extensions: 7 };

static COMPONENTS: MessageTable = MessageTable {
    fields: &[
        ("schemas", 1, Named(1, &OneOf(&SCHEMA_OR_REFERENCE))),
        ("securitySchemes", 7, Named(1, &OneOf(&[(is_any, 1, Struct(&SECURITY_SCHEME))]))),
    ],
    extensions: 10,
};

static PATH_ITEM: MessageTable = MessageTable {
    fields: &[
        ("get", 4, Struct(&OPERATION)),
        ("put", 5, Struct(&OPERATION)),
        ("post", 6, Struct(&OPERATION)),
        ("delete", 7, Struct(&OPERATION)),
        ("options", 8, Struct(&OPERATION)),
        ("head", 9, Struct(&OPERATION)),
        ("patch", 10, Struct(&OPERATION)),
        ("parameters", 13, List(&PARAMETER)),
    ],
    extensions: 14,
};

static OPERATION: MessageTable = MessageTable {
    fields: &[
        ("tags", 1, List(&Text)),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, List(&PARAMETER)),
        ("requestBody", 7, OneOf(&[(is_any, 1, Struct(&REQUEST_BODY))])),
        ("responses", 8, Named(2, &OneOf(&[(is_any, 1, Struct(&RESPONSE))]))),
        ("deprecated", 10, Boolean),
    ],
    extensions: 13,
};

/// ParameterOrReference{parameter = 1}; none of our parameters, request bodies and responses is a reference.
static PARAMETER: Type = OneOf(&[(is_any, 1, Struct(&PARAMETER_FIELDS))]);

static PARAMETER_FIELDS: MessageTable = MessageTable {
    fields: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Boolean),
        ("schema", 10, OneOf(&SCHEMA_OR_REFERENCE)),
    ],
    extensions: 14,
};

static REQUEST_BODY: MessageTable = MessageTable {
    fields: &[("description", 1, Text), ("content", 2, MEDIA_TYPES), ("required", 3, Boolean)],
    extensions: 4,
};

static RESPONSE: MessageTable =
    MessageTable { fields: &[("description", 1, Text), ("content", 3, MEDIA_TYPES)], extensions: 5 };

const MEDIA_TYPES: Type = Named(1, &Struct(&MEDIA_TYPE));

static MEDIA_TYPE: MessageTable =
    MessageTable { fields: &[("schema", 1, OneOf(&SCHEMA_OR_REFERENCE))], extensions: 5 };

static SCHEMA_OR_REFERENCE: [Choice; 2] =
    [(is_reference, 2, Struct(&REFERENCE)), (is_any, 1, Struct(&SCHEMA))];

static REFERENCE: MessageTable =
    MessageTable { fields: &[("$ref", 1, Text), ("description", 3, Text)], extensions: 0 };

static SCHEMA: MessageTable = MessageTable {
    fields: &[
        ("nullable", 1, Boolean),
        ("readOnly", 3, Boolean),
        ("title", 9, Text),
        ("maximum", 11, Double),
        ("minimum", 13, Double),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Boolean),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, List(&Text)),
        ("enum", 24, List(&Any)),
        ("type", 25, Text),
        ("allOf", 26, List(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("oneOf", 27, List(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("anyOf", 28, List(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("items", 30, Wrapped(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("properties", 31, Named(1, &OneOf(&SCHEMA_OR_REFERENCE))),
        ("additionalProperties", 32, OneOf(&ADDITIONAL_PROPERTIES)),
        ("default", 33, OneOf(&DEFAULT)),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    extensions: 36,
};

static ADDITIONAL_PROPERTIES: [Choice; 2] =
    [(|value| value.is_boolean(), 2, Boolean), (is_any, 1, OneOf(&SCHEMA_OR_REFERENCE))];

/// The message has no place for a struct: gnostic leaves it empty.
static DEFAULT: [Choice; 3] = [
    (|value| value.is_number(), 1, Double),
    (|value| value.is_boolean(), 2, Boolean),
    (|value| value.is_string(), 3, Text),
];

static SECURITY_SCHEME: MessageTable = MessageTable {
    fields: &[("type", 1, Text), ("description", 2, Text), ("name", 3, Text), ("in", 4, Text)],
    extensions: 9,
};
