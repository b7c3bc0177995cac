//! The port that a program is to serve on.

use std::net::TcpListener;

use anyhow::Result;
use drydock_testkit::host::TestHost;

use super::setup::{BOTH, ProgramSetup};

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named_with_its_flag() -> Result<()> {
    let host = TestHost::shared().await?;
    for name in BOTH {
        let program = ProgramSetup::new(&host, "port-in-use", name, &host.url).await?;
        let _taken = TcpListener::bind(("127.0.0.1", program.port))?;
        let ended = program.start(&[])?.ended().await?;
        let why = format!("{name}: --secure-port: cannot listen on 127.0.0.1:{}: ", program.port);
        let last = ended.lines.last().cloned().unwrap_or_default();
        assert!(ended.code == 1 && last.starts_with(&why), "{ended:?}");
        assert_eq!(last.matches("in use").count(), 1, "{last}");
    }
    Ok(())
}
