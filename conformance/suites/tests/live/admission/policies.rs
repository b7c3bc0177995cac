//! ValidatingAdmissionPolicies.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{Answer, ComparedKind, compared_kinds, configure, in_force, keep_params_watched, send};
use crate::shared::{Namespace, shared};

const NAME: &str = "0a3c1a1c-7f3e-4f5e-9d0e-0123456789ab";

/// What a policy says of objects with the label `case` of the same name. The first rule makes way for all others.
fn validations() -> Value {
    let of = |case: &str, rule: &str| format!("variables.case != '{case}' || ({rule})");
    json!([
        {"expression": of("plain", "false")},
        {"expression": of("message", "false"), "message": " said so  "},
        {"expression": of("forbidden", "false"), "message": "no", "reason": "Forbidden"},
        {"expression": of("words", "false"), "message": "fixed",
         "messageExpression": "'%s of %s by %s'.format([request.operation, object.metadata.name, request.userInfo.username])"},
        {"expression": of("badwords", "false"), "message": "fixed", "messageExpression": "string(object.metadata.nothing)"},
        {"expression": of("broken", "object.metadata.nothing == 'x'")},
        {"expression": of("params", "size(object.metadata.labels) <= int(params.data.most)"),
         "messageExpression": "'at most ' + params.data.most"},
        {"expression": of("asks", "authorizer.serviceAccount('x', 'y').group('').resource('pods').namespace('x').check('get').allowed()")},
        {"expression": of("may", "!authorizer.requestResource.check('create').allowed()"), "message": "may"},
        {"expression": of("options", "has(request.options.fieldManager) && request.options.fieldManager == 'x'")},
        {"expression": of("types", "object.metadata.name + 1 == 2")},
        {"expression": of("place", "namespaceObject.metadata.name == 'nowhere'"),
         "messageExpression": "namespaceObject.metadata.name + ' ' + namespaceObject.status.phase"},
        {"expression": of("old", "oldObject == null"), "message": "it was there"},
        {"expression": of("null", "object.spec.?nothing.hasValue() || has(oldObject.spec) || oldObject.spec.x == 1")},
        {"expression": of("scalar", "has(object.metadata.name.x) || object.metadata.name.x == 1")},
        {"expression": of("many", "[1, 2, 3].all(i, !authorizer.path('/' + string(i)).check('x').allowed() || true)")},
        {"expression": of("matches", "object.metadata.name.matches('^[a-f]+$') || object.metadata.name.find('[0-9]') == 'x'")},
        {"expression": of("kind", "request.kind.kind == 'x'"), "messageExpression": "request.resource.group + request.namespace"},
    ])
}

fn policy(namespace: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{
                    "apiGroups": ["coordination.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["evictionrequests", "leases"],
                }],
            },
            "matchConditions": [{"name": "labelled", "expression": "has(object.metadata.labels)"}],
            "variables": [{"name": "case", "expression": "object.metadata.labels[?'case'].orValue('')"}],
            "validations": validations(),
            "auditAnnotations": [{"key": "seen", "valueExpression": "'as ' + variables.case"}],
        },
    })
}

fn binding(policy: &str, name: &str, actions: &[&str], spec: Value) -> Value {
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": actions},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        binding["spec"][field] = value.clone();
    }
    binding
}

/// A policy needs the server's account to read its parameters.
async fn let_read_params(namespace: &Namespace) -> Result<()> {
    keep_params_watched(namespace).await?;
    let name = format!("{}-params", namespace.name);
    let kubectl = &namespace.kubectl;
    kubectl.ok(&["create", "clusterrole", &name, "--verb=list,watch", "--resource=configmaps"]).await?;
    let account = "--serviceaccount=drydock-system:drydock-apiserver";
    kubectl.ok(&["create", "clusterrolebinding", &name, &format!("--clusterrole={name}"), account]).await?;
    Ok(())
}

async fn both(
    namespace: &Namespace,
    ask: impl AsyncFn(&ComparedKind) -> Result<Answer>,
    what: &str,
) -> Result<Answer> {
    let [ours, hosts] = compared_kinds(namespace);
    let (our_answer, hosts_answer) = (ask(&ours).await?, ask(&hosts).await?);
    let (left, right) = (ours.normal(&our_answer), hosts.normal(&hosts_answer));
    ensure!(left == right, "{what}: we answer\n{left:#?}\nand the host\n{right:#?}");
    Ok(our_answer)
}

async fn create(namespace: &Namespace, query: &str, labels: Value, what: &str) -> Result<Answer> {
    let client = &namespace.client;
    let ask = async |compared: &ComparedKind| {
        let object = compared.object(NAME, labels.clone());
        send(client, Method::POST, &format!("{}{query}", compared.uri), Some(&object)).await
    };
    both(namespace, ask, what).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_refuses_our_kind_as_it_refuses_a_lease() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("admission-policy").await?;
    let_read_params(&namespace).await?;
    namespace.kubectl.ok(&["create", "configmap", "limits", "--from-literal=most=2"]).await?;
    configure(&namespace, &policy("admission-policy")).await?;
    let params = json!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    configure(&namespace, &binding("admission-policy", "admission-policy", &["Deny"], params)).await?;
    in_force(&namespace, &json!({"case": "plain"}), "failed expression").await?;

    for case in [
        "plain",
        "message",
        "forbidden",
        "words",
        "badwords",
        "broken",
        "asks",
        "may",
        "options",
        "types",
        "place",
        "null",
        "scalar",
        "kind",
    ] {
        let answer = create(&namespace, "", json!({"case": case}), case).await?;
        ensure!(answer.code >= 400, "{case}: {answer:?}");
        let dry = create(&namespace, "?dryRun=All", json!({"case": case}), case).await?;
        ensure!(dry.code >= 400, "{case}: {dry:?}");
    }
    let many = json!({"case": "params", "a": "", "b": ""});
    let answer = create(&namespace, "", many, "params").await?;
    ensure!(answer.body["message"].as_str().is_some_and(|text| text.ends_with("at most 2")), "{answer:?}");
    let generated = async |compared: &ComparedKind| {
        let mut object = compared.object(NAME, json!({"case": "plain"}));
        object["metadata"] = json!({"generateName": "g-", "labels": {"case": "plain"}});
        send(&namespace.client, Method::POST, &compared.uri, Some(&object)).await
    };
    let [_, hosts] = compared_kinds(&namespace);
    ensure!(generated(&hosts).await?.code == 422);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_sees_changes_and_removals() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("admission-change").await?;
    let client = &namespace.client;
    let mut kept = policy("admission-change");
    kept["spec"]["paramKind"] = Value::Null;
    kept["spec"]["matchConditions"] = json!([
        {"name": "kept", "expression": "(object == null ? oldObject : object).metadata.?labels[?'kept'].hasValue()"}
    ]);
    kept["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["UPDATE", "DELETE"]);
    kept["spec"]["matchConstraints"]["resourceRules"][0]["resources"] =
        json!(["evictionrequests", "evictionrequests/status", "leases"]);
    kept["spec"]["variables"] = json!([]);
    kept["spec"]["auditAnnotations"] = Value::Null;
    kept["spec"]["validations"] = json!([
        {"expression": "request.operation != 'DELETE' || (object == null && oldObject.metadata.name == 'x')",
         "messageExpression": "request.operation + ' of ' + oldObject.metadata.name + ' with ' + request.options.propagationPolicy"},
        {"expression": "request.operation == 'DELETE' || object.metadata.labels.kept == oldObject.metadata.labels.kept",
         "messageExpression": "'was ' + oldObject.metadata.labels.kept"},
        {"expression": "!has(request.subResource) || request.subResource != 'status'", "message": "not the status"},
    ]);
    configure(&namespace, &kept).await?;
    configure(&namespace, &binding("admission-change", "admission-change", &["Deny"], json!({}))).await?;
    for compared in compared_kinds(&namespace) {
        let made =
            send(client, Method::POST, &compared.uri, Some(&compared.object(NAME, json!({"kept": "a"}))))
                .await?;
        ensure!(made.code == 201, "{made:?}");
    }
    let change = json!({"metadata": {"labels": {"kept": "b"}}});
    let patch = async |compared: &ComparedKind| {
        send(client, Method::PATCH, &format!("{}/{NAME}", compared.uri), Some(&change)).await
    };
    for compared in compared_kinds(&namespace) {
        let late = || "the change is not refused".to_owned();
        let uri = format!("{}/{NAME}?dryRun=All", compared.uri);
        let refused = async || Ok(send(client, Method::PATCH, &uri, Some(&change)).await?.code == 422);
        drydock_testkit::wait::retry(crate::shared::LIMIT, late, refused).await?;
    }
    let answer = both(&namespace, patch, "change").await?;
    ensure!(answer.body["message"].as_str().is_some_and(|text| text.ends_with("was a")), "{answer:?}");
    let delete = async |compared: &ComparedKind| {
        let options = json!({"propagationPolicy": "Background"});
        send(client, Method::DELETE, &format!("{}/{NAME}", compared.uri), Some(&options)).await
    };
    let answer = both(&namespace, delete, "delete").await?;
    ensure!(answer.code == 422, "{answer:?}");
    let all = async |compared: &ComparedKind| {
        send(client, Method::DELETE, &compared.uri, Some(&json!({"propagationPolicy": "Background"}))).await
    };
    both(&namespace, all, "deletecollection").await?;

    let [ours, _] = compared_kinds(&namespace);
    let status = json!({"status": {"observedGeneration": 1}});
    let answer = send(client, Method::PATCH, &format!("{}/{NAME}/status", ours.uri), Some(&status)).await?;
    ensure!(
        answer.body["message"].as_str().is_some_and(|text| text.ends_with("not the status")),
        "{answer:?}"
    );
    // Without the policy the namespace can be emptied.
    namespace.kubectl.ok(&["delete", "validatingadmissionpolicybinding", "admission-change"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_warn_and_what_it_lacks_counts_by_its_failure_policy() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("admission-warn").await?;
    let_read_params(&namespace).await?;
    configure(&namespace, &policy("admission-warn")).await?;
    let nothing = json!({"paramRef": {"name": "nothing", "parameterNotFoundAction": "Allow"}});
    configure(&namespace, &binding("admission-warn", "admission-warn", &["Warn", "Audit"], json!({})))
        .await?;
    configure(&namespace, &binding("admission-warn", "admission-warn-nothing", &["Deny"], nothing)).await?;
    in_force(&namespace, &json!({"case": "message"}), "said so").await?;
    // The objects differ, the warnings may not.
    let [ours, hosts] = compared_kinds(&namespace);
    for case in ["message", "words", "broken", "params"] {
        let ask = async |compared: &ComparedKind| {
            let object = compared.object(NAME, json!({"case": case}));
            let answer =
                send(&namespace.client, Method::POST, &format!("{}?dryRun=All", compared.uri), Some(&object))
                    .await?;
            let (code, warnings, _) = compared.normal(&answer);
            anyhow::Ok((code, warnings))
        };
        let (left, right) = (ask(&ours).await?, ask(&hosts).await?);
        ensure!(left == right && left.0 == 201 && left.1.len() == 1, "{case}: {left:?} {right:?}");
    }

    let missing = json!({"paramRef": {"name": "nothing", "parameterNotFoundAction": "Deny"}});
    configure(&namespace, &binding("admission-warn", "admission-warn-nothing", &["Deny"], missing)).await?;
    in_force(&namespace, &json!({"case": ""}), "no params found").await?;
    create(&namespace, "", json!({"case": ""}), "missing parameters").await?;
    let mut ignoring = policy("admission-warn");
    ignoring["spec"]["failurePolicy"] = json!("Ignore");
    configure(&namespace, &ignoring).await?;
    for compared in compared_kinds(&namespace) {
        let late = || "still refused".to_owned();
        drydock_testkit::wait::retry(crate::shared::LIMIT, late, async || {
            let object = compared.object(NAME, json!({"case": ""}));
            let uri = format!("{}?dryRun=All", compared.uri);
            Ok(send(&namespace.client, Method::POST, &uri, Some(&object)).await?.code == 201)
        })
        .await?;
    }
    Ok(())
}
