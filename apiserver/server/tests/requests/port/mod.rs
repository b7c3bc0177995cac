//! Requests through the secure port: TLS, authentication, authorization, and how long the server waits for clients.

mod audit;
mod calls;
mod calls_counted;
mod calls_fixture;
mod calls_reviewed;
mod certificates;
mod connections;
mod farewells;
mod fixture;
mod flow_control;
mod frames;
mod host;
mod identity;
mod limits;
mod probes;
mod proxied;
mod resets;
mod series;
mod space;
mod strangers;
mod unread;
