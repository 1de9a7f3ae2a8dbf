//! A control plane with resources of its own: one cluster `web` with one endpoint, for Envoys and for `xds:///web`.
//!
//! Start it, then an Envoy with `foldplane bootstrap envoy`. Publishing other resources reaches every client:
//! only what changed, and only to those who asked for it.
#![allow(clippy::print_stderr, reason = "a program to read and to run in a terminal")]

use std::sync::Arc;

use foldplane::projection::resources::{Resources, builders};
use foldplane::{listen, xds};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (publisher, resources) = watch::channel(Arc::new(Resources::default()));
    publisher.send_replace(Arc::new(web(&Resources::default(), "127.0.0.1:9001")?));

    let (rejections, mut refused) = mpsc::channel(100);
    let shutdown = CancellationToken::new();
    let router = xds::router(resources, xds::Ledger::default(), rejections, shutdown.clone());
    let listener = listen::bind("127.0.0.1:18000".parse()?)?;
    let server = listen::serve(listener, router, shutdown.clone(), listen::Limits::default());
    tokio::pin!(server);
    loop {
        tokio::select! {
            () = &mut server => return Ok(()),
            Some(refused) = refused.recv() => eprintln!("{}: {}", refused.node, refused.message),
            _ = tokio::signal::ctrl_c() => shutdown.cancel(),
        }
    }
}

/// The resources after `earlier`. An offset numbers the change; it must only rise.
fn web(earlier: &Resources, endpoint: &str) -> Result<Resources, std::net::AddrParseError> {
    let mut next = earlier.builder(earlier.offset().next());
    next.put("web", &builders::cluster("web"));
    next.put("web", &builders::load_assignment("web", vec![builders::endpoint(endpoint.parse()?)]));
    next.put("web", &builders::api_listener("web", "web"));
    next.put("web", &builders::route("web", "web"));
    Ok(next.build())
}
