//! From JSON to bytes, with the place of whatever is wrong.

use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::Value;

use super::canonical::canonical;
use super::{POOL, descriptor};
use crate::events::{MessageBytes, ResourceKey, ResourceKind};
use crate::projection::resources::TypeUrl;

/// A resource that somebody wrote, as it will be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which it is, by the name that it gives itself.
    pub key: ResourceKey,
    /// Its only encoding: the same fields give the same bytes.
    pub message: MessageBytes,
}

/// JSON that is no resource, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Invalid {
    /// The path of the field, such as `filter_chains[0].filters[0].typed_config`.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl Invalid {
    fn new(place: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        let place = if place.is_empty() { "the resource" } else { place };
        Self { place: place.to_owned(), problem: problem.into(), hint: hint.into() }
    }
}

/// How deep a document may nest. Real ones have some thirty levels; what recurses over them stays far from the stack's end.
const DEPTH_MAX: usize = 100;

/// The resource that a JSON object with `@type` describes.
///
/// ```
/// use foldplane::transcode::resource;
/// use serde_json::json;
///
/// let written = resource(&json!({
///     "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
///     "name": "web",
///     "connect_timeout": "0.25s",
///     "lbPolicy": "LEAST_REQUEST",
/// }))
/// .unwrap();
/// assert_eq!(written.key.to_string(), "cluster/web");
///
/// let wrong = resource(&json!({
///     "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
///     "load_assignment": { "endpoints": [{ "priority": "high" }] },
/// }));
/// assert_eq!(wrong.unwrap_err().place, "load_assignment.endpoints[0].priority");
/// ```
///
/// # Errors
///
/// [`Invalid`] with the place of the first fault.
pub fn resource(value: &Value) -> Result<Written, Invalid> {
    check_depth(value)?;
    let (kind, fields) = typed(value)?;
    check_types("", &fields)?;
    let message = message(&descriptor(kind), &fields, &DeserializeOptions::new())?;
    let name = message.get_field_by_name(name_field(kind));
    let name = name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let encoded = canonical(&descriptor(kind), &message.encode_to_vec())
        .map_err(|fault| Invalid::new("", fault.to_string(), "this is our fault: please report it"))?;
    Ok(Written { key: ResourceKey { kind, name }, message: encoded.into() })
}

/// The bytes of a `DiscoveryRequest`, as a client that polls sends it. Fields that we do not know are left out: clients are
/// newer than we are.
///
/// # Errors
///
/// [`Invalid`] with the place of the first fault.
pub fn discovery_request(value: &Value) -> Result<Vec<u8>, Invalid> {
    check_depth(value)?;
    let request = POOL.get_message_by_name("envoy.service.discovery.v3.DiscoveryRequest");
    let request = request.expect("a test holds that it is among them");
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    Ok(message(&request, value, &options)?.encode_to_vec())
}

/// The field that holds a resource's name.
const fn name_field(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Cluster | ResourceKind::Listener | ResourceKind::RouteConfiguration => "name",
        ResourceKind::ClusterLoadAssignment => "cluster_name",
    }
}

/// The kind of a document, and what is left of it.
fn typed(value: &Value) -> Result<(ResourceKind, Value), Invalid> {
    let served = || ResourceKind::ALL.map(|kind| TypeUrl::from(kind).as_str()).join(", ");
    let hint = || format!("give @type, one of: {}", served());
    let Value::Object(fields) = value else {
        return Err(Invalid::new("", format!("expected an object, found {}", shape(value)), hint()));
    };
    let mut fields = fields.clone();
    let Some(Value::String(url)) = fields.remove("@type") else {
        return Err(Invalid::new("@type", "it is missing, so that nobody knows what this is", hint()));
    };
    let kind = ResourceKind::ALL.into_iter().find(|kind| TypeUrl::from(*kind).as_str() == url);
    let kind =
        kind.ok_or_else(|| Invalid::new("@type", format!("{url:?} is not a type that is served"), hint()))?;
    Ok((kind, Value::Object(fields)))
}

fn message(
    of: &MessageDescriptor,
    value: &Value,
    options: &DeserializeOptions,
) -> Result<DynamicMessage, Invalid> {
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    DynamicMessage::deserialize_with_options(of.clone(), tracked, options).map_err(|fault| {
        let place = match track.path().to_string() {
            root if root == "." => String::new(),
            path => path,
        };
        Invalid::new(&place, fault.to_string(), "compare it with Envoy's reference of this field")
    })
}

/// Refuses what would have to be looked up in a message that is not known, before anything is read.
fn check_types(place: &str, value: &Value) -> Result<(), Invalid> {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(url)) = fields.get("@type") {
                check_type(place, url)?;
            }
            fields.iter().try_for_each(|(key, value)| {
                let dot = if place.is_empty() { "" } else { "." };
                check_types(&format!("{place}{dot}{key}"), value)
            })
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| check_types(&format!("{place}[{index}]"), item))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_type(place: &str, url: &str) -> Result<(), Invalid> {
    let name = url.rsplit('/').next().unwrap_or_default();
    if POOL.get_message_by_name(name).is_some() {
        return Ok(());
    }
    Err(Invalid::new(
        place,
        format!("the message {name:?} of its @type is not known here"),
        "check its spelling, or write it as type.googleapis.com/xds.type.v3.TypedStruct with type_url and value",
    ))
}

fn check_depth(value: &Value) -> Result<(), Invalid> {
    fn fits(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return false };
        match value {
            Value::Object(fields) => fields.values().all(|value| fits(value, left)),
            Value::Array(items) => items.iter().all(|value| fits(value, left)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    let problem = format!("it nests more than {DEPTH_MAX} levels deep");
    if fits(value, DEPTH_MAX) { Ok(()) } else { Err(Invalid::new("", problem, "write it flatter")) }
}

const fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
