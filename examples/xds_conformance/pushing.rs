//! The rules about what is pushed, and to whom.

use std::collections::BTreeSet;

use anyhow::ensure;
use foldplane::xds::protocol::Variant;

use super::checks::{CDS, EDS, Target, expect, next, silent, summary, take};

pub(crate) async fn idle(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    client.subscribe(EDS, &["a"]).await?;
    take(&mut client).await?;
    target.state.set("a=192.0.2.1:80").await?;
    silent(&mut client).await
}

pub(crate) async fn concerned(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80 b=192.0.2.2:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &["a"]).await?;
    take(&mut client).await?;
    client.subscribe(EDS, &["a"]).await?;
    take(&mut client).await?;
    target.state.set("a=192.0.2.1:80 b=192.0.2.3:80 c=").await?;
    silent(&mut client).await
}

pub(crate) async fn latest_wins(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a"]).await?;
    let first = next(&mut client).await?;
    for last in 2..6 {
        target.state.set(&format!("a=192.0.2.{last}:80")).await?;
    }
    silent(&mut client).await?;
    client.accept(&first).await?;
    let second = take(&mut client).await?;
    let text = String::from_utf8_lossy(&second.resources["a"].message).into_owned();
    ensure!(text.contains("192.0.2.5"), "an outdated state was sent");
    silent(&mut client).await
}

pub(crate) async fn refused(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a"]).await?;
    let update = next(&mut client).await?;
    client.reject(&update, "refused to see what happens").await?;
    silent(&mut client).await?;
    target.state.set("a=192.0.2.2:80").await?;
    expect(&take(&mut client).await?, &["a"], &[])
}

pub(crate) async fn types_apart(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    let clusters = next(&mut client).await?;
    client.subscribe(EDS, &["a"]).await?;
    expect(&take(&mut client).await?, &["a"], &[])?;
    client.accept(&clusters).await?;
    Ok(())
}

pub(crate) async fn good_beside_bad(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("bad=192.0.2.1:80 good=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["bad", "good"]).await?;
    take(&mut client).await?;
    target.state.set("bad=192.0.2.2:80 good=192.0.2.2:80").await?;
    // Whatever it is sent together or apart, it refuses what holds the bad one.
    for _ in 0..4 {
        let update = next(&mut client).await?;
        if update.resources.contains_key("bad") {
            client.reject(&update, "bad is refused").await?;
        } else if update.resources.contains_key("good") {
            client.accept(&update).await?;
            return Ok(());
        }
    }
    anyhow::bail!("the good one was never sent by itself")
}

pub(crate) async fn order(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    client.subscribe(EDS, &["a", "b"]).await?;
    take(&mut client).await?;
    target.state.set("a=192.0.2.1:80 b=192.0.2.2:80").await?;
    let (first, second) = (take(&mut client).await?, take(&mut client).await?);
    let types = (first.type_url.as_str(), second.type_url.as_str());
    ensure!(types == (CDS.as_str(), EDS.as_str()), "got {} before {}", types.0, types.1);
    Ok(())
}

pub(crate) async fn sizes(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    const SERVICES: usize = 60;
    const ENDPOINTS: usize = 4_000;
    const MESSAGE_BYTES_MAX: usize = 4 << 20;
    let endpoints: Vec<_> =
        (0..ENDPOINTS).map(|number| format!("10.0.{}.{}:80", number / 250, number % 250 + 1)).collect();
    let names: Vec<_> = (0..SERVICES).map(|number| format!("service-{number}")).collect();
    let state: Vec<_> = names.iter().map(|name| format!("{name}={}", endpoints.join(","))).collect();
    target.state.set(&state.join(" ")).await?;
    let mut client = target.connect(variant).await?;
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    client.subscribe(EDS, &names).await?;
    let mut missing: BTreeSet<_> = names.iter().map(|name| (*name).to_owned()).collect();
    while !missing.is_empty() {
        let update = take(&mut client).await?;
        ensure!(update.bytes <= MESSAGE_BYTES_MAX, "a message has {} bytes", update.bytes);
        missing.retain(|name| !update.resources.contains_key(name));
    }
    Ok(())
}

pub(crate) async fn emptied(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a"]).await?;
    take(&mut client).await?;
    target.state.set("a=").await?;
    let update = take(&mut client).await?;
    expect(&update, &["a"], &[])?;
    let text = String::from_utf8_lossy(&update.resources["a"].message).into_owned();
    ensure!(!text.contains("192.0.2.1"), "the endpoint is still there");
    Ok(())
}

pub(crate) async fn broken_off(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=").await?;
    let mut stays = target.connect(variant).await?;
    stays.subscribe(CDS, &[]).await?;
    take(&mut stays).await?;
    for _ in 0..20 {
        let mut leaves = target.connect(variant).await?;
        leaves.subscribe(CDS, &[]).await?;
    }
    target.state.set("a= b=").await?;
    let update = take(&mut stays).await?;
    ensure!(update.resources.contains_key("b"), "got {}", summary(&update));
    Ok(())
}
