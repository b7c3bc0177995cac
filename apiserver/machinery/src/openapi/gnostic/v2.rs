//! OpenAPIv2.proto of github.com/google/gnostic-models.

use super::Type::{Any, Boolean, Double, Integer, List, Message as Struct, Named, OneOf, Text, Wrapped};
use super::{Choice, MessageTable, Type, is_any};

/// A Swagger 2.0 document.
pub(in crate::openapi) static DOCUMENT: MessageTable = MessageTable {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, Struct(&INFO)),
        ("paths", 8, Named(2, &Struct(&PATH_ITEM))),
        ("definitions", 9, Named(1, &Struct(&SCHEMA))),
        ("security", 12, List(&Named(1, &Wrapped(&Text)))),
        ("securityDefinitions", 13, Named(1, &SECURITY_DEFINITION)),
    ],
    extensions: 16,
};

static INFO: MessageTable =
    MessageTable { fields: &[("title", 1, Text), ("version", 2, Text)], extensions: 7 };

static PATH_ITEM: MessageTable = MessageTable {
    fields: &[
        ("get", 2, Struct(&OPERATION)),
        ("put", 3, Struct(&OPERATION)),
        ("post", 4, Struct(&OPERATION)),
        ("delete", 5, Struct(&OPERATION)),
        ("options", 6, Struct(&OPERATION)),
        ("head", 7, Struct(&OPERATION)),
        ("patch", 8, Struct(&OPERATION)),
        ("parameters", 9, List(&PARAMETER)),
    ],
    extensions: 10,
};

static OPERATION: MessageTable = MessageTable {
    fields: &[
        ("tags", 1, List(&Text)),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, List(&Text)),
        ("consumes", 7, List(&Text)),
        ("parameters", 8, List(&PARAMETER)),
        ("responses", 9, Named(1, &OneOf(&[(is_any, 1, Struct(&RESPONSE))]))),
        ("schemes", 10, List(&Text)),
        ("deprecated", 11, Boolean),
    ],
    extensions: 13,
};

/// ParametersItem{parameter = 1}; none of our parameters is a reference.
static PARAMETER: Type = OneOf(&[(
    is_any,
    1,
    OneOf(&[
        (|parameter| parameter["in"] == "body", 1, Struct(&BODY_PARAMETER)),
        (
            is_any,
            2,
            OneOf(&[
                (|parameter| parameter["in"] == "query", 3, Struct(&QUERY_PARAMETER)),
                (|parameter| parameter["in"] == "path", 4, Struct(&PATH_PARAMETER)),
            ]),
        ),
    ]),
)]);

static BODY_PARAMETER: MessageTable = MessageTable {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Boolean),
        ("schema", 5, Struct(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY_PARAMETER: MessageTable = MessageTable {
    fields: &[
        ("required", 1, Boolean),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("format", 7, Text),
        ("default", 10, Any),
        ("uniqueItems", 20, Boolean),
        ("enum", 21, List(&Any)),
    ],
    extensions: 23,
};

static PATH_PARAMETER: MessageTable = MessageTable {
    fields: &[
        ("required", 1, Boolean),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("uniqueItems", 19, Boolean),
    ],
    extensions: 22,
};

static RESPONSE: MessageTable = MessageTable {
    fields: &[("description", 1, Text), ("schema", 2, OneOf(&[(is_any, 1, Struct(&SCHEMA))]))],
    extensions: 5,
};

static SCHEMA: MessageTable = MessageTable {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("maximum", 7, Double),
        ("minimum", 9, Double),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Boolean),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, List(&Text)),
        ("enum", 20, List(&Any)),
        ("additionalProperties", 21, OneOf(&ADDITIONAL_PROPERTIES)),
        ("type", 22, Wrapped(&Text)),
        ("items", 23, Wrapped(&Struct(&SCHEMA))),
        ("allOf", 24, List(&Struct(&SCHEMA))),
        ("properties", 25, Named(1, &Struct(&SCHEMA))),
        ("readOnly", 27, Boolean),
    ],
    extensions: 31,
};

static ADDITIONAL_PROPERTIES: [Choice; 2] =
    [(|value| value.is_boolean(), 2, Boolean), (is_any, 1, Struct(&SCHEMA))];

static SECURITY_DEFINITION: Type =
    OneOf(&[(|definition| definition["type"] == "apiKey", 2, Struct(&API_KEY_SECURITY))]);

static API_KEY_SECURITY: MessageTable = MessageTable {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: 5,
};
