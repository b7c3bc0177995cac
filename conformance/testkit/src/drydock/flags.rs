//! The flags with which our programs run in a host.

use std::path::PathBuf;
use std::sync::PoisonError;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{APISERVER, Drydock, MANAGER, NAMESPACE, StorageChoice};
use crate::host::{audit, repository};

/// The audience of tokens for our API server, and the host's own.
const AUDIENCES: [&str; 2] =
    ["https://drydock-apiserver.drydock-system.svc", "https://kubernetes.default.svc"];
/// How long the controller manager's token is good: no run takes longer.
const TOKEN_DURATION: &str = "--duration=240h";

impl Drydock {
    pub(super) fn apiserver_flags(&self) -> Result<Vec<String>> {
        let mut flags = self.common_flags(APISERVER)?;
        flags.push(format!("--secure-port={}", self.port));
        flags.push(format!("--cert-dir={}", self.dir().join(APISERVER).display()));
        flags.extend(self.audit_flags()?);
        flags.push(format!("--api-audiences={}", AUDIENCES.join(",")));
        flags.push(format!("--controller-users=system:serviceaccount:{NAMESPACE}:{MANAGER}"));
        match self.options.storage {
            StorageChoice::Sqlite => flags.push(format!("--data-dir={}", self.dir().join("data").display())),
            StorageChoice::Etcd => {
                flags.push(format!("--etcd-servers={}", self.host.etcd));
                flags.push("--etcd-prefix=/drydock".into());
            }
        }
        flags.extend(self.options.apiserver_flags.iter().cloned());
        Ok(flags)
    }

    fn audit_flags(&self) -> Result<[String; 2]> {
        let file = self.host.dir.join("drydock-audit-policy.json");
        let rules = [audit::rules().to_vec(), rules_of_deploy()?].concat();
        let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules});
        std::fs::write(&file, policy.to_string())?;
        let [file, log] = [file, self.audit_log()].map(|path| path.display().to_string());
        Ok([format!("--audit-policy-file={file}"), format!("--audit-log-path={log}")])
    }

    /// The flags of a controller manager, and the port in them, which is that of its first start.
    pub(super) fn manager_flags(&self, process: &str) -> Result<(Vec<String>, u16)> {
        let mut flags = self.common_flags(MANAGER)?;
        flags.push(format!("--cert-dir={}", self.dir().join(process).display()));
        flags.push("--leader-elect=true".into());
        flags.push("--direct-to-apiservice=true".into());
        flags.push(format!("--apiservice-token-file={}", self.token_file()?.display()));
        // Tests start it beside the controller manager, as deploy/components/surge does.
        flags.push("--served-interceptor-names=surge.coordination.k8s.io".into());
        // Where nobody stands by, no machine is so busy that the lease is lost.
        let [duration, deadline, retry] =
            if self.options.standby { ["5s", "4s", "500ms"] } else { ["10m", "9m", "2s"] };
        flags.push(format!("--leader-elect-lease-duration={duration}"));
        flags.push(format!("--leader-elect-renew-deadline={deadline}"));
        flags.push(format!("--leader-elect-retry-period={retry}"));
        let port = self.manager_port(process)?;
        flags.push(format!("--secure-port={port}"));
        Ok((flags, port))
    }

    fn manager_port(&self, process: &str) -> Result<u16> {
        let mut ports = self.manager_ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(process) {
            return Ok(*port);
        }
        let port = self.host.free_port()?;
        ports.insert(process.to_owned(), port);
        Ok(port)
    }

    /// Writes the kubeconfig of one of our programs, with the rights of its service account.
    pub(super) fn kubeconfig_of(&self, program: &str) -> Result<PathBuf> {
        let user = format!("system:serviceaccount:{NAMESPACE}:{program}");
        self.host.kubeconfig(&user, &["system:serviceaccounts", "system:serviceaccounts:drydock-system"])
    }

    fn common_flags(&self, name: &str) -> Result<Vec<String>> {
        let mut flags = vec![
            format!("--kubeconfig={}", self.kubeconfig_of(name)?.display()),
            "--bind-address=127.0.0.1".into(),
            format!("--v={}", self.options.verbosity),
        ];
        flags.extend(self.options.heartbeat_deadline.iter().map(|d| format!("--heartbeat-deadline={d}")));
        Ok(flags)
    }

    /// The file with the controller manager's token for our API server, which the kubelet writes in a cluster.
    fn token_file(&self) -> Result<PathBuf> {
        let file = self.host.dir.join("drydock-manager-token");
        if !file.exists() {
            let audience = format!("--audience={}", AUDIENCES[0]);
            let token = ["create", "token", MANAGER, "--namespace", NAMESPACE, &audience, TOKEN_DURATION];
            std::fs::write(&file, self.host.kubectl(&token)?.trim())?;
        }
        Ok(file)
    }

    /// What follows `name` in the command line of the running controller manager.
    pub(super) fn manager_flag(&self, name: &str) -> Result<String> {
        let pid = self.host.processes.pid(MANAGER).context("our controller manager does not run")?;
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"))?;
        let flag = command.split('\0').find_map(|word| word.strip_prefix(name));
        flag.map(str::to_owned).with_context(|| format!("our controller manager has no flag {name}"))
    }
}

/// The rules of the audit policy of deploy/.
fn rules_of_deploy() -> Result<Vec<Value>> {
    let path = repository().join("deploy/base/audit-policy.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let map: Value = serde_yaml_ng::from_str(&text)?;
    let policy = map["data"]["policy.yaml"].as_str().context("deploy/ has no audit policy")?;
    let policy: Value = serde_yaml_ng::from_str(policy)?;
    policy["rules"].as_array().cloned().context("the audit policy of deploy/ has no rules")
}
