//! The rules, each with what to do and what to see: first what is answered.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, ensure};
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::client::{Client, Update};
use foldplane::xds::protocol::Variant;
use tokio::time::timeout;

use super::pushing::{
    broken_off, concerned, emptied, good_beside_bad, idle, latest_wins, order, refused, sizes, types_apart,
};
use super::state::State;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How long it must be quiet to count as silence.
const SILENCE: Duration = Duration::from_millis(500);

pub(crate) const CDS: TypeUrl = TypeUrl::Cluster;
pub(crate) const EDS: TypeUrl = TypeUrl::ClusterLoadAssignment;
const BOTH: &[Variant] = &[Variant::Sotw, Variant::Delta];
const SOTW: &[Variant] = &[Variant::Sotw];
const DELTA: &[Variant] = &[Variant::Delta];

/// The server under test.
pub(crate) struct Target {
    pub(crate) uri: String,
    pub(crate) state: State,
}

type Outcome<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// One rule.
pub(crate) struct Check {
    pub(crate) rule: &'static str,
    pub(crate) what: &'static str,
    pub(crate) variants: &'static [Variant],
    pub(crate) run: fn(&mut Target, Variant) -> Outcome<'_>,
}

macro_rules! checks {
    ($($rule:literal $variants:ident $what:literal $function:ident)*) => {
        /// Every rule that can be seen from outside.
        pub(crate) const CHECKS: &[Check] = &[$(Check {
            rule: $rule,
            what: $what,
            variants: $variants,
            run: |target, variant| Box::pin($function(target, variant)),
        }),*];
    };
}

checks! {
    "1" BOTH "the same content has the same version on every stream" one_version
    "3" BOTH "a nonce is never used twice, and is no version" nonces
    "4" BOTH "an answer to what was answered before refuses nothing" late_answer
    "6" BOTH "the first request is answered, also when there is nothing" first_request
    "6" BOTH "a client that comes back with everything is answered, and sent all that it names" up_to_date
    "7" BOTH "a name that enters is answered, also at a version that the client has" entering_name
    "8" DELTA "a name that is subscribed again is sent again" subscribed_again
    "9" DELTA "a client that comes back is sent what differs, and told what is gone" comes_back
    "10" BOTH "a missing name holds up nothing, and is sent when it appears" missing_name
    "11" SOTW "clusters come as the full set, assignments as what changed" full_sets
    "11" DELTA "only what changed is sent, and what is gone is named" only_changes
    "12" DELTA "the wildcard is left and names stay" wildcard
    "12" SOTW "who has named something no longer means everything" named
    "15" BOTH "an idle server is silent" idle
    "16" BOTH "a change reaches only those that it concerns" concerned
    "17" BOTH "an unanswered type holds back no other" types_apart
    "17" BOTH "behind an unanswered response the latest state wins" latest_wins
    "18" BOTH "what was refused is sent again only when it changed" refused
    "18" BOTH "one refused assignment does not hold back another" good_beside_bad
    "21" BOTH "a new cluster comes before its endpoints" order
    "23" BOTH "no message is above 4 MiB" sizes
    "24" BOTH "endpoints are taken away by an assignment without them" emptied
    "30" BOTH "a client that breaks off disturbs no other" broken_off
}

impl Target {
    pub(crate) async fn connect(&self, variant: Variant) -> anyhow::Result<Client> {
        Ok(Client::connect(&self.uri, "conformance", variant).await?)
    }
}

pub(crate) async fn next(client: &mut Client) -> anyhow::Result<Update> {
    Ok(timeout(ANSWER_MAX, client.next()).await.context("no answer within 5 s")??)
}

pub(crate) async fn take(client: &mut Client) -> anyhow::Result<Update> {
    let update = next(client).await?;
    client.accept(&update).await?;
    Ok(update)
}

pub(crate) async fn silent(client: &mut Client) -> anyhow::Result<()> {
    match timeout(SILENCE, client.next()).await {
        Err(_) => Ok(()),
        Ok(update) => anyhow::bail!("not silent: {:?}", summary(&update?)),
    }
}

/// What an update brings and takes, and of which type.
pub(crate) fn summary(update: &Update) -> String {
    let names: Vec<_> = update.resources.keys().map(String::as_str).collect();
    format!("{} [{}] -[{}]", update.type_url, names.join(" "), update.removed.join(" "))
}

pub(crate) fn expect(update: &Update, names: &[&str], removed: &[&str]) -> anyhow::Result<()> {
    let found: BTreeSet<_> = update.resources.keys().map(String::as_str).collect();
    let gone: BTreeSet<_> = update.removed.iter().map(String::as_str).collect();
    let right = found == names.iter().copied().collect() && gone == removed.iter().copied().collect();
    ensure!(right, "got {}, expected {names:?} and -{removed:?}", summary(update));
    Ok(())
}

async fn nonces(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    let mut client = target.connect(variant).await?;
    let mut seen = BTreeSet::new();
    client.subscribe(CDS, &[]).await?;
    for state in ["a=", "a= b=", "b="] {
        target.state.set(state).await?;
        let update = take(&mut client).await?;
        ensure!(seen.insert(update.nonce.clone()), "the nonce {} came twice", update.nonce);
        ensure!(update.nonce != update.version, "the nonce is the version {}", update.version);
    }
    Ok(())
}

async fn first_request(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    expect(&take(&mut client).await?, &[], &[])
}

async fn entering_name(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80 b=192.0.2.2:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a"]).await?;
    expect(&take(&mut client).await?, &["a"], &[])?;
    client.subscribe(EDS, &["b"]).await?;
    let update = take(&mut client).await?;
    ensure!(update.resources.contains_key("b"), "got {}", summary(&update));
    silent(&mut client).await
}

async fn subscribed_again(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    for _ in 0..2 {
        client.subscribe(EDS, &["a"]).await?;
        expect(&take(&mut client).await?, &["a"], &[])?;
    }
    Ok(())
}

async fn comes_back(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a= gone=").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    target.state.set("a= new=").await?;
    client.reconnect(&target.uri).await?;
    expect(&take(&mut client).await?, &["new"], &["gone"])
}

async fn missing_name(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a", "none"]).await?;
    let update = take(&mut client).await?;
    ensure!(update.resources.contains_key("a"), "got {}", summary(&update));
    if variant == Variant::Delta {
        expect(&update, &["a"], &["none"])?;
    }
    target.state.set("a=192.0.2.1:80 none=192.0.2.2:80").await?;
    let update = take(&mut client).await?;
    expect(&update, &["none"], &[])
}

async fn full_sets(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80 b=192.0.2.2:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    expect(&take(&mut client).await?, &["a", "b"], &[])?;
    client.subscribe(EDS, &["a", "b"]).await?;
    expect(&take(&mut client).await?, &["a", "b"], &[])?;
    target.state.set("a=192.0.2.9:80 b=192.0.2.2:80").await?;
    expect(&take(&mut client).await?, &["a"], &[])?;
    target.state.set("a=192.0.2.9:80 b=192.0.2.2:80 c=").await?;
    expect(&take(&mut client).await?, &["a", "b", "c"], &[])
}

async fn only_changes(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a= b=").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    expect(&take(&mut client).await?, &["a", "b"], &[])?;
    target.state.set("a= b= c=").await?;
    expect(&take(&mut client).await?, &["c"], &[])?;
    target.state.set("a= c=").await?;
    expect(&take(&mut client).await?, &[], &["b"])
}

async fn wildcard(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a= b=").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    client.subscribe(CDS, &["a"]).await?;
    expect(&take(&mut client).await?, &["a"], &[])?;
    client.unsubscribe(CDS, &["*"]).await?;
    silent(&mut client).await?;
    target.state.set("a= b= c=").await?;
    silent(&mut client).await?;
    target.state.set("b= c=").await?;
    expect(&take(&mut client).await?, &[], &["a"])
}

async fn one_version(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    let mut versions = BTreeSet::new();
    for state in ["a=192.0.2.1:80 b=", "a=192.0.2.1:80 b="] {
        target.state.set(state).await?;
        let mut client = target.connect(variant).await?;
        client.subscribe(CDS, &[]).await?;
        let update = take(&mut client).await?;
        versions.insert(update.resources.values().map(|held| held.version.clone()).collect::<Vec<_>>());
    }
    ensure!(versions.len() == 1, "one content under several versions: {versions:?}");
    Ok(())
}

async fn late_answer(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(EDS, &["a"]).await?;
    let first = take(&mut client).await?;
    target.state.set("a=192.0.2.2:80").await?;
    take(&mut client).await?;
    client.reject(&first, "too late").await?;
    client.subscribe(EDS, &["b"]).await?;
    take(&mut client).await?;
    target.state.set("a=192.0.2.3:80").await?;
    expect(&take(&mut client).await?, &["a"], &[])
}

async fn up_to_date(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a=192.0.2.1:80").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    client.subscribe(EDS, &["a"]).await?;
    take(&mut client).await?;
    client.reconnect(&target.uri).await?;
    let updates = [take(&mut client).await?, take(&mut client).await?];
    let endpoints = updates.iter().find(|update| update.type_url == EDS.as_str());
    let endpoints = endpoints.context("no assignment was sent")?;
    ensure!(endpoints.resources.contains_key("a"), "got {}", summary(endpoints));
    silent(&mut client).await
}

async fn named(target: &mut Target, variant: Variant) -> anyhow::Result<()> {
    target.state.set("a= b=").await?;
    let mut client = target.connect(variant).await?;
    client.subscribe(CDS, &[]).await?;
    take(&mut client).await?;
    client.subscribe(CDS, &["a"]).await?;
    expect(&take(&mut client).await?, &["a"], &[])?;
    client.unsubscribe(CDS, &["a"]).await?;
    target.state.set("a= b= c=").await?;
    silent(&mut client).await
}
