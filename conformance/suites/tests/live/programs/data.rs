//! Work on the data: backups of a running server, and objects that move to etcd and back under kubectl's eyes.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::program;
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::program::{Program, ProgramEnd};
use futures::StreamExt;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch::Receiver;

use super::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

const ALL: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";

/// The program on one of its stores, one after the other.
struct Moving {
    program: ProgramSetup,
    kubectl: Kubectl,
    prefix: [String; 2],
}

impl Moving {
    async fn new(host: &TestHost) -> Result<Moving> {
        let mut program = ProgramSetup::new(host, "moving", APISERVER, &host.url).await?;
        program.flags.retain(|flag| !flag.starts_with("--data-dir"));
        let kubectl = Kubectl::new(host).with_kubeconfig(&program.admin_kubeconfig(host)?);
        let prefix = [format!("--etcd-servers={}", host.etcd), "--etcd-prefix=/moving".into()];
        Ok(Moving { program, kubectl, prefix })
    }

    async fn start(&self, place: &[String]) -> Result<Program> {
        self.program.start_ready(place).await
    }

    /// Runs one of the commands for work on the data to its end.
    async fn work(&self, args: &[&str]) -> Result<ProgramEnd> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Program::start(&program(APISERVER), &self.program.dir, &args)?.ended().await
    }

    async fn works(&self, args: &[&str]) -> Result<()> {
        let ended = self.work(args).await?;
        ensure!(ended.code == 0, "{args:?}: {ended:?}");
        Ok(())
    }

    async fn refused(&self, args: &[&str], why: &str) -> Result<()> {
        let ended = self.work(args).await?;
        let line = ended.lines.last().cloned().unwrap_or_default();
        ensure!(ended.code == 1 && ended.lines.len() == 1 && line.contains(why), "{args:?}: {ended:?}");
        Ok(())
    }

    /// A server with these flags ends, with one line that says why.
    async fn starts_nowhere(&self, flags: &str, why: &str) -> Result<()> {
        let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        let ended = self.program.start(&flags)?.ended().await?;
        let line = ended.lines.last().cloned().unwrap_or_default();
        ensure!(ended.code == 1 && line.contains(why) && line.contains("reclaim"), "{flags:?}: {ended:?}");
        Ok(())
    }

    async fn migrate(&self, to: &str, data_dir: &str) -> Result<()> {
        let [servers, prefix] = &self.prefix;
        self.works(&["migrate", "--to", to, data_dir, servers, prefix]).await
    }

    async fn list(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.kubectl.ok(&["get", "--raw", ALL]).await?)?)
    }

    /// What a watch from an old resourceVersion delivers within two seconds.
    async fn watch_from(&self, version: u64) -> Result<String> {
        let path = format!("{ALL}?watch=true&timeoutSeconds=2&resourceVersion={version}");
        self.kubectl.ok(&["get", "--raw", &path]).await
    }

    async fn create(&self, name: &str) -> Result<()> {
        self.kubectl.apply(&node_maintenance(name, "Idle", &["none"])).await.map(drop)
    }
}

/// An informer, as a controller has one, that lives through all of it: the names that it knows.
fn informer(client: &Client) -> Receiver<BTreeSet<String>> {
    let (names, known) = tokio::sync::watch::channel(BTreeSet::new());
    let events = watcher(node_maintenances(client), watcher::Config::default()).default_backoff();
    tokio::spawn(events.for_each(move |event| {
        names.send_modify(|names| match event {
            Ok(Event::Init) => names.clear(),
            Ok(Event::InitApply(object) | Event::Apply(object)) => drop(names.insert(object.name_any())),
            Ok(Event::Delete(object)) => drop(names.remove(&object.name_any())),
            Ok(Event::InitDone) | Err(_) => {}
        });
        std::future::ready(())
    }));
    known
}

async fn knows(informer: &mut Receiver<BTreeSet<String>>, expected: &[&str]) -> Result<()> {
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    let heard = tokio::time::timeout(LIMIT, informer.wait_for(|names| *names == expected)).await;
    heard.with_context(|| format!("the informer never heard of {expected:?}"))??;
    Ok(())
}

fn version(object: &Value) -> Result<u64> {
    let version = object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    Ok(version.parse()?)
}

fn versions(list: &Value) -> Result<Vec<(String, u64)>> {
    let items = list["items"].as_array().context("no list")?;
    let named = |item: &Value| Ok((item["metadata"]["name"].to_string(), version(item)?));
    items.iter().map(named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_move_to_etcd_and_back_under_kubectls_eyes() -> Result<()> {
    let host = TestHost::shared().await?;
    let moving = Moving::new(&host).await?;
    let running = moving.start(&["--data-dir=data".into()]).await?;
    let mut informer = informer(&moving.program.admin(&host).await?);
    moving.create("first").await?;
    let mut watching = moving.kubectl.follow(&["get", "nodemaintenances", "--watch"])?;
    watching.line_with(&["first"]).await?;
    moving.create("second").await?;
    watching.line_with(&["second"]).await?;
    knows(&mut informer, &["first", "second"]).await?;
    let before = moving.list().await?;

    // While it runs it can be copied and checked, and nothing else.
    moving.works(&["backup", "--data-dir=data", "copy.db"]).await?;
    moving.works(&["check", "copy.db"]).await?;
    moving.works(&["check", "--data-dir=data"]).await?;
    moving.refused(&["backup", "--data-dir=data", "copy.db"], "copy.db exists").await?;
    moving.refused(&["restore", "--data-dir=data", "copy.db"], "drydock.db is in use by another").await?;
    let [servers, prefix] = &moving.prefix;
    let migrate = ["migrate", "--to=etcd", "--data-dir=data", servers, prefix];
    moving.refused(&migrate, "drydock.db is in use by another process").await?;
    moving.works(&["restore", "--data-dir=restored", "--bump-revision=0", "copy.db"]).await?;
    running.kill().await?;
    moving.refused(&["restore", "--data-dir=data", "copy.db"], "drydock.db exists").await?;

    moving.migrate("etcd", "--data-dir=data").await?;
    let running = moving.start(&moving.prefix).await?;
    let after = moving.list().await?;
    let old = version(&before)?;
    for ((name, moved), (was, _)) in versions(&after)?.into_iter().zip(versions(&before)?) {
        assert!(name == was && moved > old, "{after}");
    }
    for seen in [1, old - 1, old] {
        let heard = moving.watch_from(seen).await?;
        assert!(heard.contains(r#""code":410"#) && heard.lines().count() == 1, "{seen}: {heard}");
    }
    moving.create("third").await?;
    knows(&mut informer, &["first", "second", "third"]).await?;
    running.kill().await?;
    moving.refused(&migrate, "the objects were migrated to /moving in etcd").await?;
    moving.starts_nowhere("--data-dir=data", "the objects were migrated to /moving in etcd").await?;

    moving.migrate("embedded", "--data-dir=back").await?;
    let running = moving.start(&["--data-dir=back".into()]).await?;
    let back = moving.list().await?;
    assert_eq!(versions(&back)?[..2], versions(&after)?, "the embedded store takes revisions as they are");
    let heard = moving.watch_from(version(&after)?).await?;
    assert!(heard.contains(r#""code":410"#) && heard.lines().count() == 1, "{heard}");
    moving.create("fourth").await?;
    knows(&mut informer, &["first", "fourth", "second", "third"]).await?;
    running.kill().await?;
    moving.starts_nowhere(&moving.prefix.join(" "), "the objects were migrated to").await?;

    moving.works(&["reclaim", "--data-dir=data"]).await?;
    let reclaimed = moving.start(&["--data-dir=data".into()]).await?;
    let list = moving.list().await?;
    assert_eq!(versions(&list)?, versions(&before)?);
    ensure!(version(&list)? >= old + 1_000_000_000, "{list}");
    reclaimed.kill().await?;

    let restored = moving.start(&["--data-dir=restored".into()]).await?;
    assert_eq!(versions(&moving.list().await?)?, versions(&before)?);
    restored.kill().await
}
