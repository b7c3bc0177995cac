//! Tenants: a namespace, service accounts with real tokens, and the rights of an editor in that one namespace.

use std::net::Ipv4Addr;

use anyhow::Result;
use drydock_testkit::wait::{LIMIT, retry};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::cluster::PATIENT;
use super::{AttackSetup, USUAL_ADDRESS};
use crate::client::{FlowWindows, ServerEndpoint, UserConnection, UserRequest};

/// Accounts that are made at a time.
const AT_A_TIME: usize = 16;
/// How long a token is good for: longer than any run.
const TOKEN_SECONDS: u32 = 240 * 3_600;
const RBAC: &str = "rbac.authorization.k8s.io";

/// The accounts that may edit one namespace.
pub struct Tenant {
    /// Its name.
    pub namespace: String,
    /// Its service accounts.
    pub accounts: Vec<Account>,
}

/// A service account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its token.
    pub token: String,
}

impl Account {
    /// Opens a connection to a server with this account's token.
    pub async fn connect(
        &self,
        endpoint: &ServerEndpoint,
        from: Ipv4Addr,
        windows: FlowWindows,
    ) -> Result<UserConnection> {
        UserConnection::open(endpoint, from, Some(&self.token), windows).await
    }
}

impl Tenant {
    /// The path of its EvictionRequests.
    pub fn requests(&self) -> String {
        format!("/apis/{}/namespaces/{}/evictionrequests", drydock_api::API_VERSION, self.namespace)
    }

    /// The path of one of them.
    pub fn request(&self, name: &str) -> String {
        format!("{}/{name}", self.requests())
    }

    /// The path of its pods.
    pub fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// All its accounts, as the subject of a binding.
    pub fn subject(&self) -> Value {
        subject(&self.namespace)
    }

    /// Its first account.
    pub fn account(&self) -> &Account {
        &self.accounts[0]
    }
}

impl AttackSetup {
    /// Creates a namespace with so many accounts (one at least), and waits until their rights are in effect.
    pub async fn tenant(&self, namespace: &str, accounts: usize) -> Result<Tenant> {
        let admin = self.admin().await?;
        admin
            .done(&UserRequest::post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})))
            .await?;
        let rbac = format!("/apis/{RBAC}/v1/namespaces/{namespace}");
        admin.done(&UserRequest::post(format!("{rbac}/roles"), &role())).await?;
        admin.done(&UserRequest::post(format!("{rbac}/rolebindings"), &binding(namespace))).await?;
        let made = (0..accounts.max(1)).map(|at| account(&admin, namespace, at));
        let accounts = stream::iter(made).buffered(AT_A_TIME).try_collect().await?;
        let tenant = Tenant { namespace: namespace.into(), accounts };
        let connection = tenant.account().connect(&self.direct, USUAL_ADDRESS, FlowWindows::USUAL).await?;
        let list = UserRequest::get(format!("{}?limit=1", tenant.requests()));
        retry(
            LIMIT,
            || format!("{namespace} has no rights"),
            async || Ok(connection.ask_again(&list).await?.code.is_success()),
        )
        .await?;
        Ok(tenant)
    }
}

async fn account(admin: &UserConnection, namespace: &str, at: usize) -> Result<Account> {
    let name = format!("account-{at}");
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    admin.done(&UserRequest::post(&accounts, &json!({"metadata": {"name": name}}))).await?;
    let spec = json!({"spec": {"expirationSeconds": TOKEN_SECONDS}});
    let token = admin.done(&UserRequest::post(format!("{accounts}/{name}/token"), &spec)).await?;
    Ok(Account { token: token["status"]["token"].as_str().unwrap_or_default().to_owned() })
}

/// What ClusterRole `edit` gives of pods and their budgets, deploy/'s roles of our kinds to editors and
/// interceptors, and the name of one interceptor.
fn role() -> Value {
    let ours = ["evictionrequests", "evictionrequests/status"];
    json!({
        "metadata": {"name": "editor"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "serviceaccounts", "serviceaccounts/token"], "verbs": ["*"]},
            {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["*"]},
            {"apiGroups": [drydock_api::GROUP], "resources": ours, "verbs": ["*"]},
            {"apiGroups": [drydock_api::GROUP], "resources": ["evictionrequests/interceptor"],
             "resourceNames": [PATIENT], "verbs": ["update", "patch"]},
        ],
    })
}

fn binding(namespace: &str) -> Value {
    json!({
        "metadata": {"name": "editor"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "editor"},
        "subjects": [subject(namespace)],
    })
}

fn subject(namespace: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": "Group", "name": format!("system:serviceaccounts:{namespace}")})
}
