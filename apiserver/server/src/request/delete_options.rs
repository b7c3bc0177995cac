//! Options of a delete, from the body or else from the query (metav1.DeleteOptions).

use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::{ApiError, decode};
use drydock_serving::request::query::Query;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::list_options;
use super::write_options::{dry_run_error, dry_run_values};

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOptions {
    /// Conditions that the object must meet.
    pub preconditions: Option<Preconditions>,
    /// The older form of `propagationPolicy`.
    pub orphan_dependents: Option<bool>,
    /// What becomes of dependents.
    pub propagation_policy: Option<String>,
    #[serde(default)]
    dry_run: Vec<String>,
    api_version: Option<String>,
    kind: Option<String>,
}

/// metav1.Preconditions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    /// Must be the object's uid.
    pub uid: Option<String>,
    /// Must be the object's resourceVersion.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Whether nothing is to be committed.
    pub fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    /// Returns the options that were given, by field name.
    pub fn to_fields(&self) -> Map<String, Value> {
        let given = json!({
            "preconditions": self.preconditions.as_ref().map(|wanted| {
                let fields = json!({"uid": wanted.uid, "resourceVersion": wanted.resource_version});
                without_nulls(fields)
            }),
            "orphanDependents": self.orphan_dependents,
            "propagationPolicy": self.propagation_policy,
            "dryRun": Some(&self.dry_run).filter(|values| !values.is_empty()),
        });
        match without_nulls(given) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Reads the options from a query (k8s.io/apimachinery pkg/apis/meta/v1, Convert_url_Values_To_v1_DeleteOptions).
    pub fn from_query(query: &Query) -> Result<Self, ApiError> {
        list_options::number(query, "gracePeriodSeconds")?;
        let wanted = |name: &str| query.non_empty(name).map(str::to_owned);
        let preconditions = Preconditions { uid: wanted("uid"), resource_version: wanted("resourceVersion") };
        Ok(Self {
            preconditions: (preconditions != Preconditions::default()).then_some(preconditions),
            orphan_dependents: query.optional_flag("orphanDependents"),
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            dry_run: dry_run_values(query),
            ..Self::default()
        })
    }

    /// Reads the options from a body. Fails with 400 if it holds no DeleteOptions.
    pub fn from_value(value: Value) -> Result<Self, ApiError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let options: Self =
            serde_json::from_value(value).map_err(|error| ApiError::bad_request(error.to_string()))?;
        if options.kind.as_deref().is_some_and(|kind| !kind.is_empty() && kind != "DeleteOptions") {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let (kind, version) = (text(&options.kind), text(&options.api_version));
            return Err(ApiError::bad_request(decode::not_registered(&kind, &version)));
        }
        Ok(options)
    }

    /// Returns the validation errors of the options.
    pub fn errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("propagationPolicy");
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(Error::invalid(path.clone(), policy.as_str(), detail));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(path, policy.as_str(), &known));
            }
        }
        errors.extend(dry_run_error(&self.dry_run));
        errors
    }

    /// The finalizers that an object has once its deletion is asked for with these options. The present ones keep their
    /// order if none comes or goes
    /// (k8s.io/apiserver/pkg/registry/generic/registry/store.go, deletionFinalizersForGarbageCollection).
    pub fn finalizers(&self, present: &[&str]) -> Vec<String> {
        const ORPHAN: &str = "orphan";
        const FOREGROUND: &str = "foregroundDeletion";
        let of_garbage = |f: &&&str| **f == ORPHAN || **f == FOREGROUND;
        let kept = present.iter().filter(|f| !of_garbage(f)).map(|f| (*f).to_owned());
        let wanted = match (self.orphan_dependents, self.propagation_policy.as_deref()) {
            (Some(true), _) | (None, Some("Orphan")) => Some(ORPHAN),
            (None, Some("Foreground")) => Some(FOREGROUND),
            (Some(false), _) | (None, Some(_)) => None,
            (None, None) => present.iter().copied().find(|f| of_garbage(&f)),
        };
        let is_same = present.iter().filter(of_garbage).all(|held| Some(*held) == wanted)
            && wanted.is_none_or(|wanted| present.contains(&wanted));
        if is_same {
            return present.iter().map(|present| (*present).to_owned()).collect();
        }
        kept.chain(wanted.map(str::to_owned)).collect()
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
