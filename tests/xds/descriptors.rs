//! `src/transcode/descriptors.bin`, which knows the messages that people write, says what the protos of our messages say.
//!
//! `FOLDPLANE_BLESS=1 cargo test --test xds descriptors` makes it anew, after a new version of envoy-types or a longer list.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use prost::Message;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

/// The files that hold what is served and asked for, and what people put into it. Each costs some 2 kB in the program. What
/// is not here is written as `xds.type.v3.TypedStruct`, which Envoy takes for any extension.
const PROTOS: &[&str] = &[
    "envoy/config/cluster/v3/cluster.proto",
    "envoy/config/endpoint/v3/endpoint.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/config/route/v3/route.proto",
    "envoy/extensions/access_loggers/file/v3/file.proto",
    "envoy/extensions/access_loggers/stream/v3/stream.proto",
    "envoy/extensions/clusters/aggregate/v3/cluster.proto",
    "envoy/extensions/clusters/dns/v3/dns_cluster.proto",
    "envoy/extensions/compression/gzip/compressor/v3/gzip.proto",
    "envoy/extensions/filters/http/buffer/v3/buffer.proto",
    "envoy/extensions/filters/http/compressor/v3/compressor.proto",
    "envoy/extensions/filters/http/cors/v3/cors.proto",
    "envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto",
    "envoy/extensions/filters/http/fault/v3/fault.proto",
    "envoy/extensions/filters/http/grpc_web/v3/grpc_web.proto",
    "envoy/extensions/filters/http/header_mutation/v3/header_mutation.proto",
    "envoy/extensions/filters/http/health_check/v3/health_check.proto",
    "envoy/extensions/filters/http/jwt_authn/v3/config.proto",
    "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit.proto",
    "envoy/extensions/filters/http/lua/v3/lua.proto",
    "envoy/extensions/filters/http/rbac/v3/rbac.proto",
    "envoy/extensions/filters/http/router/v3/router.proto",
    "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.proto",
    "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
    "envoy/extensions/filters/network/rbac/v3/rbac.proto",
    "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto",
    "envoy/extensions/load_balancing_policies/least_request/v3/least_request.proto",
    "envoy/extensions/load_balancing_policies/maglev/v3/maglev.proto",
    "envoy/extensions/load_balancing_policies/random/v3/random.proto",
    "envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.proto",
    "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.proto",
    "envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.proto",
    "envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol.proto",
    "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto",
    "envoy/extensions/transport_sockets/tls/v3/tls.proto",
    "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
    "envoy/service/discovery/v3/discovery.proto",
];

/// What cargo answers, without asking the network.
fn cargo(arguments: &[&str]) -> Vec<u8> {
    let output =
        Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The descriptors of everything in envoy-types, where cargo keeps its sources. Only this platform's packages are asked for:
/// those of others are not there where only a build has run, and no `cargo fetch`.
fn everything() -> Vec<u8> {
    let version = String::from_utf8(cargo(&["-vV"])).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let metadata = cargo(&["metadata", "--offline", "--format-version=1", "--filter-platform", host]);
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let envoy_types = packages.iter().find(|package| package["name"] == "envoy-types").unwrap();
    let folder = Path::new(envoy_types["manifest_path"].as_str().unwrap()).parent().unwrap();
    std::fs::read(folder.join("src/generated/types.bin")).unwrap()
}

/// A file as it stands, with the rules of its fields, which nothing that decodes it would keep.
struct File {
    bytes: Vec<u8>,
    imports: Vec<String>,
}

/// Every file of a set, by its name.
fn files(mut set: &[u8]) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    while !set.is_empty() {
        decode_key(&mut set).unwrap();
        let length = usize::try_from(decode_varint(&mut set).unwrap()).unwrap();
        let (bytes, rest) = set.split_at(length);
        set = rest;
        let file = FileDescriptorProto::decode(bytes).unwrap();
        let bytes = without_comments(bytes);
        files.insert(file.name().to_owned(), File { bytes, imports: file.dependency });
    }
    files
}

/// The number of `FileDescriptorProto.source_code_info`.
const COMMENTS: u32 = 9;

fn without_comments(mut file: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    while !file.is_empty() {
        let whole = file;
        let (number, wire) = decode_key(&mut file).unwrap();
        skip_field(wire, number, &mut file, DecodeContext::default()).unwrap();
        if number != COMMENTS {
            kept.extend_from_slice(&whole[..whole.len() - file.len()]);
        }
    }
    kept
}

/// Adds a file behind those that it needs.
fn add(name: &str, files: &mut BTreeMap<String, File>, set: &mut Vec<u8>) {
    let Some(file) = files.remove(name) else { return };
    file.imports.iter().for_each(|import| add(import, files, set));
    put(&file.bytes, set);
}

/// `xds.type.v3.TypedStruct`, which envoy-types lacks: a type, and its fields as JSON.
fn typed_struct() -> FileDescriptorProto {
    let field = |number, name: &str, kind: Type, message: Option<&str>| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: message.map(str::to_owned),
        ..FieldDescriptorProto::default()
    };
    let fields = vec![
        field(1, "type_url", Type::String, None),
        field(2, "value", Type::Message, Some(".google.protobuf.Struct")),
    ];
    FileDescriptorProto {
        name: Some("xds/type/v3/typed_struct.proto".to_owned()),
        package: Some("xds.type.v3".to_owned()),
        dependency: vec!["google/protobuf/struct.proto".to_owned()],
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("TypedStruct".to_owned()),
            field: fields,
            ..DescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    }
}

fn put(file: &[u8], set: &mut Vec<u8>) {
    encode_key(1, WireType::LengthDelimited, set);
    encode_varint(file.len() as u64, set);
    set.extend_from_slice(file);
}

#[test]
fn the_known_messages_are_those_of_the_protos() {
    let mut files = files(&everything());
    assert!(PROTOS.iter().all(|name| files.contains_key(*name)), "a file is not, or no longer, there");
    let mut set = Vec::new();
    PROTOS.iter().for_each(|name| add(name, &mut files, &mut set));
    put(&typed_struct().encode_to_vec(), &mut set);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transcode/descriptors.bin");
    if std::env::var_os("FOLDPLANE_BLESS").is_some() {
        std::fs::write(path, &set).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == set, "FOLDPLANE_BLESS=1 makes it anew");
}
