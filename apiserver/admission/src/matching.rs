//! Decides which requests a policy, a binding or a webhook applies to (k8s.io/apiserver
//! pkg/admission/plugin/policy/matching, webhook/predicates).
//!
//! With `matchPolicy: Exact` a rule matches requests in the versions that it names. Otherwise it matches requests in any
//! version of the kind, which are then converted to the version that it names. For a kind that is served in one version
//! there is no difference.

use drydock_machinery::kind::Kind;
use drydock_machinery::selector::{LabelRequirements, Operator, Requirement};
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::AdmissionAttributes;
use k8s_openapi::api::admissionregistration::v1 as host;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::cel::{Activation, EvaluationResult, Expression};
use crate::namespaces::NamespaceSource;

/// One rule.
#[derive(Clone, Debug, Default)]
pub struct MatchRule {
    groups: Vec<String>,
    versions: Vec<String>,
    operations: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    /// Object names; any name if empty.
    names: Vec<String>,
}

/// The kinds that this server serves, as `(group, version, plural)`.
pub type ServedKinds = [(String, String, String)];

impl From<&host::RuleWithOperations> for MatchRule {
    fn from(rule: &host::RuleWithOperations) -> Self {
        Self {
            groups: rule.api_groups.clone().unwrap_or_default(),
            versions: rule.api_versions.clone().unwrap_or_default(),
            operations: rule.operations.clone().unwrap_or_default(),
            resources: rule.resources.clone().unwrap_or_default(),
            scope: rule.scope.clone(),
            names: Vec::new(),
        }
    }
}

impl From<&host::NamedRuleWithOperations> for MatchRule {
    fn from(rule: &host::NamedRuleWithOperations) -> Self {
        Self {
            groups: rule.api_groups.clone().unwrap_or_default(),
            versions: rule.api_versions.clone().unwrap_or_default(),
            operations: rule.operations.clone().unwrap_or_default(),
            resources: rule.resources.clone().unwrap_or_default(),
            scope: rule.scope.clone(),
            names: rule.resource_names.clone().unwrap_or_default(),
        }
    }
}

impl MatchRule {
    /// Whether the rule can apply to one of these kinds.
    pub fn can_apply(&self, served: &ServedKinds) -> bool {
        served.iter().any(|(group, version, plural)| {
            has(&self.groups, group)
                && has(&self.versions, version)
                && self
                    .resources
                    .iter()
                    .any(|it| matches!(it.split('/').next(), Some(r) if r == "*" || r == plural))
        })
    }

    /// Whether it matches the request as one in `version`.
    fn matches(&self, request: &AdmissionAttributes<'_>, version: &str) -> bool {
        let in_scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => !request.namespace.is_empty(),
            Some("Cluster") => request.namespace.is_empty(),
            Some(_) => false,
        };
        in_scope
            && has(&self.operations, request.operation.as_str())
            && has(&self.groups, request.names.group)
            && has(&self.versions, version)
            && self.resources.iter().any(|it| is_resource(it, request))
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }
}

fn is_resource(pattern: &str, request: &AdmissionAttributes<'_>) -> bool {
    let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
    (resource == "*" || resource == request.names.plural)
        && (subresource == "*" || subresource == request.subresource)
}

fn has(all: &[String], wanted: &str) -> bool {
    all.iter().any(|it| it == "*" || it == wanted)
}

/// All criteria that select requests.
#[derive(Clone, Debug)]
pub struct Criteria {
    rules: Vec<MatchRule>,
    /// Whether the absence of rules means every request.
    any_without_rules: bool,
    excluded: Vec<MatchRule>,
    /// Whether rules match requests in other versions than those that they name. The host's default is that they do.
    is_equivalent: bool,
    namespaces: Result<LabelRequirements, String>,
    objects: Result<LabelRequirements, String>,
}

impl Criteria {
    /// The criteria of a webhook.
    pub fn of_webhook(
        rules: Option<&[host::RuleWithOperations]>,
        namespaces: Option<&meta::LabelSelector>,
        objects: Option<&meta::LabelSelector>,
        match_policy: Option<&str>,
    ) -> Self {
        Self {
            rules: rules.unwrap_or_default().iter().map(MatchRule::from).collect(),
            any_without_rules: false,
            excluded: Vec::new(),
            is_equivalent: match_policy != Some("Exact"),
            namespaces: selector(namespaces),
            objects: selector(objects),
        }
    }

    /// The criteria of a policy or a binding.
    pub fn of_policy(it: &host::MatchResources) -> Self {
        let rules = |rules: &Option<Vec<host::NamedRuleWithOperations>>| {
            rules.iter().flatten().map(MatchRule::from).collect()
        };
        Self {
            rules: rules(&it.resource_rules),
            any_without_rules: true,
            excluded: rules(&it.exclude_resource_rules),
            is_equivalent: it.match_policy.as_deref() != Some("Exact"),
            namespaces: selector(it.namespace_selector.as_ref()),
            objects: selector(it.object_selector.as_ref()),
        }
    }

    /// Whether the criteria can match a request for one of these kinds.
    pub fn can_apply(&self, served: &ServedKinds) -> bool {
        (self.any_without_rules && self.rules.is_empty())
            || self.rules.iter().any(|rule| rule.can_apply(served))
    }

    /// Returns the kind in the version in which the criteria match this request; `None` if they do not match it. Fails
    /// if a selector is invalid or the namespace cannot be read.
    pub async fn matches<'a>(
        &self,
        request: &AdmissionAttributes<'a>,
        namespaces: &dyn NamespaceSource,
    ) -> Result<Option<&'a dyn Kind>, ApiError> {
        let any = self.any_without_rules && self.rules.is_empty();
        let matched = if any { Some(request.kind) } else { self.matched_version(&self.rules, request) };
        if matched.is_none() || self.matched_version(&self.excluded, request).is_some() {
            return Ok(None);
        }
        let is_selected = self.selectors_match(request, namespaces).await?;
        Ok(matched.filter(|_| is_selected))
    }

    /// Returns the version of the request if a rule names it, else the first one that a rule names.
    fn matched_version<'a>(
        &self,
        rules: &[MatchRule],
        request: &AdmissionAttributes<'a>,
    ) -> Option<&'a dyn Kind> {
        if rules.iter().any(|rule| rule.matches(request, request.names.version)) {
            return Some(request.kind);
        }
        let versions = request.versions.filter(|_| self.is_equivalent)?;
        rules
            .iter()
            .find_map(|rule| versions.kinds().find(|kind| rule.matches(request, kind.names().version)))
    }

    async fn selectors_match(
        &self,
        request: &AdmissionAttributes<'_>,
        namespaces: &dyn NamespaceSource,
    ) -> Result<bool, ApiError> {
        let objects = self.objects.as_ref().map_err(ApiError::internal)?;
        if !objects.is_empty() && !selects(objects, request.new) && !selects(objects, request.old) {
            return Ok(false);
        }
        let of_namespace = self.namespaces.as_ref().map_err(ApiError::internal)?;
        if request.namespace.is_empty() || of_namespace.is_empty() {
            return Ok(true);
        }
        let labels = namespaces.labels(request.namespace).await?;
        Ok(of_namespace.matches_labels(Some(&labels)))
    }
}

fn selects(selector: &LabelRequirements, object: Option<&Object>) -> bool {
    object.is_some_and(|object| selector.matches(object))
}

/// metav1.LabelSelectorAsSelector, for which a nil selector selects nothing; here it selects everything. The host's
/// defaults exclude that case.
pub fn selector(it: Option<&meta::LabelSelector>) -> Result<LabelRequirements, String> {
    let Some(it) = it else { return Ok(LabelRequirements::default()) };
    let labels = it.match_labels.iter().flatten().map(|(key, value)| Requirement {
        key: key.clone(),
        operator: Operator::Equals,
        values: [value.clone()].into(),
    });
    let mut all: Vec<Requirement> = labels.collect();
    for expression in it.match_expressions.iter().flatten() {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(format!("\"{other}\" is not a valid label selector operator")),
        };
        let values = expression.values.iter().flatten().cloned().collect();
        all.push(Requirement { key: expression.key.clone(), operator, values });
    }
    Ok(LabelRequirements::new(all))
}

/// The cost budget of all match conditions for one request.
pub const CONDITIONS_BUDGET: i64 = 2_500_000;

/// A compiled match condition, or its compilation error.
pub type MatchCondition = Result<Expression, String>;

/// Whether all conditions are true (k8s.io/apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go). If one
/// is false the result is `false`, even if others fail; otherwise the failures are returned as an error.
pub fn all_conditions_true(
    conditions: &[MatchCondition],
    activation: &mut Activation,
) -> Result<bool, String> {
    let mut errors = Vec::new();
    for condition in conditions {
        let outcome = match condition {
            Ok(expression) => activation.evaluate(expression)?,
            Err(why) => Err(format!("compilation error: {why}")),
        };
        match outcome {
            Ok(EvaluationResult::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(why) => errors.push(why),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [only] => Err(only.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
