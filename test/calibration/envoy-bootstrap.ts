/**
 * Bootstraps of calibration scenarios: a listener that responds with the name of its Envoy, an admin interface, and
 * dynamic resources that delay the start.
 */
import type { StartStep } from './scenario.ts';

export interface BootstrapPorts {
  readonly admin: number;
  readonly listener: number;
  /** Port on which nothing listens, as if the control plane were unreachable. */
  readonly controlPlane: number;
}

/** Builds a bootstrap. Every response contains the name of the Envoy. */
export function bootstrap({ name, configuration, giveUpMs }: StartStep, ports: BootstrapPorts): object {
  const waits = configuration === 'awaited' || configuration === 'never there';
  return {
    node: { id: 'calibration', cluster: 'calibration' },
    admin: { address: loopback(ports.admin) },
    static_resources: {
      listeners: [listener(name, ports.listener)],
      ...(waits && { clusters: [controlPlaneCluster(ports.controlPlane)] }),
    },
    // Zero disables the timeout.
    ...(waits && { dynamic_resources: dynamicResources(configuration === 'awaited' ? giveUpMs : 0) }),
    ...(configuration === 'broken' && { bogus: {} }),
  };
}

const loopback = (port: number): object => ({ socket_address: { address: '127.0.0.1', port_value: port } });

function listener(name: string, port: number): object {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: name } } };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'http',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager };
  return { name: 'http', address: loopback(port), filter_chains: [{ filters: [filter] }] };
}

const controlPlane = 'control-plane';

function controlPlaneCluster(port: number): object {
  const options = {
    '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    explicit_http_config: { http2_protocol_options: {} },
  };
  return {
    name: controlPlane,
    type: 'STATIC',
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
    load_assignment: {
      cluster_name: controlPlane,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(port) } }] }],
    },
  };
}

function dynamicResources(giveUpMs: number): object {
  return {
    ads_config: {
      api_type: 'GRPC',
      transport_api_version: 'V3',
      grpc_services: [{ envoy_grpc: { cluster_name: controlPlane } }],
    },
    cds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: `${giveUpMs / 1_000}s` },
  };
}
