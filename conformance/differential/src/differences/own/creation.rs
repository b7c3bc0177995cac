//! Differences in creation.

use super::{DifferenceGroup, KINDS, NAME, NAMED, NODES, STRUCTS, TYPES, UNION};

pub(super) const ALL: &[DifferenceGroup] = &[
    (
        "create: maintenance: is created dryly",
        STRUCTS,
        &[(0, "body.metadata.managedFields.0.fieldsV1.f:spec..")],
    ),
    (
        "create: maintenance: is created with a reason",
        STRUCTS,
        &[(0, "body.metadata.managedFields.0.fieldsV1.f:spec..")],
    ),
    (
        "create: maintenance: is created with its defaults",
        STRUCTS,
        &[(0, "body.metadata.managedFields.0.fieldsV1.f:spec..")],
    ),
    (
        "create: maintenance: with a generated name",
        STRUCTS,
        &[(0, "body.metadata.managedFields.0.fieldsV1.f:spec..")],
    ),
    (
        "create: maintenance: with a namespace",
        STRUCTS,
        &[(0, "body.metadata.managedFields.0.fieldsV1.f:spec..")],
    ),
    (
        "create: maintenance: with a number for its stage",
        TYPES,
        &[(0, "body.code"), (0, "body.details"), (0, "body.message"), (0, "body.reason"), (0, "code")],
    ),
    (
        "create: maintenance: without nodes",
        NODES,
        &[(0, "body.details.causes.0.field"), (0, "body.details.causes.0.message"), (0, "body.message")],
    ),
    (
        "create: request: is created",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: is created dryly",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: is created in YAML",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: is created with metadata",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: is created without its status",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: is there already, beside another",
        STRUCTS,
        &[
            (1, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (1, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: of another kind",
        KINDS,
        &[(0, "body.code"), (0, "body.details"), (0, "body.message"), (0, "body.reason"), (0, "code")],
    ),
    ("create: request: of another version", KINDS, &[(0, "body.message"), (0, "headers.warning")]),
    ("create: request: with a number for a label", TYPES, &[(0, "body.message")]),
    (
        "create: request: with a requester twice",
        NAMED,
        &[(0, "body.details.causes.0.field"), (0, "body.details.causes.0.message"), (0, "body.message")],
    ),
    (
        "create: request: with a text for its spec",
        TYPES,
        &[(0, "body.code"), (0, "body.details"), (0, "body.message"), (0, "body.reason"), (0, "code")],
    ),
    (
        "create: request: with unknown fields",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: with unknown fields under Ignore",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: with unknown fields under Warn",
        STRUCTS,
        &[
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.."),
            (0, "body.metadata.managedFields.0.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "create: request: without a name",
        NAME,
        &[(0, "body.details.causes.0.message"), (0, "body.details.causes.0.reason"), (0, "body.message")],
    ),
    (
        "create: request: without a target",
        UNION,
        &[(0, "body.details.causes.0.message"), (0, "body.message")],
    ),
];
