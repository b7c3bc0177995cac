//! Lease of coordination.k8s.io/v1 (k8s.io/kubernetes pkg/registry/coordination/lease).

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Column, Kind, NAME_AND_AGE, Names, Now};
use drydock_machinery::schema::common::{object, optional};
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::table;
use serde_json::Value;

use super::{always, names, scalar, top_level};

const NAMES: Names = names("Lease", "leases", "lease");

/// The kind.
pub struct Lease(Schema);

impl Lease {
    /// Creates the kind with its schema.
    pub fn new() -> Self {
        let spec = vec![
            scalar("holderIdentity", 1, Shape::String).pointer(),
            scalar("leaseDurationSeconds", 2, Shape::Int32),
            scalar("acquireTime", 3, Shape::MicroTime),
            scalar("renewTime", 4, Shape::MicroTime),
            scalar("leaseTransitions", 5, Shape::Int32),
        ];
        let spec = object("", "test.drydock.reference.v1.LeaseSpec", spec);
        Self(top_level("test.drydock.reference.v1.Lease", vec![always(optional("spec", 2, spec))]))
    }
}

impl Kind for Lease {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        let number =
            |field: &str| object.0.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_i64);
        let path = Path::new("spec");
        let mut errors = ErrorList::new();
        if let Some(seconds) = number("leaseDurationSeconds").filter(|n| *n <= 0) {
            errors.push(Error::invalid(
                path.child("leaseDurationSeconds"),
                seconds,
                "must be greater than 0",
            ));
        }
        if let Some(count) = number("leaseTransitions").filter(|n| *n < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(Error::invalid(path.child("leaseTransitions"), count, detail));
        }
        errors
    }

    fn counts_generation(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        let holder = object.0.get("spec").and_then(|spec| spec.get("holderIdentity")).cloned();
        vec![object.name().into(), holder.unwrap_or("".into()), table::age(object, now).into()]
    }
}

const COLUMNS: [Column; 3] = {
    let [name, age] = NAME_AND_AGE;
    let holder = Column {
        name: "Holder",
        type_: "string",
        format: "",
        description: "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.",
        priority: 0,
    };
    [name, holder, age]
};
