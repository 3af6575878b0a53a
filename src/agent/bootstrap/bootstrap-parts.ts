/** What clusters and listeners of Envoy's bootstrap have in common, as v3 API JSON. */

type Json = Record<string, unknown>;

export function socketAddress(host: string, port: number): Json {
  return { socket_address: { address: host, port_value: port } };
}

/** The only endpoint of a cluster. */
export function loadAssignment(cluster: string, host: string, port: number): Json {
  return {
    cluster_name: cluster,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(host, port) } }] }],
  };
}

/** A cluster that is spoken to in HTTP/2. @param http2 fields of `Http2ProtocolOptions` */
export function http2OptionsWith(http2: Json): Json {
  return {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: http2 },
    },
  };
}

/** HTTP/2 with Envoy's defaults. */
export const http2Options: Json = http2OptionsWith({});

/** Where a cluster's name ends in the names of its statistics: tags are found by it, as in clusters of the control plane. */
export function statName(cluster: string): string {
  return `${cluster};`;
}

/** The agent has it sooner or later: Envoy waits without limit. */
export function secret(name: string): Json {
  return { name, sds_config: { ...secretSource, initial_fetch_timeout: '0s' } };
}

/** A secret that may never be there: Envoy waits for it for 15 s, its own default. */
export function secretInTime(name: string): Json {
  return { name, sds_config: secretSource };
}

const secretSource: Json = {
  api_config_source: {
    api_type: 'GRPC',
    transport_api_version: 'V3',
    set_node_on_first_message_only: true,
    grpc_services: [{ envoy_grpc: { cluster_name: 'sds-grpc' } }],
  },
  resource_api_version: 'V3',
};
