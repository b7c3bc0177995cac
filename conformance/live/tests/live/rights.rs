//! The roles of deploy/, judged by the host's own authorizer.

use anyhow::Result;
use drydock_conformance::drydock::grant;
use drydock_conformance::host::Host;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

const APISERVER: &str = "drydock-apiserver";
const MANAGER: &str = "drydock-controller-manager";

/// Who, verb, group, resource, subresource, namespace.
type Asked = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn deploy_grants_what_the_programs_need() -> Result<()> {
    let host = Host::shared().await?;
    grant(&host)?;
    let needed: [Asked; 9] = [
        (APISERVER, "create", "authorization.k8s.io", "subjectaccessreviews", "", ""),
        (APISERVER, "create", "authentication.k8s.io", "tokenreviews", "", ""),
        (APISERVER, "watch", "", "nodes", "", ""),
        (MANAGER, "create", "", "pods", "eviction", "default"),
        (MANAGER, "patch", "", "nodes", "", ""),
        (MANAGER, "delete", "", "nodes", "", ""),
        (MANAGER, "update", "coordination.k8s.io", "leases", "", "drydock-system"),
        (MANAGER, "patch", "coordination.k8s.io", "evictionrequests", "status", "default"),
        (MANAGER, "update", "coordination.k8s.io", "nodemaintenances", "", ""),
    ];
    for asked in needed {
        assert!(may(&host.client().await?, asked).await?, "may not: {asked:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_grants_no_more() -> Result<()> {
    let host = Host::shared().await?;
    grant(&host)?;
    let denied: [Asked; 7] = [
        (APISERVER, "delete", "", "pods", "", "default"),
        (APISERVER, "get", "", "secrets", "", "kube-system"),
        (APISERVER, "patch", "", "nodes", "", ""),
        (MANAGER, "get", "", "secrets", "", "kube-system"),
        (MANAGER, "update", "coordination.k8s.io", "leases", "", "kube-system"),
        (MANAGER, "create", "coordination.k8s.io", "nodemaintenances", "", ""),
        (MANAGER, "create", "", "pods", "", "default"),
    ];
    for asked in denied {
        assert!(!may(&host.client().await?, asked).await?, "may: {asked:?}");
    }
    Ok(())
}

async fn may(client: &Client, asked: Asked) -> Result<bool> {
    let (who, verb, group, resource, subresource, namespace) = asked;
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": format!("system:serviceaccount:drydock-system:{who}"),
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource,
                               "subresource": subresource, "namespace": namespace},
    }}))?;
    let answer =
        Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
