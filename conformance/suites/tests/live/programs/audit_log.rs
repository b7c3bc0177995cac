//! The file of the audit log: turned over and compressed while requests are logged, and named when it cannot be.

use anyhow::{Context, Result};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::program::flag;
use drydock_testkit::wait::until_some;
use kube::api::PostParams;
use serde_json::json;

use super::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_audit_log_is_turned_over_and_loses_nothing() -> Result<()> {
    let host = TestHost::shared().await?;
    let program = ProgramSetup::new(&host, "audit-log", APISERVER, &host.url).await?;
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Request", "verbs": ["create"]}, {"level": "None"}],
    });
    std::fs::write(program.dir.join("policy.yaml"), policy.to_string())?;
    let (log, old) = (program.dir.join("logs/audit.log"), program.dir.join("logs/audit.log.1.gz"));
    let flags = [
        "--audit-policy-file=policy.yaml".to_owned(),
        "--audit-log-path=logs/audit.log".to_owned(),
        "--audit-log-maxsize=1".to_owned(),
        "--audit-log-compress".to_owned(),
    ];
    let _server = program.start_ready(&flags).await?;
    let maintenances = node_maintenances(&program.admin(&host).await?);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    for n in 0..8 {
        let mut object = node_maintenance(&format!("logged-{n}"), "Idle", &["nowhere"]);
        object["metadata"]["annotations"] = json!({"long": "x".repeat(200_000)});
        maintenances.create(&dry_run, &serde_json::from_value(object)?).await?;
    }
    let late = || format!("{} is not there", old.display());
    let compressed =
        until_some(LIMIT, late, async || Ok(Some(old.clone()).filter(|path| path.exists()))).await?;
    let out = std::process::Command::new("gzip").arg("-dc").arg(&compressed).output().context("gzip")?;
    let text = String::from_utf8(out.stdout)? + &std::fs::read_to_string(log)?;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8);
    for (n, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"name\":\"logged-{n}\"")), "{n}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_none_is_named_with_what_is_wrong() -> Result<()> {
    let host = TestHost::shared().await?;
    let program = ProgramSetup::new(&host, "audit-policy", APISERVER, &host.url).await?;
    let file = program.dir.join("policy.yaml");
    std::fs::write(&file, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n")?;
    let ended = program.start(&[flag("audit-policy-file", &file)])?.ended().await?;
    let last = ended.lines.last().cloned().unwrap_or_default();
    let why = "loading audit policy file: rules[0].level: Unsupported value: \"All\"";
    assert!(ended.code == 1 && last.contains(why) && last.contains("policy.yaml"), "{ended:?}");
    Ok(())
}
