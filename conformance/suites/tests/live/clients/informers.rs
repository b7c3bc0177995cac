//! client-go's informers through the aggregator: in JSON and in protobuf, by list and watch and by one watch
//! alone, they get what was written, once and in order, also when our server has been away in
//! between.

use std::path::PathBuf;

use anyhow::{Context, Result};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::host::audit::AUDITED;
use drydock_testkit::informer::{Informer, InformerWay, program};
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::{api_available, api_unavailable};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::shared::LIMIT;

const RESOURCE: &str = "nodemaintenances.v1alpha1.coordination.k8s.io";
const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";

#[tokio::test(flavor = "multi_thread")]
async fn informers_are_told_of_what_was_written_once_and_in_order() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let host = &drydock.host;
    let maintenances = node_maintenances(&host.client().await?);
    create(&maintenances, "go-before", "go").await?;
    create(&maintenances, "go-other", "other").await?;
    let user = host.kubeconfig("informer", &[AUDITED])?;
    let admin =
        ["create", "clusterrolebinding", "informer", "--clusterrole=cluster-admin", "--user=informer"];
    host.kubectl(&admin)?;
    let mut informers = start_all(&drydock, user).await?;

    create(&maintenances, "go-new", "go").await?;
    label(&maintenances, "go-new", json!({"step": "2"})).await?;
    // One leaves the selection, and one comes into it, by their labels alone.
    label(&maintenances, "go-new", json!({"suite": "other"})).await?;
    label(&maintenances, "go-other", json!({"suite": "go"})).await?;
    maintenances.delete("go-other", &DeleteParams::default()).await?;
    for informer in &mut informers {
        let expected =
            ["add go-new 1", "update go-new 2", "delete go-new 2", "add go-other 1", "delete go-other 1"];
        assert_delivered(informer, &expected).await?;
    }

    drydock.kill_apiserver()?;
    api_unavailable(&host.client().await?, API_SERVICE, LIMIT).await?;
    drydock.start_apiserver().await?;
    api_available(&host.client().await?, API_SERVICE, LIMIT).await?;
    // Nothing that was delivered before is delivered again.
    label(&maintenances, "go-before", json!({"step": "2"})).await?;
    for informer in &mut informers {
        // A client that comes back late gets the last state alone.
        assert_delivered(informer, &["update go-before 2"]).await?;
    }
    create(&maintenances, "go-after", "go").await?;
    for name in ["go-after", "go-before"] {
        maintenances.delete(name, &DeleteParams::default()).await?;
    }
    for informer in &mut informers {
        assert_delivered(informer, &["add go-after 1", "delete go-after 1", "delete go-before 2"]).await?;
        let log = informer.log()?;
        assert!(!log.contains("falling back"), "{}: {log}", informer.name);
    }
    informers.iter().for_each(assert_written);
    assert_asked(&drydock, &informers)
}

/// Whoever asked for protobuf was answered in protobuf, lists and the frames of watches alike; the others in JSON.
fn assert_written(informer: &Informer) {
    let of = |wanted: &str| informer.wire.iter().filter(|[verb, ..]| verb == wanted).collect::<Vec<_>>();
    let (lists, watches) = (of("list"), of("watch"));
    let (list, watch) = if informer.name.starts_with("metadata") {
        let protobuf = "application/vnd.kubernetes.protobuf";
        (
            [protobuf.to_owned(), "protobuf".to_owned()],
            [format!("{protobuf};stream=watch"), "protobuf frames".to_owned()],
        )
    } else {
        let json = ["application/json".to_owned(), "json".to_owned()];
        (json.clone(), json)
    };
    let by_watch = informer.name.ends_with("watchlist");
    assert_eq!(
        (lists.is_empty(), watches.is_empty()),
        (by_watch, false),
        "{}: {:?}",
        informer.name,
        informer.wire
    );
    for (answers, wanted) in [(lists, list), (watches, watch)] {
        assert!(answers.iter().all(|[_, what @ ..]| *what == wanted), "{}: {answers:?}", informer.name);
    }
}

async fn start_all(drydock: &Drydock, user: PathBuf) -> Result<Vec<Informer>> {
    let (program, dir) = (program().await?, &drydock.host.dir);
    let mut informers = Vec::new();
    for client in ["dynamic", "metadata", "rest"] {
        for watch_list in [true, false] {
            let way = InformerWay { client, watch_list };
            informers.push(Informer::start(&program, dir, &user, way, RESOURCE, "suite=go")?);
        }
    }
    for informer in &mut informers {
        let (held, delivered) = informer.synced().await?;
        assert_eq!(held, ["go-before"], "{}", informer.name);
        // The handlers may get it a moment later.
        if delivered.is_empty() {
            assert_delivered(informer, &["add go-before 1"]).await?;
        } else {
            assert_eq!(delivered, ["add go-before 1"], "{}", informer.name);
        }
    }
    Ok(informers)
}

async fn assert_delivered(informer: &mut Informer, expected: &[&str]) -> Result<()> {
    for expected in expected {
        let delivered = informer.next().await.with_context(|| format!("waiting for {expected:?}"))?;
        assert_eq!(delivered, *expected, "{}", informer.name);
    }
    Ok(())
}

/// By our own audit log: an informer that asks for its initial events by a watch never lists, the others do; and those
/// of metadata are served in the form that they ask for, or they would have got nothing.
fn assert_asked(drydock: &Drydock, informers: &[Informer]) -> Result<()> {
    let log = std::fs::read_to_string(drydock.audit_log())?;
    let events: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for informer in informers {
        let agent = format!("informer/{}", informer.name);
        let of = |verb: &str| {
            let asked = |event: &&Value| event["userAgent"] == *agent && event["verb"] == verb;
            events.iter().filter(asked).collect::<Vec<_>>()
        };
        let (lists, watches) = (of("list"), of("watch"));
        let initial = watches.iter().filter(|event| {
            event["requestURI"].as_str().is_some_and(|uri| uri.contains("sendInitialEvents=true"))
        });
        let by_watch = informer.name.ends_with("watchlist");
        assert_eq!((lists.is_empty(), initial.count() > 0), (by_watch, by_watch), "{agent}: {watches:#?}");
        assert!(watches.iter().all(|event| event["user"]["username"] == "informer"), "{agent}");
    }
    Ok(())
}

async fn create(api: &Api<DynamicObject>, name: &str, suite: &str) -> Result<()> {
    let mut object = node_maintenance(name, "Idle", &["nowhere"]);
    object["metadata"]["labels"] = json!({"suite": suite, "step": "1"});
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

async fn label(api: &Api<DynamicObject>, name: &str, labels: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    api.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
