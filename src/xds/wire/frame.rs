//! A response as a gRPC message, put together from a small header of its own and pieces that all streams share.
//!
//! An encoder would copy every resource for every stream. Here a large resource is handed to the socket as the
//! one copy that there is; small ones are gathered, because a piece costs a frame of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use envoy_types::pb::envoy::config::core::v3::ControlPlane;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use prost::Message;

use crate::projection::resources::Resource;
use crate::xds::protocol::{Response, Variant};

/// From this size on a piece is shared, not copied: about where a copy costs more than a frame.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// How much is gathered into one piece: an HTTP/2 frame of the default size.
const GATHERED_BYTES_MAX: usize = 16 << 10;

/// How clients see this server: in Envoy's statistic `control_plane.identifier`.
const IDENTIFIER: &str = concat!("foldplane ", env!("CARGO_PKG_VERSION"));

/// A message on its way to the wire.
#[derive(Debug)]
pub(in crate::xds) struct Frame {
    variant: Variant,
    response: Arc<Response>,
    next: usize,
    pieces: VecDeque<Bytes>,
}

impl Frame {
    pub(in crate::xds) fn new(variant: Variant, response: Arc<Response>) -> Self {
        let header = header(variant, &response);
        let resources = response.resources.iter().map(|resource| field(variant, resource));
        let length: usize = resources.flatten().map(|piece| piece.len()).sum();
        let mut start = BytesMut::with_capacity(PREFIX_BYTES + header.len());
        start.put_u8(UNCOMPRESSED);
        // A message of 4 GiB cannot be framed; the type-level limits are a thousand times lower.
        start.put_u32(u32::try_from(header.len() + length).unwrap_or(u32::MAX));
        start.put(header.as_slice());
        Self { variant, response, next: 0, pieces: VecDeque::from([start.freeze()]) }
    }

    /// The next piece for the socket.
    pub(in crate::xds) fn pop(&mut self) -> Option<Bytes> {
        self.fill();
        let first = self.pieces.pop_front()?;
        if first.len() >= SHARED_BYTES_MIN || self.pieces.is_empty() {
            return Some(first);
        }
        let mut gathered = BytesMut::from(first.as_ref());
        while gathered.len() < GATHERED_BYTES_MAX {
            self.fill();
            match self.pieces.pop_front() {
                Some(piece) if piece.len() < SHARED_BYTES_MIN => gathered.put(piece),
                Some(piece) => {
                    self.pieces.push_front(piece);
                    break;
                }
                None => break,
            }
        }
        Some(gathered.freeze())
    }

    /// Keeps a resource's pieces ready, so that what follows can be gathered.
    fn fill(&mut self) {
        if self.pieces.len() < 2
            && let Some(resource) = self.response.resources.get(self.next)
        {
            self.next += 1;
            self.pieces.extend(field(self.variant, resource));
        }
    }
}

/// gRPC's prefix: a flag and a length.
const PREFIX_BYTES: usize = 5;
const UNCOMPRESSED: u8 = 0;

fn field(variant: Variant, resource: &Resource) -> [Bytes; 2] {
    match variant {
        Variant::Sotw => resource.sotw_field(),
        Variant::Delta => resource.delta_field(),
    }
}

fn header(variant: Variant, response: &Response) -> Vec<u8> {
    let control_plane = Some(ControlPlane { identifier: IDENTIFIER.into() });
    let type_url = response.type_url.as_str().to_owned();
    let nonce = response.nonce.clone();
    match variant {
        Variant::Sotw => {
            let version_info = response.version.to_string();
            let rest = DiscoveryResponse::default();
            DiscoveryResponse { version_info, type_url, nonce, control_plane, ..rest }.encode_to_vec()
        }
        Variant::Delta => {
            let system_version_info = response.version.to_string();
            let removed_resources = response.removed.iter().map(ToString::to_string).collect();
            let rest = DeltaDiscoveryResponse::default();
            DeltaDiscoveryResponse {
                system_version_info,
                type_url,
                nonce,
                control_plane,
                removed_resources,
                ..rest
            }
            .encode_to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Offset;
    use crate::projection::resources::{ResourceName, TypeUrl, Version};
    use crate::xds::protocol::ResponseType;

    fn response(sizes: &[usize]) -> Arc<Response> {
        let resource = |(number, size): (usize, &usize)| {
            let name = ResourceName::new(&format!("r{number}"));
            Arc::new(Resource::new(TypeUrl::Cluster, name, Offset::new(3), &vec![7; *size]))
        };
        Arc::new(Response {
            type_url: ResponseType::Served(TypeUrl::Cluster),
            nonce: "1.1".into(),
            version: Version::default(),
            resources: sizes.iter().enumerate().map(resource).collect(),
            removed: vec!["gone".into()],
        })
    }

    fn pieces(variant: Variant, response: &Arc<Response>) -> Vec<Bytes> {
        let mut frame = Frame::new(variant, Arc::clone(response));
        std::iter::from_fn(|| frame.pop()).collect()
    }

    #[test]
    fn the_pieces_are_one_message() {
        for sizes in [&[][..], &[10], &[10, 9000, 10, 20], &[9000, 9000], &[100; 1000]] {
            let response = response(sizes);
            let sotw = pieces(Variant::Sotw, &response).concat();
            let read = DiscoveryResponse::decode(&sotw[PREFIX_BYTES..]).unwrap();
            assert_eq!(read.resources.len(), sizes.len());
            assert_eq!(
                sotw.len() - PREFIX_BYTES,
                u32::from_be_bytes(sotw[1..5].try_into().unwrap()) as usize
            );

            let delta = pieces(Variant::Delta, &response).concat();
            let read = DeltaDiscoveryResponse::decode(&delta[PREFIX_BYTES..]).unwrap();
            assert_eq!(read.resources.len(), sizes.len());
            assert_eq!(read.removed_resources, ["gone"]);
        }
    }

    #[test]
    fn large_resources_are_shared_and_small_ones_gathered() {
        let response = response(&[10, 20_000, 10, 10]);
        let pieces = pieces(Variant::Sotw, &response);
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), response.resources[1].any().as_ptr());
    }
}
