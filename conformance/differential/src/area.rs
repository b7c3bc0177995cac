//! What sequences are about, and how many of them each area has at the least.

use std::fmt;

/// One part of the API's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Creation and the validation of objects.
    Create,
    /// PUT, on the object and on its status.
    Update,
    /// application/json-patch+json
    JsonPatch,
    /// application/merge-patch+json
    MergePatch,
    /// application/strategic-merge-patch+json
    StrategicMergePatch,
    /// application/apply-patch+yaml, and managed fields.
    Apply,
    /// Deletion of one object and of collections.
    Delete,
    /// Lists, pages and selectors.
    List,
    /// Watches.
    Watch,
    /// Formats of bodies and answers.
    Formats,
    /// Refusals that belong to no verb.
    Errors,
    /// Who asks, and who may.
    Auth,
}

impl Area {
    /// Every area with the least number of its sequences: fewer fail the suite.
    pub const MINIMA: [(Area, usize); 12] = [
        (Area::Create, 230),
        (Area::Update, 90),
        (Area::JsonPatch, 130),
        (Area::MergePatch, 130),
        (Area::StrategicMergePatch, 130),
        (Area::Apply, 230),
        (Area::Delete, 90),
        (Area::List, 165),
        (Area::Watch, 80),
        (Area::Formats, 90),
        (Area::Errors, 45),
        (Area::Auth, 35),
    ];
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Area::Create => "create",
            Area::Update => "update",
            Area::JsonPatch => "json-patch",
            Area::MergePatch => "merge-patch",
            Area::StrategicMergePatch => "strategic-merge-patch",
            Area::Apply => "apply",
            Area::Delete => "delete",
            Area::List => "list",
            Area::Watch => "watch",
            Area::Formats => "formats",
            Area::Errors => "errors",
            Area::Auth => "auth",
        })
    }
}
