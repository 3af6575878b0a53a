/** Addresses in Envoy's bootstrap, as v3 API JSON. */

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
