//! The policy of deploy/ warns of the annotations that the eviction request controller warns of, and of no others.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use drydock_api::eviction_request::interceptor_annotations::PREFIX;
use drydock_api::eviction_request::interceptors::{
    AllowedNames, BUILT_IN, PodProperties, select_interceptors,
};
use drydock_testkit::host::repository;
use drydock_testkit::wait::retry;
use http::Method;
use serde_json::{Value, json};

use super::send;
use crate::shared::{LIMIT, Namespace, shared};

/// Annotations without the prefix and their values, and the words of the policy's warnings of them.
type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);

const VALUE: &str = "its value must be PRIORITY/ROLE";
const ROLE: &str = "has an unknown role: known are controller and interceptor; it is not ignored for that";
const DOMAIN: &str = "is not a domain name of two or more labels";
const RESERVED: &str = "names under k8s.io are reserved";
const KEY: &str = "its name must begin with priority_";
const NEGATIVE: &str = "has a negative priority; it is not ignored for that";
const BEYOND: &str = "at most 15 interceptors";

const CASES: &[Case] = &[
    (&[("priority_saver.example.com", "10000/controller")], &[]),
    (
        &[
            ("priority_saver.example.com", "0/interceptor"),
            ("priority_b.example.com", "2147483647/controller"),
        ],
        &[],
    ),
    (&[("priority_deployment.apps.k8s.io", "1/controller")], &[]),
    (&[("priority_imperative-eviction.k8s.io", "1/interceptor")], &[]),
    (&[("priority_saver.example.com", "10000")], &[VALUE]),
    (&[("priority_saver.example.com", "")], &[VALUE]),
    (&[("priority_saver.example.com", "1/")], &[VALUE]),
    (&[("priority_saver.example.com", "/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "-/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "+5/controller")], &[VALUE]),
    (&[("priority_saver.example.com", " 5/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "1/controller/2")], &[VALUE]),
    (&[("priority_saver.example.com", "1.5/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "2147483648/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "-2147483649/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "99999999999999999999/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "00000000001/controller")], &[VALUE]),
    (&[("priority_saver.example.com", "-1/controller")], &[NEGATIVE]),
    (&[("priority_saver.example.com", "-2147483648/controller")], &[NEGATIVE]),
    (&[("priority_saver.example.com", "-0/controller")], &[]),
    (&[("priority_saver.example.com", "1/controler")], &[ROLE]),
    (&[("priority_saver.example.com", "1/Controller")], &[ROLE]),
    (&[("priority_saver.example.com", "1/controller\n")], &[ROLE]),
    (&[("priority_saver.example.com", "-1/saver")], &[NEGATIVE, ROLE]),
    (&[("priority_saver", "1/controller")], &[DOMAIN]),
    (&[("priority_Saver.example.com", "1/controller")], &[DOMAIN]),
    (&[("priority_saver..example", "1/controller")], &[DOMAIN]),
    (&[("priority_-saver.example", "1/controller")], &[DOMAIN]),
    (&[("priority_saver-.example", "1/controller")], &[DOMAIN]),
    (&[("priority_my_saver.example", "1/controller")], &[DOMAIN]),
    (&[("priority_saver.k8s.io", "1/controller")], &[RESERVED]),
    (&[("priority_k8s.io", "1/controller")], &[RESERVED]),
    (&[("priority_notk8s.io", "1/controller")], &[]),
    (&[("prio_saver.example.com", "1/controller")], &[KEY]),
    (&[("saver.example.com", "1/controller")], &[KEY]),
    (&[("Priority_saver.example.com", "1/controller")], &[KEY]),
    (&[("priority_saver", "x"), ("priority_b.k8s.io", "1/y"), ("c", "")], &[KEY, VALUE, ROLE, RESERVED]),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_and_the_controller_warn_of_the_same_annotations() -> Result<()> {
    let namespace = shared().await?.namespace("annotations").await?;
    let policy = repository().join("deploy/base/interceptor-annotations.yaml");
    namespace.kubectl.ok(&["apply", "-f", &policy.display().to_string()]).await?;
    let wrong = annotations(&[("c", "")]);
    retry(
        LIMIT,
        || "the policy is not in force".to_owned(),
        async || Ok(!warnings(&namespace, &objects(&wrong)[0]).await?.is_empty()),
    )
    .await?;
    for (given, words) in CASES {
        compare(&namespace, &annotations(given), words).await?;
    }
    for (count, words) in [(15, [].as_slice()), (16, &[BEYOND]), (40, &[BEYOND])] {
        let many =
            (0..count).map(|i| (format!("{PREFIX}priority_i{i}.example.com"), "1/controller".to_owned()));
        let default = (format!("{PREFIX}priority_imperative-eviction.k8s.io"), "1/controller".to_owned());
        compare(&namespace, &many.chain([default]).collect(), words).await?;
    }
    names_the_first_beyond(&namespace).await?;
    let text = std::fs::read_to_string(&policy)?;
    let known = text.split_once("- name: known").and_then(|(_, rest)| rest.split(['[', ']']).nth(1));
    let known: BTreeSet<&str> =
        known.unwrap_or_default().split('\'').filter(|n| n.ends_with("k8s.io")).collect();
    ensure!(known == BUILT_IN.iter().copied().collect(), "the policy knows {known:?}");
    compare(&namespace, &[("example.com/other".to_owned(), "x".to_owned())].into(), &[]).await?;
    // As many as fit a pod: whatever the policy costs then, the pod is created.
    let many = (0..2500).map(|i| (format!("{PREFIX}priority_interceptor-{i}.example.com"), "1/x".to_owned()));
    warnings(&namespace, &objects(&many.collect())[0]).await?;
    warns_of_annotations_of_the_workload_itself(&namespace).await?;
    warns_of_an_update(&namespace).await
}

fn annotations(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned())).collect()
}

/// By priority, then the owner's controller last, then by name: as the controller takes them.
async fn names_the_first_beyond(namespace: &Namespace) -> Result<()> {
    let mut given: BTreeMap<String, String> = (0..14)
        .map(|i| (format!("{PREFIX}priority_i{i}.example.com"), format!("{}/interceptor", 100 + i)))
        .collect();
    for (name, value) in [("a", "50/controller"), ("z", "50/interceptor"), ("b", "49/interceptor")] {
        given.insert(format!("{PREFIX}priority_{name}.example.com"), value.to_owned());
    }
    let facts = PodProperties { annotations: Some(&given), ..PodProperties::default() };
    let by_controller = select_interceptors(&facts, &AllowedNames::default()).warnings;
    let first = by_controller.first().map(String::as_str).unwrap_or_default();
    ensure!(first.contains("priority_a.example.com is ignored"), "{by_controller:?}");
    let by_policy = warnings(namespace, &objects(&given)[0]).await?;
    let named = |warning: &String| warning.contains("priority_a.example.com is ignored");
    ensure!(by_policy.len() == 1 && by_policy.iter().all(named), "{by_policy:?}");
    Ok(())
}

/// The annotation of a Deployment is not that of its pods, and registers nothing. What a controller has
/// copied from an owner is nobody's mistake.
async fn warns_of_annotations_of_the_workload_itself(namespace: &Namespace) -> Result<()> {
    let given = annotations(&[("priority_saver.example.com", "1/controller")]);
    for (at, (path, mut object)) in objects(&BTreeMap::new()).into_iter().enumerate().skip(1) {
        object["metadata"]["annotations"] = json!(given);
        let place =
            if object["kind"] == "CronJob" { "spec.jobTemplate.spec.template" } else { "spec.template" };
        let words = format!(
            "annotation {PREFIX}priority_saver.example.com has no effect here: it belongs into {place}.metadata.annotations\""
        );
        let said = warnings(namespace, &(path.clone(), object.clone())).await?;
        ensure!(said.len() == 1 && said[0].ends_with(&words), "{object}: {said:?}");
        let (_, in_template) = &objects(&given)[at];
        object["spec"] = in_template["spec"].clone();
        let said = warnings(namespace, &(path.clone(), object.clone())).await?;
        ensure!(said.len() == 1 && said[0].ends_with(&words), "{object}: {said:?}");
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "u", "controller": true}]);
        let said = warnings(namespace, &(path, object.clone())).await?;
        ensure!(said.is_empty(), "{object}: {said:?}");
    }
    Ok(())
}

/// An annotation that comes with an update is judged as one that an object is created with.
async fn warns_of_an_update(namespace: &Namespace) -> Result<()> {
    let (path, object) = &objects(&BTreeMap::new())[1];
    let uri = path.replace("NAMESPACE", &namespace.name);
    let created = send(&namespace.client, Method::POST, &uri, Some(object)).await?;
    ensure!(created.code == 201, "{}", created.body);
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations(&[("priority_saver", "1/x")])}}}});
    let updated =
        send(&namespace.client, Method::PATCH, &format!("{uri}/a?dryRun=All"), Some(&patch)).await?;
    ensure!(updated.code == 200, "{}", updated.body);
    let said = |words: &&str| updated.warnings.iter().any(|warning| warning.contains(words));
    ensure!([DOMAIN, ROLE].iter().all(said), "{:?}", updated.warnings);
    Ok(())
}

async fn compare(
    namespace: &Namespace,
    annotations: &BTreeMap<String, String>,
    words: &[&str],
) -> Result<()> {
    let facts = PodProperties { annotations: Some(annotations), ..PodProperties::default() };
    let by_controller = select_interceptors(&facts, &AllowedNames::default()).warnings;
    let agrees = words.iter().all(|words| by_controller.iter().any(|warning| warning.contains(words)))
        && by_controller.iter().all(|warning| words.iter().any(|words| warning.contains(words)));
    ensure!(agrees, "{annotations:?}: {words:?} by the policy, {by_controller:?} by the controller");
    for object in objects(annotations) {
        let by_policy = warnings(namespace, &object).await?;
        let said = words.iter().all(|words| by_policy.iter().any(|warning| warning.contains(words)));
        ensure!(said && by_policy.len() == words.len(), "{object:?}: {by_policy:?}");
        // The policy names the first annotation that is wrong in a way; the controller names each.
        let is_same =
            |warning: &String| by_controller.iter().any(|said| warning.ends_with(&format!(": {said}\"")));
        ensure!(
            by_policy.iter().all(is_same),
            "{object:?}: {by_policy:?}, and {by_controller:?} by the controller"
        );
    }
    Ok(())
}

/// What the policy says when an object is created.
async fn warnings(namespace: &Namespace, object: &(String, Value)) -> Result<Vec<String>> {
    let (path, object) = object;
    let uri = path.replace("NAMESPACE", &namespace.name);
    let create =
        async || send(&namespace.client, Method::POST, &format!("{uri}?dryRun=All"), Some(object)).await;
    let mut answer = create().await?;
    // A busy host ends a request when its time is over, and has decided nothing then.
    let is_decided = async || {
        if answer.code == 504 {
            answer = create().await?;
        }
        Ok(answer.code != 504)
    };
    retry(LIMIT, || "the host has no time to create a pod".to_owned(), is_decided).await?;
    ensure!(answer.code == 201, "{object}: {}", answer.body);
    Ok(answer
        .warnings
        .into_iter()
        .filter(|warning| warning.contains("drydock-interceptor-annotations"))
        .collect())
}

/// A pod and each workload that makes pods, with these annotations of the pod, and the path that it is created at.
fn objects(annotations: &BTreeMap<String, String>) -> Vec<(String, Value)> {
    let container = json!([{"name": "c", "image": "none"}]);
    let template = |restart: &str| {
        json!({"metadata": {"labels": {"app": "a"}, "annotations": annotations},
            "spec": {"containers": container, "restartPolicy": restart}})
    };
    let object = |api: &str, resource: &str, kind: &str, mut rest: Value| {
        let version = if api == "v1" { "api/v1".to_owned() } else { format!("apis/{api}") };
        rest["apiVersion"] = api.into();
        rest["kind"] = kind.into();
        rest["metadata"]["name"] = "a".into();
        (format!("/{version}/namespaces/NAMESPACE/{resource}"), rest)
    };
    let workload =
        || json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template("Always")}});
    let job = || json!({"spec": {"template": template("Never")}});
    let cron_job = json!({"spec": {"schedule": "@daily", "jobTemplate": job()}});
    let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": container}});
    vec![
        object("v1", "pods", "Pod", pod),
        object("apps/v1", "deployments", "Deployment", workload()),
        object("apps/v1", "statefulsets", "StatefulSet", workload()),
        object("apps/v1", "daemonsets", "DaemonSet", workload()),
        object("apps/v1", "replicasets", "ReplicaSet", workload()),
        object("batch/v1", "jobs", "Job", job()),
        object("batch/v1", "cronjobs", "CronJob", cron_job),
    ]
}
