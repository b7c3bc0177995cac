//! Runs the examples of the guide as they are there, in their order.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::schema_served;
use serde_json::json;

use crate::shared::LIMIT;

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_guide_work_as_they_stand_there() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    schema_served(&drydock.host.client().await?, drydock_api::API_VERSION, LIMIT).await?;
    let kubectl = Kubectl::new(&drydock.host);
    cluster_of_the_guide(&kubectl).await?;
    let page = page()?;
    let folder = drydock.host.dir.join("guide");
    std::fs::create_dir(&folder)?;
    let script = script(&page, &folder)?;
    let said = kubectl.script(&folder, &script).await?;
    ensure!(said.code == 0, "controllers/README.md: {}\n{}\n{script}", said.err, said.out);
    for text in ["nodemaintenance.coordination.k8s.io/rack-7 condition met", "All pods have left"] {
        ensure!(said.out.contains(text), "{text:?} is not in {}", said.out);
    }
    Ok(())
}

fn page() -> Result<String> {
    Ok(std::fs::read_to_string(repository().join("controllers/README.md"))?)
}

/// Returns the file of this name as the guide has it.
pub fn file(name: &str) -> Result<String> {
    let (page, begins) = (page()?, format!("```yaml\n# {name}\n"));
    let (_, rest) = page.split_once(&begins).with_context(|| format!("the guide has no file {name}"))?;
    let (text, _) = rest.split_once("\n```").context("a block without an end")?;
    Ok(text.to_owned())
}

/// Creates what the page assumes: a node that it names, a rack, a namespace.
async fn cluster_of_the_guide(kubectl: &Kubectl) -> Result<()> {
    for (name, rack) in [("worker-1", "6"), ("worker-2", "7"), ("worker-3", "8")] {
        let size = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": name, "node-restriction.kubernetes.io/rack": rack},
            },
            "status": {"allocatable": size, "capacity": size},
        });
        kubectl.apply(&node).await?;
        kubectl.ok(&["wait", &format!("node/{name}"), "--for=condition=Ready"]).await?;
    }
    kubectl.ok(&["create", "namespace", "shop"]).await.map(drop)
}

/// The commands of the page as one script. Blocks of YAML that begin with the name of a file become that file.
fn script(page: &str, folder: &Path) -> Result<String> {
    let mut script = String::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').context("an empty block")?;
        if let Some(name) = text.strip_prefix("# ").and_then(|text| text.lines().next()) {
            ensure!(language == "yaml", "{name} is not YAML");
            std::fs::write(folder.join(name), text)?;
        }
        if language == "console" {
            let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
            commands.for_each(|command| script.extend([command, "\n"]));
        }
    }
    ensure!(!script.is_empty(), "the page has no commands");
    Ok(script)
}
