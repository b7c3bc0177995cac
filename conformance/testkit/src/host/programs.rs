//! The host's programs, their flags, and the order in which they start.

use std::path::Path;

use anyhow::Result;

use super::{TestHost, audit, repository};
use crate::wait::{LIMIT, http_ready, https_ready, server_ready, unless_ended};

/// The host's API server.
pub(super) const APISERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const KWOK: &str = "kwok";

/// Requests a second that the host's own controllers may make: far more than a test needs, so that they never wait for
/// their own rate limit.
const QPS: u32 = 1000;

/// Who the kubelets are, for the audit log.
const KUBELETS: &str = KWOK;

/// How far the start of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPhase {
    /// Its process was started.
    Started,
    /// It serves.
    Serves,
}

/// Is called with the name of a program each time its start gets on.
pub type OnStart<'a> = &'a (dyn Fn(&str, StartPhase) + Sync);

/// Starts etcd and the API server.
pub(super) async fn start_api(host: &TestHost, ports: [u16; 3], on_start: OnStart<'_>) -> Result<()> {
    let [etcd, peer, secure] = ports;
    write_files(host)?;
    on_start("etcd", StartPhase::Started);
    host.processes.start("etcd", &host.bin.join("etcd"), &etcd_flags(host, etcd, peer))?;
    let address = format!("127.0.0.1:{etcd}");
    unless_ended(&host.processes, "etcd", http_ready(&address, "/health", LIMIT)).await?;
    on_start("etcd", StartPhase::Serves);
    on_start(APISERVER, StartPhase::Started);
    start_apiserver(host, secure).await?;
    on_start(APISERVER, StartPhase::Serves);
    Ok(())
}

/// Starts etcd, the API server, and then its clients, and waits until each of them serves: if one did not, tests would
/// time out without a reason.
pub(super) async fn start_all(host: &TestHost, ports: &[u16], on_start: OnStart<'_>) -> Result<()> {
    let &[etcd, peer, secure, manager, scheduler, kwok] = ports else { anyhow::bail!("six ports wanted") };
    start_api(host, [etcd, peer, secure], on_start).await?;
    let admin = host.admin();
    let start = |name: &str, flags: &[String]| {
        on_start(name, StartPhase::Started);
        host.processes.start(name, &host.bin.join(name), flags)
    };
    start(CONTROLLER_MANAGER, &manager_flags(host, &admin, manager))?;
    start(SCHEDULER, &scheduler_flags(host, &admin, scheduler))?;
    start(KWOK, &kwok_flags(&host.kubeconfig(KUBELETS, &["system:masters"])?, kwok))?;
    let kwok = format!("127.0.0.1:{kwok}");
    let all = futures::future::try_join3(
        serves(host, CONTROLLER_MANAGER, https_ready(manager, "/healthz", LIMIT), on_start),
        serves(host, SCHEDULER, https_ready(scheduler, "/healthz", LIMIT), on_start),
        serves(host, KWOK, http_ready(&kwok, "/healthz", LIMIT), on_start),
    );
    all.await.map(drop)
}

/// Waits until a program serves, and reports it.
async fn serves(
    host: &TestHost,
    name: &str,
    ready: impl Future<Output = Result<()>>,
    on_start: OnStart<'_>,
) -> Result<()> {
    unless_ended(&host.processes, name, ready).await?;
    on_start(name, StartPhase::Serves);
    Ok(())
}

/// Starts the API server, again if it was killed, and waits until it serves.
pub(super) async fn start_apiserver(host: &TestHost, port: u16) -> Result<()> {
    let mut flags = apiserver_flags(host, port);
    flags.extend(audit_flags(host));
    host.processes.start(APISERVER, &host.bin.join(APISERVER), &flags)?;
    server_ready(&host.client().await?, &host.processes, APISERVER, LIMIT).await
}

fn write_files(host: &TestHost) -> Result<()> {
    let made = host.kubeconfig("admin", &["system:masters"])?;
    debug_assert_eq!(made, host.admin());
    let policy = audit::policy(host.audits_programs);
    Ok(std::fs::write(host.dir.join("audit-policy.json"), policy.to_string())?)
}

fn etcd_flags(host: &TestHost, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", host.dir.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Tests are about the durability of our data, not of the host's.
        "--unsafe-no-fsync".into(),
        // Of the default, 2 GiB, a hundred thousand pods and their requests leave nothing.
        "--quota-backend-bytes=8589934592".into(),
        "--log-level=warn".into(),
    ]
}

/// Flags of a kube-apiserver on a port, without those that only tests need.
pub fn apiserver_flags(host: &TestHost, port: u16) -> Vec<String> {
    let pki = &host.pki;
    vec![
        format!("--etcd-servers={}", host.etcd),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        // Loopback is not allowed in endpoints, and no test needs them.
        "--endpoint-reconciler-type=none".into(),
        format!("--secure-port={port}"),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=RBAC".into(),
        "--allow-privileged=true".into(),
        file("cert-dir", &host.dir.join("pki")),
        file("tls-cert-file", &pki.server.cert),
        file("tls-private-key-file", &pki.server.key),
        file("client-ca-file", &pki.ca),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        file("service-account-key-file", &pki.service_accounts.cert),
        file("service-account-signing-key-file", &pki.service_accounts.key),
        file("requestheader-client-ca-file", &pki.front_proxy_ca),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        file("proxy-client-cert-file", &pki.front_proxy.cert),
        file("proxy-client-key-file", &pki.front_proxy.key),
    ]
}

fn audit_flags(host: &TestHost) -> [String; 2] {
    [
        file("audit-policy-file", &host.dir.join("audit-policy.json")),
        file("audit-log-path", &host.audit_log()),
    ]
}

fn file(flag: &str, path: &Path) -> String {
    format!("--{flag}={}", path.display())
}

fn manager_flags(host: &TestHost, admin: &Path, port: u16) -> Vec<String> {
    let mut flags = controller_flags(host, admin, port);
    flags.push(format!("--service-account-private-key-file={}", host.pki.service_accounts.key.display()));
    flags.push(format!("--root-ca-file={}", host.pki.ca.display()));
    // As in a real cluster each controller has its own rights only, so that tests see what the garbage collector and the
    // namespace controller may do to our kinds.
    flags.push("--use-service-account-credentials=true".into());
    // The host marks a node whose kubelet was cut off as lost, and its pods as not ready, which a real kubelet
    // corrects when it is back. kwok's does not: after an outage of the host all budgets would be short forever.
    flags.push("--node-monitor-grace-period=1h".into());
    // Of the default, 15 s, a test of autoscalers would wait for several.
    flags.push("--horizontal-pod-autoscaler-sync-period=1s".into());
    flags
}

fn scheduler_flags(host: &TestHost, admin: &Path, port: u16) -> Vec<String> {
    controller_flags(host, admin, port)
}

fn controller_flags(host: &TestHost, admin: &Path, port: u16) -> Vec<String> {
    let admin = admin.display();
    vec![
        format!("--kubeconfig={admin}"),
        format!("--authentication-kubeconfig={admin}"),
        format!("--authorization-kubeconfig={admin}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", host.dir.join("pki").display()),
        "--leader-elect=false".into(),
        format!("--kube-api-qps={QPS}"),
        format!("--kube-api-burst={}", 2 * QPS),
    ]
}

fn kwok_flags(kubeconfig: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--manage-all-nodes=false".into(),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
        "--node-lease-duration-seconds=40".into(),
        format!("--config={}", repository().join("conformance/host/kwok/stages.yaml").display()),
        format!("--server-address=127.0.0.1:{port}"),
    ]
}
