//! Makes the options of the generic server from our flags.

use drydock_server::api_group::Identity;
use drydock_server::generic::{HostFiles, Options, Trust};
use drydock_serving::tls::Serving;

use crate::flags::Flags;

/// Returns the options for everything except the kinds.
pub fn by_flags(flags: &Flags) -> Options {
    Options {
        identity: Identity { title: "Drydock", version: env!("CARGO_PKG_VERSION") },
        address: flags.address(),
        serving: Serving {
            files: flags.tls_cert_file.clone().zip(flags.tls_private_key_file.clone()),
            cert_dir: flags.cert_dir.clone(),
            names: flags.tls_san.clone(),
        },
        host: HostFiles {
            kubeconfig: flags.kubeconfig.clone(),
            authentication: flags.authentication_kubeconfig.clone(),
            authorization: flags.authorization_kubeconfig.clone(),
        },
        trust: trust(flags),
        storage: flags.storage.place().with_quota(flags.quota_backend_bytes),
        max_requests_inflight: flags.max_requests_inflight,
        max_mutating_requests_inflight: flags.max_mutating_requests_inflight,
        controller_users: flags.controller_users.clone(),
        api_audiences: flags.api_audiences.clone(),
        max_connections_per_address: flags.max_connections_per_address,
        request_timeout: flags.request_timeout,
        audit: flags.audit.options(),
        shutdown_delay: flags.shutdown_delay_duration,
    }
}

fn trust(flags: &Flags) -> Trust {
    Trust {
        client_ca_file: flags.client_ca_file.clone(),
        requestheader_client_ca_file: flags.requestheader_client_ca_file.clone(),
        allowed_names: flags.requestheader_allowed_names.clone(),
        username_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_headers_prefix: flags.requestheader_extra_headers_prefix.clone(),
    }
}
