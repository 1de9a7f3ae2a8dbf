//! Resources: what clients are sent, and what an operator brings and takes back.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Sources;
use super::views::Listing;
use crate::command::{Applying, Command, References, ResourceChange, decide};
use crate::engine::wall_clock;
use crate::events::{Actor, InvalidKind, ResourceKey, ResourceKind};
use crate::problem::{JsonBody, Problem, QueryOf};
use crate::projection::Snapshot;
use crate::projection::resources::{Resource, TypeUrl};
use crate::projection::state::State as Facts;
use crate::transcode;

/// A change of an operator's resources: all of it is done, or nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeBody {
    /// Resources that are to be there, in Envoy's JSON with `@type`.
    #[serde(default)]
    pub apply: Vec<Value>,
    /// Resources that are not.
    #[serde(default)]
    pub delete: Vec<KeyBody>,
    /// Whether what a resource names may be missing.
    #[serde(default)]
    pub allow_missing: bool,
    /// Whether only to say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// Which resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyBody {
    /// `cluster`, `endpoints`, `listener` or `route`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedBody {
    /// From which offset it holds; after a dry run, the offset that was looked at.
    pub offset: u64,
    /// A line a resource, in the order in which they were given.
    pub changes: Vec<ChangeView>,
}

/// What came of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeView {
    /// `cluster`, `endpoints`, `listener` or `route`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `created`, `changed`, `unchanged`, `deleted` or `absent`.
    pub change: String,
    /// Whether workers make one of the same name, which is served only while nothing is applied.
    pub workers_make_one: bool,
}

/// A resource as clients are sent it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceView {
    /// `cluster`, `endpoints`, `listener` or `route`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `<offset>-<digest>`.
    pub version: String,
    /// `operator` or `workers`.
    pub origin: String,
    /// Whether workers make one of the same name, which is not served because this one was applied.
    pub hides_workers: bool,
    /// What it says, in Envoy's JSON, where that was asked for.
    pub resource: Option<Value>,
}

/// What a list may be narrowed to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    kind: Option<String>,
    name: Option<String>,
    #[serde(default)]
    content: bool,
}

pub(super) async fn list(
    State(sources): State<Sources>,
    QueryOf(filter): QueryOf<Filter>,
) -> Result<Json<Listing<ResourceView>>, Problem> {
    let snapshot = sources.handle.snapshot();
    let only = filter.kind.as_deref().map(str::parse::<ResourceKind>).transpose()?;
    let mut items = Vec::new();
    for kind in ResourceKind::ALL.into_iter().filter(|kind| only.is_none_or(|only| only == *kind)) {
        let resources = snapshot.resources().of(TypeUrl::from(kind)).iter();
        let named = |name: &str| filter.name.as_ref().is_none_or(|wanted| wanted == name);
        for resource in resources.filter(|resource| named(resource.name.as_str())) {
            items.push(view(&snapshot, kind, resource, filter.content)?);
        }
    }
    match filter.name {
        Some(name) if items.is_empty() => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "unknown_resource",
            format!("no resource {name:?} is served"),
            "`foldplane get resources` lists those that are",
        )),
        _ => Ok(Json(Listing { offset: snapshot.offset().get(), items })),
    }
}

fn view(
    snapshot: &Snapshot,
    kind: ResourceKind,
    resource: &Resource,
    content: bool,
) -> Result<ResourceView, Problem> {
    let key = ResourceKey { kind, name: resource.name.to_string() };
    let applied = snapshot.state().applied().contains_key(&key);
    Ok(ResourceView {
        version: resource.version.to_string(),
        origin: if applied { "operator" } else { "workers" }.to_owned(),
        hides_workers: applied && snapshot.state().workers_make(&key),
        resource: content.then(|| shown(&key, resource)).transpose()?,
        kind: kind.to_string(),
        name: key.name,
    })
}

fn shown(key: &ResourceKey, resource: &Resource) -> Result<Value, Problem> {
    transcode::resource_as_json(key.kind, &resource.message()).map_err(|fault| {
        let hint = "it was applied by a newer version, or by other means: ask without its content";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", format!("{key}: {fault}"), hint)
    })
}

pub(super) async fn change(
    State(sources): State<Sources>,
    peer: ConnectInfo<SocketAddr>,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Result<Json<ChangedBody>, Problem> {
    let change = read(&body)?;
    let before = sources.handle.snapshot();
    let changes = outcome(before.state(), &change);
    let command = Command::ChangeResources(change);
    let offset = if body.dry_run {
        decide(before.state(), &command, wall_clock())?;
        before.offset()
    } else {
        let actor = Actor::Anonymous { peer: peer.0.to_string() };
        sources.handle.submit(actor, command).await?.offset
    };
    Ok(Json(ChangedBody { offset: offset.get(), changes }))
}

fn read(body: &ChangeBody) -> Result<ResourceChange, Problem> {
    let apply = body.apply.iter().enumerate().map(|(number, value)| {
        let written = transcode::resource(value).map_err(|invalid| {
            let name = value.get("name").or_else(|| value.get("cluster_name")).and_then(Value::as_str);
            let name = name.map(|name| format!(" ({name:?})")).unwrap_or_default();
            let detail = format!("apply[{number}]{name}: {invalid}");
            Problem::new(StatusCode::BAD_REQUEST, "invalid_argument", detail, &invalid.hint)
        })?;
        Ok(Applying { key: written.key, message: written.message })
    });
    let delete =
        body.delete.iter().map(|key| Ok(ResourceKey { kind: key.kind.parse()?, name: key.name.clone() }));
    Ok(ResourceChange {
        apply: apply.collect::<Result<_, Problem>>()?,
        delete: delete.collect::<Result<_, InvalidKind>>()?,
        references: if body.allow_missing { References::Unchecked } else { References::Checked },
    })
}

/// What a change makes of each resource that it is about.
fn outcome(before: &Facts, change: &ResourceChange) -> Vec<ChangeView> {
    let line = |key: &ResourceKey, change: &str| ChangeView {
        kind: key.kind.to_string(),
        name: key.name.clone(),
        change: change.to_owned(),
        workers_make_one: before.workers_make(key),
    };
    let applied = change.apply.iter().map(|resource| match before.applied().get(&resource.key) {
        None => line(&resource.key, "created"),
        Some(known) if known.message == resource.message => line(&resource.key, "unchanged"),
        Some(_) => line(&resource.key, "changed"),
    });
    let deleted = change.delete.iter().map(|key| {
        let was_there = before.applied().contains_key(key);
        line(key, if was_there { "deleted" } else { "absent" })
    });
    applied.chain(deleted).collect()
}

impl From<InvalidKind> for Problem {
    fn from(invalid: InvalidKind) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_argument", invalid.to_string(), "check the kind")
    }
}
