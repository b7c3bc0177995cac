//! A replica that is cut off from etcd, while the host and its other replicas have it.

use std::collections::BTreeMap;

use anyhow::Result;
use drydock_testkit::host::TestHost;
use drydock_testkit::link::Link;
use drydock_testkit::wait::{https_answers, https_ready};
use http::Request;

use crate::programs::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

/// Requests that fail during the outage, and probes.
const ASKED: usize = 40;
/// How often a line may come in one outage, apart from times and numbers: of each watch once.
const ONCE_EACH: usize = 3;
/// Different lines of one outage.
const LINES: usize = 16;

/// The replica stayed ready and failed its share of the requests, and wrote 223 lines about that in 24 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_etcd_is_unready_until_it_is_back_and_says_so_once() -> Result<()> {
    let host = TestHost::shared().await?;
    let mut etcd = Link::new(&host.etcd)?;
    etcd.mend().await?;
    let mut program = ProgramSetup::new(&host, "etcd-away", APISERVER, &host.url).await?;
    program.flags.retain(|flag| !flag.starts_with("--data-dir"));
    let flags = [format!("--etcd-servers={}", etcd.url), "--etcd-prefix=/etcd-away".to_owned()];
    let server = program.start_ready(&flags).await?;
    let admin = program.admin(&host).await?;
    let before = server.lines().len();

    etcd.cut();
    let list = || Request::get("/apis/coordination.k8s.io/v1alpha1/nodemaintenances").body(Vec::new());
    let asked = futures::future::join_all((0..ASKED).map(|_| async {
        let answer = admin.request_text(list()?).await;
        anyhow::ensure!(answer.is_err(), "answered without etcd");
        Ok(())
    }));
    let (asked, logged) = tokio::join!(asked, server.says(&["etcd does not answer"], 1));
    logged?;
    asked.into_iter().collect::<Result<Vec<()>>>()?;
    for _ in 0..ASKED {
        assert_eq!(https_answers(program.port, "/readyz").await?, 500);
        assert_eq!(https_answers(program.port, "/livez").await?, 200);
    }
    let why = admin.request_text(Request::get("/readyz/storage-reads").body(Vec::new())?).await;
    assert!(format!("{why:?}").contains("etcd has given no answer"), "{why:?}");

    etcd.mend().await?;
    https_ready(program.port, "/readyz", LIMIT).await?;
    server.says(&["etcd answers again"], 1).await?;
    // The number of all lines says how long the outage was, if one comes again and again.
    let lines = server.lines().split_off(before);
    let mut counts = BTreeMap::<String, usize>::new();
    for line in &lines {
        *counts.entry(words(line)).or_default() += 1;
    }
    let is_quiet = counts.len() <= LINES && counts.values().all(|count| *count <= ONCE_EACH);
    assert!(is_quiet, "lines of one outage: {lines:#?}");
    admin.request_text(list()?).await?;
    Ok(())
}

/// A line without its time and its numbers.
fn words(line: &str) -> String {
    let said = line.split_once(' ').map_or(line, |(_, said)| said);
    said.chars().filter(|c| !c.is_ascii_digit()).collect()
}
