//! Kinds of the host written again as kinds of the generic server, as a developer with a kind of their own
//! would write them: schema and strategy, one file for each kind. Nothing else knows them.
//!
//! They implement the part of the host's validation that the sequences need.

mod budget;
mod config_map;
mod lease;
mod runtime_class;
mod service_account;

use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::schema::common::{meta_schema, object, optional, text};
use drydock_machinery::schema::{Field, Schema, Shape};

use crate::target::REFERENCE_KINDS;

/// Every reference kind.
pub fn all() -> Vec<Box<dyn Kind>> {
    vec![
        Box::new(budget::BudgetKind::new()),
        Box::new(config_map::ConfigMap::new()),
        Box::new(lease::Lease::new()),
        Box::new(runtime_class::RuntimeClass::new()),
        Box::new(service_account::ServiceAccount::new()),
    ]
}

const fn names(kind: &'static str, plural: &'static str, singular: &'static str) -> Names {
    Names {
        group: REFERENCE_KINDS.group,
        version: REFERENCE_KINDS.version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
    }
}

/// `apiVersion`, `kind`, `metadata` and the kind's own fields.
fn top_level(definition: &'static str, fields: Vec<Field>) -> Schema {
    let mut all = vec![
        text("apiVersion", 0, "Version of this representation."),
        text("kind", 0, "What this is."),
        Field { always: true, ..optional("metadata", 1, meta_schema()) },
    ];
    all.extend(fields);
    object("A kind of the host.", definition, all)
}

/// A struct that is no pointer.
fn always(field: Field) -> Field {
    Field { always: true, ..field }
}

fn scalar(name: &'static str, number: u32, shape: Shape) -> Field {
    optional(name, number, Schema::new("", shape))
}
