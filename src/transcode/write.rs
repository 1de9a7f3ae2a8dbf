//! From bytes to JSON, with the field names that Envoy's documents use.

use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::Value;

use super::descriptor;
use crate::events::ResourceKind;
use crate::projection::resources::TypeUrl;

/// Bytes that cannot be shown: they are no message of their type, or hold one that is not known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be shown as JSON: {0}")]
pub struct Unreadable(String);

/// The message of a resource as JSON, with its `@type`, so that it can be applied again.
///
/// # Errors
///
/// [`Unreadable`] for bytes that are not a message of this kind.
pub fn resource_as_json(kind: ResourceKind, message: &[u8]) -> Result<Value, Unreadable> {
    let unreadable = |fault: &dyn std::error::Error| Unreadable(fault.to_string());
    let message = DynamicMessage::decode(descriptor(kind), message).map_err(|fault| unreadable(&fault))?;
    let options = SerializeOptions::new().use_proto_field_name(true);
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    let mut json = json.map_err(|fault| unreadable(&fault))?;
    if let Value::Object(fields) = &mut json {
        fields.insert("@type".to_owned(), Value::String(TypeUrl::from(kind).as_str().to_owned()));
    }
    Ok(json)
}
