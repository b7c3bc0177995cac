//! PodDisruptionBudget of policy/v1 (k8s.io/kubernetes pkg/registry/policy/poddisruptionbudget).

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Column, Kind, NAME_AND_AGE, Names, Now};
use drydock_machinery::metav1::{Condition, LabelSelector};
use drydock_machinery::names::{self, NameRule};
use drydock_machinery::schema::common::{CONDITIONS_MAX, list, object, optional};
use drydock_machinery::schema::{ApiType, ListType, PatchStrategy, Schema, Shape};
use drydock_machinery::{selector, table};
use serde_json::Value;

use super::{always, scalar, top_level};

const NAMES: Names = super::names("PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget");

/// The kind.
pub struct BudgetKind(Schema);

impl BudgetKind {
    /// Creates the kind with its schema.
    pub fn new() -> Self {
        let selector = Schema { patch: PatchStrategy::Replace, ..LabelSelector::schema() };
        let spec = vec![
            scalar("minAvailable", 1, Shape::IntOrString),
            optional("selector", 2, selector),
            scalar("maxUnavailable", 3, Shape::IntOrString),
            scalar("unhealthyPodEvictionPolicy", 4, Shape::String).pointer(),
        ];
        let times = Schema::new("", Shape::Map(Box::new(Schema::new("", Shape::Time))));
        let conditions = list("", Condition::schema(), ListType::Map(&["type"])).at_most(CONDITIONS_MAX);
        let status = vec![
            scalar("observedGeneration", 1, Shape::Int64).by_value(),
            optional("disruptedPods", 2, times),
            always(scalar("disruptionsAllowed", 3, Shape::Int32)),
            always(scalar("currentHealthy", 4, Shape::Int32)),
            always(scalar("desiredHealthy", 5, Shape::Int32)),
            always(scalar("expectedPods", 6, Shape::Int32)),
            optional("conditions", 7, conditions),
        ];
        let name = "test.drydock.reference.v1.PodDisruptionBudget";
        let spec = object("", "test.drydock.reference.v1.PodDisruptionBudgetSpec", spec);
        let status = object("", "test.drydock.reference.v1.PodDisruptionBudgetStatus", status);
        Self(top_level(name, vec![always(optional("spec", 2, spec)), always(optional("status", 3, status))]))
    }
}

impl Kind for BudgetKind {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn prepare_for_create(&self, object: &mut Object) {
        let zeros = ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"];
        let status: serde_json::Map<_, _> =
            zeros.map(|name| (name.to_owned(), Value::from(0))).into_iter().collect();
        object.0.insert("status".into(), status.into());
    }

    fn name_rule(&self) -> NameRule {
        names::path_segment
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        let Some(spec) = object.0.get("spec") else { return ErrorList::new() };
        let path = Path::new("spec");
        let mut errors = ErrorList::new();
        for field in ["minAvailable", "maxUnavailable"] {
            errors.extend(validate_amount(&spec[field], &path.child(field)));
        }
        if let Some(selected) = spec.get("selector") {
            errors.extend(selector::validate_label_selector(selected, &path.child("selector")));
        }
        let policy = spec["unhealthyPodEvictionPolicy"].as_str().unwrap_or("AlwaysAllow");
        if !["AlwaysAllow", "IfHealthyBudget"].contains(&policy) {
            let supported = &["AlwaysAllow", "IfHealthyBudget"];
            errors.push(Error::not_supported(path.child("unhealthyPodEvictionPolicy"), policy, supported));
        }
        errors
    }

    fn validate_status_update(&self, new: &Object, _old: &Object, _now: Now) -> ErrorList {
        let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        let status = &new.0.get("status").cloned().unwrap_or_default();
        let negative = counts.into_iter().filter(|name| status[*name].as_i64().is_some_and(|n| n < 0));
        negative
            .map(|name| {
                let path = Path::new("status").child(name);
                Error::invalid(path, status[name].clone(), "must be greater than or equal to 0")
            })
            .collect()
    }

    fn status_keeps_metadata(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        let of = |part: &str, field: &str| object.0.get(part).and_then(|p| p.get(field)).cloned();
        let amount = |field: &str| match of("spec", field) {
            Some(Value::String(text)) => text,
            Some(number) => number.to_string(),
            None => "N/A".to_owned(),
        };
        vec![
            object.name().into(),
            amount("minAvailable").into(),
            amount("maxUnavailable").into(),
            of("status", "disruptionsAllowed").unwrap_or(0.into()),
            table::age(object, now).into(),
        ]
    }
}

/// k8s.io/kubernetes pkg/apis/apps/validation, ValidatePositiveIntOrPercent and IsNotMoreThan100Percent.
fn validate_amount(amount: &Value, path: &Path) -> Option<Error> {
    match amount {
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => {
            Some(Error::invalid(path.clone(), amount.clone(), "must be greater than or equal to 0"))
        }
        Value::String(text) => match text.strip_suffix('%').map(str::parse::<u32>) {
            Some(Ok(percent)) if percent <= 100 => None,
            Some(Ok(_)) => {
                Some(Error::invalid(path.clone(), amount.clone(), "must not be greater than 100%"))
            }
            _ => Some(Error::invalid(path.clone(), amount.clone(), PERCENT)),
        },
        _ => None,
    }
}

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
    regex used for validation is '[0-9]+%')";

const fn column(name: &'static str, type_: &'static str, description: &'static str) -> Column {
    Column { name, type_, format: "", description, priority: 0 }
}

const COLUMNS: [Column; 5] = {
    let [name, age] = NAME_AND_AGE;
    [
        name,
        column("Min Available", "string", "The minimum number of pods that must be available."),
        column("Max Unavailable", "string", "The maximum number of pods that may be unavailable."),
        column(
            "Allowed Disruptions",
            "integer",
            "Calculated number of pods that may be disrupted at this time.",
        ),
        age,
    ]
};
