//! Follows the drain of one maintenance on Drydock's status stream, prints it as it goes, and ends when the
//! maintenance has been deleted: `drydock-stream-client ADDRESS CA_FILE SERVER_NAME TOKEN_FILE MAINTENANCE`

use std::time::Duration;

use anyhow::{Context, Result};
use drydock_proto::status::v1alpha1::status_service_client::StatusServiceClient as Client;
use drydock_proto::status::v1alpha1::watch_maintenances_response::Event;
use drydock_proto::status::v1alpha1::{Maintenance, WatchMaintenancesRequest};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |what| arguments.next().with_context(|| format!("no {what}"));
    let (address, ca, server) = (argument("ADDRESS")?, argument("CA_FILE")?, argument("SERVER_NAME")?);
    let (token, name) = (std::fs::read_to_string(argument("TOKEN_FILE")?)?, argument("MAINTENANCE")?);
    let ca = Certificate::from_pem(std::fs::read(ca)?);
    let tls = ClientTlsConfig::new().ca_certificate(ca).domain_name(server);
    let mut client =
        Client::new(Endpoint::new(format!("https://{address}"))?.tls_config(tls)?.connect_lazy());
    let mut request = WatchMaintenancesRequest { maintenance: name, ..Default::default() };
    let (bearer, mut last) = (format!("Bearer {}", token.trim()), Maintenance::default());
    while let Err(status) = follow(&mut client, &bearer, &mut request, &mut last).await {
        match status.code() {
            // Too long away: what there is now takes the place of everything.
            Code::OutOfRange => request.options = None,
            // The server restarts: go on after the last response.
            Code::Unavailable => tokio::time::sleep(Duration::from_secs(1)).await,
            _ => return Err(status.into()),
        }
    }
    let (o, left) = (last.outcomes.unwrap_or_default(), last.pods_pending + last.pods_evicting);
    print!(
        "final evicted={} canceled={} passed_over={} returned={} ",
        o.evicted, o.canceled, o.passed_over, o.returned
    );
    println!("drained_nodes={} left={left}", last.drained_nodes);
    Ok(())
}

async fn follow(
    client: &mut Client<Channel>,
    bearer: &str,
    watch: &mut WatchMaintenancesRequest,
    last: &mut Maintenance,
) -> Result<(), Status> {
    let mut request = Request::new(watch.clone());
    let token = bearer.parse().map_err(|_| Status::unauthenticated("the token is none"))?;
    request.metadata_mut().insert("authorization", token);
    let mut stream = client.watch_maintenances(request).await?.into_inner();
    while let Some(response) = stream.message().await? {
        watch.options.get_or_insert_default().resume_token = response.resume_token;
        match response.event {
            Some(Event::Updated(maintenance)) => *last = show(maintenance),
            Some(Event::Removed(_)) => return Ok(()),
            _ => {}
        }
    }
    Err(Status::unavailable("the stream has ended"))
}

fn show(m: Maintenance) -> Maintenance {
    print!("{} {}", m.name, m.stage().as_str_name());
    if m.current_entry.is_some() {
        print!(" entry {} of {}", m.current_entry_index + 1, m.entries);
    }
    println!(
        ": {} pending, {} evicting, {} blocked; {} of {} nodes drained",
        m.pods_pending, m.pods_evicting, m.blocked, m.drained_nodes, m.nodes
    );
    for b in &m.blockers {
        println!(
            "  {}/{} on {}: {}: {}",
            b.pod_namespace,
            b.pod_name,
            b.node,
            b.reason().as_str_name(),
            b.message
        );
    }
    m
}
