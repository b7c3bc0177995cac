//! Which requests are logged, and how much of each (k8s.io/apiserver pkg/apis/audit/v1 Policy,
//! pkg/audit/policy/checker.go): the first rule that matches decides.

use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use serde::{Deserialize, Serialize};

/// How much is logged of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, and how it ended.
    Metadata,
    /// The body of the request too.
    Request,
    /// And that of the answer.
    RequestResponse,
}

/// A moment in a request's life at which an event may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AuditStage {
    /// It has come, and nothing was done yet.
    RequestReceived,
    /// The head of a long answer has been sent.
    ResponseStarted,
    /// The whole answer has been sent.
    ResponseComplete,
    /// It panicked.
    Panic,
}

/// A policy: rules in order. A request that matches none of them is not logged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditPolicy {
    /// In order.
    pub rules: Vec<Rule>,
    /// Stages at which no rule logs.
    pub omit_stages: Vec<AuditStage>,
    /// Whether managedFields are left out, unless a rule says otherwise.
    pub omit_managed_fields: bool,
}

/// A rule matches a request that all of its fields match; an empty one matches any.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// How much is logged.
    pub level: Level,
    /// Names of users.
    pub users: Vec<String>,
    /// Groups, of which the user is in one.
    pub user_groups: Vec<String>,
    /// `get`, `list`, ...
    pub verbs: Vec<String>,
    /// Resources. A rule with resources or namespaces matches only requests for resources.
    pub resources: Vec<GroupResources>,
    /// Namespaces; the empty name stands for cluster-scoped objects.
    pub namespaces: Vec<String>,
    /// Paths of requests that are for no resource; `*` may stand at the end.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// Stages at which nothing is logged, in addition to those of the policy.
    pub omit_stages: Vec<AuditStage>,
    /// Instead of the policy's.
    pub omit_managed_fields: Option<bool>,
}

/// Resources of a group.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupResources {
    /// The group; `*` is any.
    pub group: String,
    /// `pods`, `pods/log`, `pods/*`, `*/scale`, `*`; none is all of them.
    pub resources: Vec<String>,
    /// Objects; none is all of them.
    pub resource_names: Vec<String>,
}

/// What a policy says of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestAuditConfig {
    /// How much is logged.
    pub level: Level,
    /// Stages at which nothing is logged.
    pub omit_stages: Vec<AuditStage>,
    /// Whether managedFields are left out.
    pub omit_managed_fields: bool,
}

impl RequestAuditConfig {
    /// Joins the configurations of a request about two resources: what one of them logs is logged.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        match (self.level, other.level) {
            (Level::None, _) => other,
            (_, Level::None) => self,
            _ => {
                self.omit_stages.retain(|stage| other.omit_stages.contains(stage));
                let omit_managed_fields = self.omit_managed_fields && other.omit_managed_fields;
                Self { level: self.level.max(other.level), omit_managed_fields, ..self }
            }
        }
    }
}

impl AuditPolicy {
    /// What is to be logged of this request; `user` is `None` if it could not be authenticated.
    pub fn config(&self, user: Option<&User>, info: &RequestInfo) -> RequestAuditConfig {
        let rule = self.rules.iter().find(|rule| rule.matches(user, info));
        let mut omit_stages = self.omit_stages.clone();
        omit_stages.extend(rule.iter().flat_map(|rule| &rule.omit_stages));
        RequestAuditConfig {
            level: rule.map_or(Level::None, |rule| rule.level),
            omit_stages,
            omit_managed_fields: rule
                .and_then(|rule| rule.omit_managed_fields)
                .unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn matches(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let named = |user: &User| self.users.contains(&user.name);
        let grouped = |user: &User| user.groups.iter().any(|group| self.user_groups.contains(group));
        let by_user = self.users.is_empty() || user.is_some_and(named);
        let by_group = self.user_groups.is_empty() || user.is_some_and(grouped);
        let by_verb = self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == info.verb.as_str());
        by_user && by_group && by_verb && self.is_about(info)
    }

    fn is_about(&self, info: &RequestInfo) -> bool {
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.is_resource && self.is_about_resource(info);
        }
        self.non_resource_urls.is_empty()
            || !info.is_resource && self.non_resource_urls.iter().any(|url| is_below(url, &info.path))
    }

    fn is_about_resource(&self, info: &RequestInfo) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(&info.namespace))
            && (self.resources.is_empty() || self.resources.iter().any(|group| group.contains(info)))
    }
}

impl GroupResources {
    fn contains(&self, info: &RequestInfo) -> bool {
        let of_group = self.group == info.group || self.group == "*";
        if !of_group || self.resources.is_empty() {
            return of_group;
        }
        let named = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        named && self.resources.iter().any(|resource| is_resource(resource, info))
    }
}

/// Whether `pods`, `pods/log`, `pods/*`, `*/scale` or `*` names what a request is for.
fn is_resource(pattern: &str, info: &RequestInfo) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || pattern == info.resource && info.subresource.is_empty(),
        Some((resource, "*")) => resource == info.resource,
        Some(("*", subresource)) => !subresource.is_empty() && subresource == info.subresource,
        Some((resource, subresource)) => resource == info.resource && subresource == info.subresource,
    }
}

fn is_below(url: &str, path: &str) -> bool {
    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
