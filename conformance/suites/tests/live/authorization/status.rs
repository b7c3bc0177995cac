//! Who may write which part of a request's status: what the host gives, what a refusal asks for, and what it brings.

use anyhow::{Context, Result, bail, ensure};
use drydock_testkit::kinds::eviction_requests;
use drydock_testkit::wait::allowed;
use jiff::Timestamp;
use kube::Error;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::users::{User, rule};
use crate::shared::{ABSENT_INTERCEPTOR, LIMIT, Namespace, shared};

const GROUP: &str = "coordination.k8s.io";
const IMPERATIVE: &str = "imperative-eviction.k8s.io";

/// A user's writes to one request.
struct Request {
    uid: String,
    requests: Api<DynamicObject>,
}

impl Request {
    async fn merge(&self, status: Value) -> Result<(), Error> {
        self.patch(&PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await
    }

    /// By force, as `manager`.
    async fn apply(&self, manager: &str, status: Value) -> Result<(), Error> {
        let object = json!({
            "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest", "metadata": {"name": self.uid},
            "status": status,
        });
        self.patch(&PatchParams::apply(manager).force(), &Patch::Apply(object)).await
    }

    async fn patch(&self, params: &PatchParams, patch: &Patch<Value>) -> Result<(), Error> {
        self.requests.patch_status(&self.uid, params, patch).await.map(drop)
    }

    async fn status(&self) -> Result<Value> {
        Ok(self.requests.get(&self.uid).await?.data["status"].take())
    }
}

/// A user with these rights on the status, beside `get`, of a request that stands with [`ABSENT_INTERCEPTOR`].
async fn request(name: &str, rights: &[Value]) -> Result<(User, Request, Namespace)> {
    let shared = shared().await?;
    let namespace = shared.namespace(name).await?;
    let uid = namespace.held_request("p", &shared.node(name).await?).await?;
    let reads_and_writes = [
        rule(GROUP, "evictionrequests", &[], &["get"]),
        rule(GROUP, "evictionrequests/status", &[], &["update", "patch"]),
    ];
    let user = User::with_rights(shared, name, name, &[&reads_and_writes, rights].concat()).await?;
    let requests = eviction_requests(&user.client, name);
    Ok((user, Request { uid, requests }, namespace))
}

/// The message of a write that was forbidden.
fn refused(answer: Result<(), Error>, permission: &str) -> Result<String> {
    let Err(Error::Api(status)) = answer else { bail!("not refused: {answer:?}") };
    let needed = format!(r#"requires resource="evictionrequests/{permission}""#);
    ensure!((status.code, status.reason.as_str()) == (403, "Forbidden"), "{status:?}");
    ensure!(status.message.contains(&needed), "{status:?}");
    Ok(status.message.clone())
}

fn evicted() -> Value {
    json!({"type": "Evicted", "status": "True", "reason": "PodDeleted", "message": "m",
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_cannot_end_a_request_by_any_verb() -> Result<()> {
    let rights = [rule(GROUP, "evictionrequests/interceptor", &[ABSENT_INTERCEPTOR], &["update", "patch"])];
    let (_user, request, _namespace) = request("authz-end", &rights).await?;
    let ends = json!({"conditions": [evicted()]});
    refused(request.merge(ends.clone()).await, "assignment")?;
    refused(request.apply(ABSENT_INTERCEPTOR, ends.clone()).await, "assignment")?;
    let add = json!([{"op": "add", "path": "/status/conditions", "value": [evicted()]}]);
    let add = Patch::Json(serde_json::from_value(add)?);
    let (params, dry) = (PatchParams::default(), PatchParams { dry_run: true, ..PatchParams::default() });
    refused(
        request.requests.patch_status::<Value>(&request.uid, &params, &add).await.map(drop),
        "assignment",
    )?;
    refused(request.patch(&dry, &Patch::Merge(json!({"status": ends}))).await, "assignment")?;
    let mut whole = request.requests.get(&request.uid).await?;
    whole.data["status"]["conditions"] = json!([evicted()]);
    let put = request.requests.replace_status(&request.uid, &PostParams::default(), &whole).await;
    let refusal = refused(put.map(drop), "assignment")?;
    assert!(
        refusal.contains(r#"cannot update resource "evictionrequests/assignment" in API group"#),
        "{refusal}"
    );
    assert_eq!(request.status().await?["conditions"], Value::Null);

    // What it may: a condition of its own in its turn.
    let own = json!({"type": "example.com/Saved", "status": "True", "reason": "R", "message": "m",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"});
    request.merge(json!({"conditions": [own]})).await?;
    assert_eq!(request.status().await?["conditions"][0]["type"], "example.com/Saved");
    Ok(())
}

/// KEP-4563: only the designated interceptor writes an entry.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_for_an_interceptor_needs_its_name() -> Result<()> {
    let rights = [rule(GROUP, "evictionrequests/interceptor", &[IMPERATIVE], &["update", "patch"])];
    let (_user, request, _namespace) = request("authz-name", &rights).await?;
    let mut entries = request.status().await?["interceptors"].clone();
    entries[0]["message"] = "not mine".into();
    let refusal = refused(request.merge(json!({"interceptors": entries})).await, "interceptor")?;
    assert!(refusal.contains(&format!("resourceName={ABSENT_INTERCEPTOR:?}")), "{refusal}");
    let applied = json!({"interceptors": [{"name": ABSENT_INTERCEPTOR, "message": "not mine"}]});
    refused(request.apply(ABSENT_INTERCEPTOR, applied).await, "interceptor")?;
    Ok(())
}

/// Applying an unchanged value makes its manager an owner, which may remove it with the next apply.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_to_own_the_controllers_fields() -> Result<()> {
    let rights = [rule(GROUP, "evictionrequests/interceptor", &[ABSENT_INTERCEPTOR], &["update", "patch"])];
    let (_user, request, _namespace) = request("authz-own", &rights).await?;
    let status = request.status().await?;
    for field in ["activeInterceptors", "targetInterceptors", "activationTime", "observedGeneration"] {
        let refusal = refused(request.apply("mine", json!({field: status[field]})).await, "assignment")?;
        assert!(refusal.contains(&format!("changing status.{field} requires")), "{refusal}");
    }
    let refusal = refused(
        request.apply("mine", json!({"interceptors": [status["interceptors"][1]]})).await,
        "interceptor",
    )?;
    assert!(refusal.contains(&format!("resourceName={IMPERATIVE:?}")), "{refusal}");
    request.apply("mine", json!({"interceptors": [status["interceptors"][0]]})).await?;
    Ok(())
}

/// `*` on `*` in a namespace holds what is asked about in the namespace, and nothing that is asked about in
/// the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_a_namespace_assigns_nothing_in_it() -> Result<()> {
    let (_user, request, _namespace) = request("authz-owner", &[rule("*", "*", &[], &["*"])]).await?;
    for type_ in ["Evicted", "Canceled"] {
        let mut end = evicted();
        end["type"] = type_.into();
        refused(request.merge(json!({"conditions": [end]})).await, "assignment")?;
    }
    let began = now();
    request
        .apply(
            "mine",
            json!({"interceptors": [{"name": ABSENT_INTERCEPTOR, "message": "m",
                                                  "startTime": began, "heartbeatTime": began}]}),
        )
        .await?;
    Ok(())
}

/// The commands that a refusal names grant what was refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_refusal_tells_to_do_grants_what_was_refused() -> Result<()> {
    let (_user, request, namespace) = request("authz-refused", &[]).await?;
    let report = || {
        let now = now();
        let entry =
            json!({"name": ABSENT_INTERCEPTOR, "message": "m", "startTime": now, "heartbeatTime": now});
        json!({"interceptors": [entry]})
    };
    let refusal = refused(request.apply("mine", report()).await, "interceptor")?;
    let role = command(&refusal, " and a RoleBinding")?;
    namespace.kubectl.ok(&role).await?;
    let [of, user] = [format!("--role={}", role[2]), "--user=authz-refused".to_owned()];
    namespace.kubectl.ok(&["create", "rolebinding", "granted", &of, &user]).await?;
    granted(&namespace, "interceptor", ABSENT_INTERCEPTOR, "authz-refused").await?;
    answered(async || request.apply("mine", report()).await).await?;

    let refusal = refused(request.merge(json!({"conditions": [evicted()]})).await, "assignment")?;
    let role = command(&refusal, " and a ClusterRoleBinding")?;
    namespace.kubectl.ok(&role).await?;
    let of = format!("--clusterrole={}", role[2]);
    namespace.kubectl.ok(&["create", "clusterrolebinding", "authz-refused", &of, &user]).await?;
    granted(&namespace, "assignment", "", "").await?;
    answered(async || request.merge(json!({"conditions": [evicted()]})).await).await
}

/// The words after `kubectl` of the command in a refusal.
fn command<'t>(refusal: &'t str, end: &str) -> Result<Vec<&'t str>> {
    let (_, command) = refusal.split_once("; kubectl ").with_context(|| refusal.to_owned())?;
    let (command, _) = command.split_once(end).with_context(|| refusal.to_owned())?;
    Ok(command.split_whitespace().map(|word| word.trim_matches('"')).collect())
}

async fn granted(of: &Namespace, subresource: &str, name: &str, namespace: &str) -> Result<()> {
    let about = json!({"verb": "patch", "group": GROUP, "resource": "evictionrequests", "subresource": subresource,
                       "namespace": namespace, "name": name});
    let review = json!({"spec": {"user": "authz-refused", "resourceAttributes": about}});
    allowed(&of.client, &serde_json::from_value(review)?, LIMIT).await
}

/// The refusal is remembered for 10 s.
async fn answered(mut write: impl AsyncFnMut() -> Result<(), Error>) -> Result<()> {
    drydock_testkit::wait::retry(
        LIMIT,
        || "still refused".to_owned(),
        async || match write().await {
            Ok(()) => Ok(true),
            Err(Error::Api(status)) if status.code == 403 => Ok(false),
            Err(error) => bail!(error),
        },
    )
    .await
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
