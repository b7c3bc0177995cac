//! The observer has to see a broken budget; otherwise the playground's verdict would prove nothing.

use std::path::Path;

use anyhow::Result;
use drydock_testkit::cluster;
use drydock_testkit::host::TestHost;
use drydock_testkit::observer::ObserverProcess;
use drydock_walkthrough::workload;

#[tokio::test(flavor = "multi_thread")]
async fn an_injected_violation_is_observed_and_quiet_times_are_not() -> Result<()> {
    let host = TestHost::start().await?;
    cluster::create_nodes(&host.client().await?, "observed", 12).await?;
    workload::create(&host)?;
    let observe = || {
        ObserverProcess::start(
            Path::new(env!("CARGO_BIN_EXE_playground")),
            &host.admin(),
            workload::NAMESPACE,
        )
    };

    let quiet = observe()?.finish()?;
    assert!(quiet.iter().all(|finding| finding.good), "{quiet:?}");

    let observer = observe()?;
    workload::inject_violation(&host, "web")?;
    workload::wait_ready(&host)?;
    let broken = observer.finish()?;
    assert!(
        broken.iter().any(|finding| !finding.good && finding.what.contains("web had 46 of 47")),
        "{broken:?}"
    );
    Ok(())
}
