//! One encoding for each message: protobuf leaves the order of a map's entries open, and bytes that differ would be sent again.

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use prost_reflect::{Kind, MessageDescriptor};

use super::POOL;

/// The bytes with the entries of every map sorted, also in what an `Any` of a known type holds.
pub(super) fn canonical(of: &MessageDescriptor, message: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut fields = split(message)?;
    let held = any_content(of, &fields);
    for field in &mut fields {
        let content = match (&field.content, &held) {
            (Content::Bytes(bytes), Some(held)) if field.number == ANY_VALUE => canonical(held, bytes)?,
            (Content::Bytes(bytes), _) => match message_of(of, field.number) {
                Some(inner) => canonical(&inner, bytes)?,
                None => continue,
            },
            (Content::Varint(_) | Content::Fixed(..), _) => continue,
        };
        field.content = Content::Bytes(content);
    }
    let is_map = |number| of.get_field(number).is_some_and(|field| field.is_map());
    fields.sort_by(|a, b| {
        let within = if is_map(a.number) { a.content.cmp(&b.content) } else { std::cmp::Ordering::Equal };
        a.number.cmp(&b.number).then(within)
    });
    Ok(join(&fields))
}

/// The number of `google.protobuf.Any.type_url`.
const ANY_TYPE: u32 = 1;

/// The number of `google.protobuf.Any.value`.
const ANY_VALUE: u32 = 2;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Varint(u64),
    /// Four or eight bytes.
    Fixed(WireWidth, Vec<u8>),
    Bytes(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WireWidth {
    Four,
    Eight,
}

struct Field {
    number: u32,
    content: Content,
}

/// What this `Any` holds, if it is one, and of a known type.
fn any_content(of: &MessageDescriptor, fields: &[Field]) -> Option<MessageDescriptor> {
    if of.full_name() != "google.protobuf.Any" {
        return None;
    }
    let type_url = fields.iter().find(|field| field.number == ANY_TYPE)?;
    let Content::Bytes(type_url) = &type_url.content else { return None };
    POOL.get_message_by_name(std::str::from_utf8(type_url).ok()?.rsplit('/').next()?)
}

fn message_of(of: &MessageDescriptor, number: u32) -> Option<MessageDescriptor> {
    match of.get_field(number)?.kind() {
        Kind::Message(inner) => Some(inner),
        Kind::Double
        | Kind::Float
        | Kind::Int32
        | Kind::Int64
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64
        | Kind::Bool
        | Kind::String
        | Kind::Bytes
        | Kind::Enum(_) => None,
    }
}

fn split(mut message: &[u8]) -> Result<Vec<Field>, DecodeError> {
    let mut fields = Vec::new();
    while message.has_remaining() {
        let (number, wire) = decode_key(&mut message)?;
        let content = match wire {
            WireType::Varint => Content::Varint(decode_varint(&mut message)?),
            WireType::ThirtyTwoBit => Content::Fixed(WireWidth::Four, take(&mut message, 4)?),
            WireType::SixtyFourBit => Content::Fixed(WireWidth::Eight, take(&mut message, 8)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut message)?;
                Content::Bytes(take(&mut message, usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            // Groups are of proto2, and nothing here has them.
            WireType::StartGroup | WireType::EndGroup => return Err(cut_short()),
        };
        fields.push(Field { number, content });
    }
    Ok(fields)
}

fn take(message: &mut &[u8], length: usize) -> Result<Vec<u8>, DecodeError> {
    let (taken, rest) = message.split_at_checked(length).ok_or_else(cut_short)?;
    *message = rest;
    Ok(taken.to_vec())
}

/// The error that prost gives for bytes that end too early; it lets nobody else make one.
fn cut_short() -> DecodeError {
    decode_varint(&mut &[][..]).expect_err("no number has no bytes")
}

fn join(fields: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for Field { number, content } in fields {
        match content {
            Content::Varint(value) => {
                encode_key(*number, WireType::Varint, &mut message);
                encode_varint(*value, &mut message);
            }
            Content::Fixed(width, bytes) => {
                let wire = match width {
                    WireWidth::Four => WireType::ThirtyTwoBit,
                    WireWidth::Eight => WireType::SixtyFourBit,
                };
                encode_key(*number, wire, &mut message);
                message.put_slice(bytes);
            }
            Content::Bytes(bytes) => {
                encode_key(*number, WireType::LengthDelimited, &mut message);
                encode_varint(bytes.len() as u64, &mut message);
                message.put_slice(bytes);
            }
        }
    }
    message
}
