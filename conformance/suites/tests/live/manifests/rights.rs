//! The roles of deploy/, judged by the host's own authorizer.

use anyhow::Result;
use drydock_testkit::drydock::grant;
use drydock_testkit::host::TestHost;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

const APISERVER: &str = "drydock-apiserver";
const MANAGER: &str = "drydock-controller-manager";
const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";

/// Who, verb, group, resource, subresource, namespace, name.
type Asked =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn deploy_grants_what_the_programs_need() -> Result<()> {
    let host = TestHost::shared().await?;
    grant(&host)?;
    let needed: [Asked; 14] = [
        (APISERVER, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""),
        (APISERVER, "create", "authentication.k8s.io", "tokenreviews", "", "", ""),
        (APISERVER, "watch", "", "nodes", "", "", ""),
        (APISERVER, "watch", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", ""),
        (APISERVER, "get", "", "services", "", "default", "a"),
        (MANAGER, "create", "", "pods", "eviction", "default", "a"),
        (MANAGER, "patch", "", "nodes", "", "", "a"),
        (MANAGER, "watch", "apps", "daemonsets", "", "", ""),
        (MANAGER, "update", "coordination.k8s.io", "nodemaintenances", "finalizers", "", "a"),
        (MANAGER, "watch", "apiregistration.k8s.io", "apiservices", "", "", API_SERVICE),
        (MANAGER, "get", "", "services", "", "drydock-system", APISERVER),
        (MANAGER, "update", "coordination.k8s.io", "leases", "", "drydock-system", MANAGER),
        (MANAGER, "patch", "coordination.k8s.io", "evictionrequests", "status", "default", "a"),
        (MANAGER, "patch", "coordination.k8s.io", "nodemaintenances", "", "", "a"),
    ];
    for asked in needed {
        assert!(may(&host.client().await?, asked).await?, "may not: {asked:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_grants_no_more() -> Result<()> {
    let host = TestHost::shared().await?;
    grant(&host)?;
    let denied: [Asked; 14] = [
        (APISERVER, "delete", "", "pods", "", "default", "a"),
        (APISERVER, "get", "", "secrets", "", "kube-system", "a"),
        (APISERVER, "patch", "", "nodes", "", "", "a"),
        (MANAGER, "get", "", "secrets", "", "kube-system", "a"),
        (MANAGER, "patch", "apps", "daemonsets", "", "default", "a"),
        (MANAGER, "watch", "apiregistration.k8s.io", "apiservices", "", "", "v1.apps"),
        (MANAGER, "get", "", "services", "", "default", "a"),
        (MANAGER, "update", "coordination.k8s.io", "leases", "", "kube-system", MANAGER),
        (MANAGER, "update", "coordination.k8s.io", "leases", "", "drydock-system", "of-somebody-else"),
        (MANAGER, "create", "coordination.k8s.io", "nodemaintenances", "", "", ""),
        // It removes its finalizer from maintenances, and deletes no node for that.
        (MANAGER, "delete", "", "nodes", "", "", "a"),
        (MANAGER, "update", "coordination.k8s.io", "nodemaintenances", "", "", "a"),
        (MANAGER, "create", "", "pods", "", "default", "a"),
        (MANAGER, "patch", "", "pods", "", "default", "a"),
    ];
    for asked in denied {
        assert!(!may(&host.client().await?, asked).await?, "may: {asked:?}");
    }
    Ok(())
}

async fn may(client: &Client, asked: Asked) -> Result<bool> {
    let (who, verb, group, resource, subresource, namespace, name) = asked;
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": format!("system:serviceaccount:drydock-system:{who}"),
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource,
                               "subresource": subresource, "namespace": namespace, "name": name},
    }}))?;
    let answer =
        Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
