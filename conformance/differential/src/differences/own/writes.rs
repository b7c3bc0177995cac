//! Differences in updates, patches, applies and deletions.

use super::{CONTINUE, DifferenceGroup, EMPTY, ITEMS, KEYS, KINDS, NODES, STRUCTS, TWICE, WORDS};

pub(super) const ALL: &[DifferenceGroup] = &[
    (
        "apply: request: has a requester without a name",
        KEYS,
        &[(1, "body.code"), (1, "body.message"), (1, "body.details"), (1, "body.reason"), (1, "code")],
    ),
    (
        "apply: request: is reset",
        STRUCTS,
        &[
            (2, "body.metadata.managedFields.1.fieldsV1.f:spec.."),
            (2, "body.metadata.managedFields.1.fieldsV1.f:spec.f:target.."),
        ],
    ),
    (
        "delete: maintenance: are deleted by a selector",
        ITEMS,
        &[(1, "body.items.0.apiVersion"), (1, "body.items.0.kind")],
    ),
    ("delete: maintenance: are deleted by a selector", CONTINUE, &[(1, "body.metadata.continue")]),
    (
        "delete: request: are deleted by a selector",
        ITEMS,
        &[(2, "body.items.0.apiVersion"), (2, "body.items.0.kind")],
    ),
    ("delete: request: are deleted by a selector", CONTINUE, &[(2, "body.metadata.continue")]),
    ("delete: request: are deleted where none are", CONTINUE, &[(1, "body.metadata.continue")]),
    ("delete: request: gets no finalizer while it waits", TWICE, &[(2, "body.details.causes")]),
    (
        "json-patch: request: a status gets and loses a condition",
        EMPTY,
        &[(2, "body.metadata.managedFields"), (2, "body.status.conditions")],
    ),
    ("json-patch: request: all items are removed", EMPTY, &[(1, "body.spec.requesters")]),
    (
        "json-patch: request: another kind",
        KINDS,
        &[
            (1, "body.details.causes.0.field"),
            (1, "body.details.causes.0.message"),
            (1, "body.details.group"),
            (1, "body.details.kind"),
            (1, "body.details.name"),
            (1, "body.message"),
        ],
    ),
    (
        "merge-patch: maintenance: loses its nodes",
        NODES,
        &[(1, "body.details.causes.0.field"), (1, "body.details.causes.0.message"), (1, "body.message")],
    ),
    ("merge-patch: request: in what there is not", WORDS, &[(1, "body.message"), (1, "body.details")]),
    ("merge-patch: request: with another UID", TWICE, &[(1, "body.details.causes")]),
    ("merge-patch: request: with bad labels", TWICE, &[(1, "body.details.causes")]),
    ("update: request: loses its requesters", EMPTY, &[(1, "body.spec.requesters")]),
    ("update: request: with bad annotations", TWICE, &[(1, "body.details.causes")]),
];
