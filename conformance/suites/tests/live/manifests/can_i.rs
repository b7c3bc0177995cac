//! What each role of deploy/ gives on our kinds, and nothing else on them: the answers of `kubectl auth can-i`, by the
//! host's own authorizer.

use anyhow::{Context, Result};
use drydock_testkit::drydock::grant;
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::wait::allowed;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::shared::LIMIT;

const GROUP: &str = "coordination.k8s.io";
const NAMESPACE: &str = "can-i";
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const AT_A_TIME: usize = 8;

/// What is asked about in the namespace: resource, subresource and name.
const IN_NAMESPACE: [(&str, &str, &str); 6] = [
    ("evictionrequests", "", ""),
    ("evictionrequests", "status", ""),
    ("evictionrequests", "interceptor", "checkpoint.example.com"),
    ("evictionrequests", "interceptor", "daemonset.apps.k8s.io"),
    ("evictionrequests", "interceptor", "imperative-eviction.k8s.io"),
    ("evictionrequests", "interceptor", ""),
];
/// What is asked about in the cluster.
const IN_CLUSTER: [(&str, &str, &str); 7] = [
    ("evictionrequests", "assignment", ""),
    ("evictionrequests", "interceptor", ""),
    ("evictionrequests", "interceptor", "imperative-eviction.k8s.io"),
    ("nodemaintenances", "", ""),
    ("nodemaintenances", "status", ""),
    ("nodemaintenances", "finalizers", ""),
    ("nodes", "", ""),
];

const READS: &str = "evictionrequests: get list watch";
const WRITES: &str = "evictionrequests: get list watch create update patch delete deletecollection";

#[tokio::test(flavor = "multi_thread")]
async fn each_role_gives_what_its_table_says() -> Result<()> {
    let host = TestHost::shared().await?;
    grant(&host)?;
    for file in ["base/rbac-users.yaml", "components/surge/rbac.yaml"] {
        let file = repository().join("deploy").join(file);
        host.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])?;
    }
    host.kubectl(&["create", "namespace", NAMESPACE])?;
    let client = host.client().await?;
    for role in ["view", "edit", "admin", "drydock:interceptor", "drydock:skip-interceptors"] {
        bind(&host, "rolebinding", role)?;
    }
    bind(&host, "clusterrolebinding", "drydock:maintainer")?;
    host.kubectl(&["apply", "-f", &interceptor_of_the_manual(&host)?])?;
    // The host adds our roles to its own ones and sees each of them some time after they are created.
    for (user, verb) in [("view", "list"), ("edit", "deletecollection"), ("admin", "deletecollection")] {
        come(&client, user, verb, "evictionrequests").await?;
    }
    come(&client, "drydock:interceptor", "list", "evictionrequests").await?;
    let question =
        question("drydock:skip-interceptors", "patch", ("evictionrequests", "interceptor", ""), NAMESPACE);
    allowed(&client, &serde_json::from_value(question)?, LIMIT).await?;
    come(&client, "drydock:maintainer", "list", "nodemaintenances").await?;
    come(&client, &account(NAMESPACE, "checkpoint"), "list", "evictionrequests").await?;

    // Whoever owns a namespace holds nothing that is asked about in the cluster.
    host.kubectl(&["create", "role", "owner", "--verb=*", "--resource=*.*", "--namespace", NAMESPACE])?;
    host.kubectl(&[
        "create",
        "rolebinding",
        "owner",
        "--role=owner",
        "--user=owner",
        "--namespace",
        NAMESPACE,
    ])?;
    come(&client, "owner", "list", "evictionrequests").await?;
    let owner = table(&client, "owner").await?;
    assert_eq!(owner.len(), IN_NAMESPACE.len(), "{owner:?}");
    assert!(
        owner.iter().all(|row| !row.starts_with("cluster") && row.ends_with(&VERBS.join(" "))),
        "{owner:?}"
    );

    let of_program = |name: &str| account("drydock-system", name);
    let tables = [
        ("view".to_owned(), vec![READS]),
        ("edit".to_owned(), vec![WRITES]),
        ("admin".to_owned(), vec![WRITES]),
        ("drydock:interceptor".to_owned(), vec![READS, "evictionrequests/status: get update patch"]),
        (
            // A name under k8s.io is asked about in the cluster, where it gives nothing.
            "drydock:skip-interceptors".to_owned(),
            vec![
                "evictionrequests/status: get patch",
                "evictionrequests/interceptor checkpoint.example.com: patch",
                "evictionrequests/interceptor daemonset.apps.k8s.io: patch",
                "evictionrequests/interceptor imperative-eviction.k8s.io: patch",
                "evictionrequests/interceptor: patch",
            ],
        ),
        (
            account(NAMESPACE, "checkpoint"),
            vec![
                READS,
                "evictionrequests/status: get update patch",
                "evictionrequests/interceptor checkpoint.example.com: update patch",
            ],
        ),
        (
            "drydock:maintainer".to_owned(),
            vec![
                READS,
                "cluster nodemaintenances: get list watch create update patch delete deletecollection",
                "cluster nodes: get list watch delete",
            ],
        ),
        (of_program("drydock-surge-interceptor"), vec![READS, "evictionrequests/status: patch"]),
        (of_program("drydock-apiserver"), vec!["cluster nodes: list watch"]),
        (
            of_program("drydock-controller-manager"),
            vec![
                "evictionrequests: list watch create patch delete",
                "evictionrequests/status: patch",
                "evictionrequests/interceptor daemonset.apps.k8s.io: patch",
                "evictionrequests/interceptor imperative-eviction.k8s.io: patch",
                "cluster evictionrequests/assignment: patch",
                "cluster evictionrequests/interceptor imperative-eviction.k8s.io: patch",
                "cluster nodemaintenances: list watch patch",
                "cluster nodemaintenances/status: patch",
                "cluster nodemaintenances/finalizers: update",
                "cluster nodes: list watch patch",
            ],
        ),
    ];
    for (user, expected) in tables {
        assert_eq!(table(&client, &user).await?, expected, "{user}");
    }
    Ok(())
}

/// A user of the role's own name.
fn bind(host: &TestHost, kind: &str, role: &str) -> Result<()> {
    let (name, role_flag, user) = (
        format!("can-i-{}", role.replace(':', "-")),
        format!("--clusterrole={role}"),
        format!("--user={role}"),
    );
    host.kubectl(&["create", kind, &name, &role_flag, &user, "--namespace", NAMESPACE]).map(drop)
}

/// A file with the Role and the bindings that deploy/README.md tells interceptors to copy, for this namespace.
fn interceptor_of_the_manual(host: &TestHost) -> Result<String> {
    let manual = std::fs::read_to_string(repository().join("deploy/README.md"))?;
    let blocks = manual.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.into_iter().find(|block| block.contains("evictionrequests/interceptor"));
    let path = host.dir.join("interceptor.yaml");
    let block = block.context("deploy/README.md has no Role of an interceptor")?;
    std::fs::write(&path, block.replace("namespace: shop", &format!("namespace: {NAMESPACE}")))?;
    Ok(path.to_string_lossy().into_owned())
}

fn account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

async fn come(client: &Client, user: &str, verb: &str, resource: &str) -> Result<()> {
    let question = question(user, verb, (resource, "", ""), NAMESPACE);
    allowed(client, &serde_json::from_value(question)?, LIMIT).await
}

/// `resource/subresource name: verbs`, of what is allowed at all.
async fn table(client: &Client, user: &str) -> Result<Vec<String>> {
    let in_namespace = IN_NAMESPACE.map(|about| (about, NAMESPACE));
    let asked = in_namespace.into_iter().chain(IN_CLUSTER.map(|about| (about, "")));
    let rows = asked.map(async |(about, namespace)| {
        let verbs = verbs(client, user, about, namespace).await?;
        let (resource, subresource, name) = about;
        let scope = if namespace.is_empty() { "cluster " } else { "" };
        let of = [resource, subresource].join("/");
        let of = [of.trim_end_matches('/'), name].join(" ");
        anyhow::Ok((!verbs.is_empty()).then(|| format!("{scope}{}: {}", of.trim_end(), verbs.join(" "))))
    });
    let rows: Vec<Option<String>> = stream::iter(rows).buffered(AT_A_TIME).try_collect().await?;
    Ok(rows.into_iter().flatten().collect())
}

async fn verbs(
    client: &Client,
    user: &str,
    about: (&str, &str, &str),
    namespace: &str,
) -> Result<Vec<&'static str>> {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let mut may = Vec::new();
    for verb in VERBS {
        let review = serde_json::from_value(question(user, verb, about, namespace))?;
        let answer = reviews.create(&PostParams::default(), &review).await?;
        may.extend(answer.status.is_some_and(|status| status.allowed).then_some(verb));
    }
    Ok(may)
}

fn question(user: &str, verb: &str, about: (&str, &str, &str), namespace: &str) -> Value {
    let (resource, subresource, name) = about;
    let group = if resource == "nodes" { "" } else { GROUP };
    json!({"spec": {
        "user": user, "groups": ["system:authenticated"],
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "subresource": subresource,
                               "namespace": namespace, "name": name},
    }})
}
