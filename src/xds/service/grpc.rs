//! gRPC over a raw HTTP body: requests are decoded one by one, responses are pieces that all streams share.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio_util::sync::CancellationToken;
use tonic::codec::BufferSettings;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use super::Shared;
use super::session::{Guest, Session};
use crate::xds::protocol::{Served, Variant};
use crate::xds::wire::WireRequest;

/// The largest request. A client that names 100,000 resources, or whose NACK repeats a large one, is above
/// tonic's 4 MiB, and must not lose its stream for that.
const REQUEST_BYTES_MAX: usize = 16 << 20;

/// How much of a stream's requests is held ready: an answer has a hundred bytes, and thousands of streams are idle. The
/// buffer grows with a larger request.
const REQUEST_BUFFER_BYTES: usize = 512;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Opens a stream.
pub(super) async fn stream<M: WireRequest>(
    (shared, variant, served): (Arc<Shared>, Variant, Served),
    request: Request,
) -> Response {
    if !is_grpc(&request) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let connection = request.extensions().get::<CancellationToken>().cloned();
    let decoder = ProstCodec::<M, M>::raw_decoder(BufferSettings::new(REQUEST_BUFFER_BYTES, usize::MAX));
    let requests = Streaming::new_request(decoder, request.into_body(), None, Some(REQUEST_BYTES_MAX));
    let guest = Guest { peer, connection: connection.unwrap_or_default() };
    let session = Box::new(Session::new(shared, variant, served, guest, requests));
    respond(Body::new(StreamBody::new(stream::unfold(session, step))))
}

/// What is not served is said in gRPC's way, so that a client does not mistake it for a broken connection.
pub(super) async fn unknown(request: Request) -> Response {
    if is_grpc(&request) {
        let path = request.uri().path();
        Status::unimplemented(format!("{path} is not served here")).into_http()
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

async fn step<M: WireRequest>(
    mut session: Box<Session<M>>,
) -> Option<(Result<Frame<Bytes>, Infallible>, Box<Session<M>>)> {
    let frame = match session.next().await? {
        Ok(piece) => Frame::data(piece),
        Err(status) => Frame::trailers(trailers(&status)),
    };
    Some((Ok(frame), session))
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // Only a message that no header can hold gets here; the code is what clients act on.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(status.code() as i32));
    }
    trailers
}

fn is_grpc(request: &Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(GRPC.as_bytes()))
}

fn respond(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}
