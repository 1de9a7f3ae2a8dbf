//! The bootstrap of an Envoy.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::text::quoted;
use super::{Label, ServerAddress};
use crate::events::ServiceName;

/// The name of the cluster that is Foldplane itself. No service can have it: names begin with a letter or digit.
const CONTROL_PLANE: &str = "_foldplane";

/// What an Envoy needs in order to start.
#[derive(Clone, Debug)]
pub struct EnvoyBootstrap {
    /// Its name among the proxies.
    pub node_id: Label,
    /// The fleet that it belongs to.
    pub node_cluster: Label,
    /// Where Foldplane serves xDS.
    pub control_plane: ServerAddress,
    /// How updates are asked for.
    pub variant: XdsVariant,
    /// Where its admin pages are, if anywhere.
    pub admin: Option<SocketAddr>,
    /// Where it takes requests and passes them to the service that they name, if anywhere.
    pub listener: Option<SocketAddr>,
    /// Path prefixes that belong to one service, whatever host the request names.
    pub routes: Vec<ServiceRoute>,
}

/// How updates are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdsVariant {
    /// Changes only.
    #[default]
    Delta,
    /// Whole sets, the older variant.
    StateOfTheWorld,
}

/// `PREFIX=SERVICE`: requests below a path go to one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRoute {
    prefix: String,
    service: ServiceName,
}

impl FromStr for ServiceRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, service) = text.split_once('=').ok_or("write PREFIX=SERVICE, such as /pay=pay")?;
        let service = ServiceName::new(service).map_err(|invalid| invalid.to_string())?;
        let plain = |c: char| c.is_ascii_graphic() && !"?#".contains(c);
        if !prefix.starts_with('/') || !prefix.chars().all(plain) {
            return Err("the prefix must begin with a slash and hold no space, '?' or '#'".to_owned());
        }
        let whole = prefix.trim_end_matches('/');
        Ok(Self { prefix: whole.to_owned(), service })
    }
}

impl fmt::Display for EnvoyBootstrap {
    /// YAML that `envoy --mode validate` accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_dynamic(f)?;
        f.write_str("\nstatic_resources:\n")?;
        if let Some(address) = self.listener {
            self.write_listener(f, address)?;
        }
        self.write_control_plane(f)
    }
}

impl EnvoyBootstrap {
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { control_plane, .. } = self;
        writeln!(f, "# An Envoy whose services and endpoints come from Foldplane at {control_plane}.")?;
        if let Some(listener) = self.listener {
            let port = listener.port();
            writeln!(f, "# Start it with `envoy -c FILE`, then ask for a service by name, one of:")?;
            writeln!(f, "#   curl http://SERVICE.localhost:{port}/")?;
            writeln!(f, "#   curl -H 'Host: SERVICE' http://{listener}/")?;
            writeln!(f, "#   curl -H 'x-foldplane-service: SERVICE:PORT-NAME' http://{listener}/")?;
        }
        writeln!(f, "node:\n  id: {}\n  cluster: {}", quoted(&self.node_id), quoted(&self.node_cluster))?;
        let Some(admin) = self.admin else { return Ok(()) };
        writeln!(
            f,
            "\n# Statistics, clusters and the configuration as Envoy sees them. Keep it on loopback."
        )?;
        writeln!(f, "admin:\n  address:\n    socket_address: {}", socket(&admin.ip(), admin.port()))
    }

    fn write_dynamic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api_type = match self.variant {
            XdsVariant::Delta => "DELTA_GRPC",
            XdsVariant::StateOfTheWorld => "GRPC",
        };
        write!(
            f,
            r#"
dynamic_resources:
  # One stream for everything, so that clusters and their endpoints arrive in order.
  ads_config:
    api_type: {api_type}
    transport_api_version: V3
    # The description of this node is 60 kB: once a stream is enough.
    set_node_on_first_message_only: true
    grpc_services:
    - envoy_grpc:
        cluster_name: {CONTROL_PLANE}
        # Without it a proxy may wait for up to 30 s after a restart of the control plane.
        retry_policy:
          retry_back_off:
            base_interval: 0.25s
            max_interval: 2s
  cds_config:
    ads: {{}}
    resource_api_version: V3
  # Listeners that an operator applied; there are none unless there is a need.
  lds_config:
    ads: {{}}
    resource_api_version: V3
"#
        )
    }

    fn write_control_plane(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let discovery = match &self.control_plane {
            ServerAddress::Ip(_) => "STATIC",
            ServerAddress::Name { .. } => "STRICT_DNS",
        };
        let address = socket(&self.control_plane.host(), self.control_plane.port());
        write!(
            f,
            r#"  clusters:
  - name: {CONTROL_PLANE}
    type: {discovery}
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options:
            # A control plane that hangs is noticed only so.
            connection_keepalive:
              interval: 10s
              timeout: 5s
    load_assignment:
      cluster_name: {CONTROL_PLANE}
      endpoints:
      - lb_endpoints:
        - endpoint:
            address:
              socket_address: {address}
"#
        )
    }

    fn write_listener(&self, f: &mut fmt::Formatter<'_>, address: SocketAddr) -> fmt::Result {
        let socket = socket(&address.ip(), address.port());
        write!(
            f,
            r#"  listeners:
  - name: services
    address:
      socket_address: {socket}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: services
          strip_any_host_port: true
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          local_reply_config:
            mappers:
            - filter:
                response_flag_filter:
                  flags: [NC]
              body_format_override:
                text_format_source:
                  inline_string: "no such service here: ask with `Host: SERVICE` (this was %REQ(:AUTHORITY)%)\n"
          route_config:
            name: services
            # Services come and go; a request for one that is not there is answered with 503.
            validate_clusters: false
            virtual_hosts:
            - name: services
              domains: ["*"]
              routes:
"#
        )?;
        for route in &self.routes {
            write_route(f, &path_match(&route.prefix), &format!("cluster: {}", quoted(&route.service)))?;
        }
        write_route(f, "prefix: \"/\"", BY_NAME)
    }
}

/// Chooses the cluster from the header `x-foldplane-service`, else from the host without its port and `.localhost`.
/// A request that names no service, or the control plane's own cluster, goes to a cluster that never exists, and is
/// answered with 503.
const BY_NAME: &str = r#"inline_cluster_specifier_plugin:
                    extension:
                      name: envoy.router.cluster_specifier_plugin.lua
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig
                        default_cluster: _none
                        source_code:
                          inline_string: |
                            function envoy_on_route(route)
                              local headers = route:headers()
                              local name = headers:get("x-foldplane-service") or headers:get(":authority")
                              -- Services begin with a letter or digit; what does not is no service.
                              if not name or not name:match("^%w") then return "_none" end
                              return (name:gsub("%.localhost$", ""))
                            end"#;

fn path_match(prefix: &str) -> String {
    if prefix.is_empty() {
        "prefix: \"/\"".to_owned()
    } else {
        format!("path_separated_prefix: {}", quoted(prefix))
    }
}

/// Two routes to the same target: what may be repeated safely, and the rest.
fn write_route(f: &mut fmt::Formatter<'_>, path: &str, target: &str) -> fmt::Result {
    let reading = r#"
                  headers:
                  - name: ":method"
                    string_match:
                      safe_regex:
                        regex: "GET|HEAD""#;
    let cases = [
        (
            "Reading may be repeated whenever a worker dies under it.",
            reading,
            "connect-failure,refused-stream,reset",
        ),
        (
            "The rest is repeated only if no worker saw it.",
            "",
            "connect-failure,refused-stream,reset-before-request",
        ),
    ];
    for (why, methods, retry_on) in cases {
        write!(
            f,
            r#"              # {why}
              - match:
                  {path}{methods}
                route:
                  {target}
                  retry_policy:
                    retry_on: {retry_on}
                    num_retries: 2
                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
                    host_selection_retry_max_attempts: 3
"#
        )?;
    }
    Ok(())
}

fn socket(host: &impl fmt::Display, port: u16) -> String {
    format!("{{address: {}, port_value: {port}}}", quoted(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bootstrap() -> EnvoyBootstrap {
        EnvoyBootstrap {
            node_id: "edge-1".parse().unwrap(),
            node_cluster: "edge".parse().unwrap(),
            control_plane: "127.0.0.1:18000".parse().unwrap(),
            variant: XdsVariant::Delta,
            admin: None,
            listener: None,
            routes: Vec::new(),
        }
    }

    #[test]
    fn text_of_strangers_stays_inside_its_quotes() {
        let node_id: Label = "a\" }\u{2028}admin: {x: 'y' #".parse().unwrap();
        let text = EnvoyBootstrap { node_id, ..bootstrap() }.to_string();
        assert!(text.contains(r#"id: "a\" }\U00002028admin: {x: 'y' #""#), "{text}");
        assert_eq!("a\nb".parse::<Label>(), Err(crate::bootstrap::InvalidLabel::Control('\n')));
    }

    #[test]
    fn routes_are_read_or_refused() {
        let route: ServiceRoute = "/pay/=pay".parse().unwrap();
        assert_eq!(path_match(&route.prefix), "path_separated_prefix: \"/pay\"");
        assert_eq!(path_match(&"/=web".parse::<ServiceRoute>().unwrap().prefix), "prefix: \"/\"");
        for wrong in ["/pay", "pay=pay", "/a b=pay", "/a?b=pay", "/pay=*", "/a\n=pay"] {
            assert!(wrong.parse::<ServiceRoute>().is_err(), "{wrong:?}");
        }
    }
}
