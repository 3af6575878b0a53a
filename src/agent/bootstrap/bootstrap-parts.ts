type Json = Record<string, unknown>;

export function socketAddress(host: string, port: number): Json {
  return { socket_address: { address: host, port_value: port } };
}

export function loadAssignment(cluster: string, host: string, port: number): Json {
  return {
    cluster_name: cluster,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(host, port) } }] }],
  };
}

export function http2OptionsWith(http2: Json): Json {
  return {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: http2 },
    },
  };
}

export const http2Options: Json = http2OptionsWith({});

/** Appends `;`, which marks the end of a cluster name in statistics for the tag patterns of proxy and control plane. */
export function statName(cluster: string): string {
  return `${cluster};`;
}

/** A secret that the agent always provides: Envoy waits for it without limit. */
export function requiredSecret(name: string): Json {
  return { name, sds_config: { ...secretSource, initial_fetch_timeout: '0s' } };
}

/** A secret that may be missing: Envoy waits up to 15 s, its default. */
export function optionalSecret(name: string): Json {
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
