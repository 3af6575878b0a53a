/** A minimal bootstrap for an Envoy that gets its configuration over ADS, like the one that an agent writes. */
export interface AdsBootstrap {
  readonly node: { readonly id: string; readonly cluster: string; readonly metadata: object };
  /** Port of the control plane's xDS server, at loopback. */
  readonly xdsPort: number;
  readonly adminPort: number;
  readonly delta: boolean;
}

export function adsBootstrap({ node, xdsPort, adminPort, delta }: AdsBootstrap): object {
  const address = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  const ads = { ads: {}, resource_api_version: 'V3' };
  return {
    node,
    admin: { address: address(adminPort) },
    dynamic_resources: {
      lds_config: ads,
      cds_config: ads,
      ads_config: {
        api_type: delta ? 'DELTA_GRPC' : 'GRPC',
        transport_api_version: 'V3',
        grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
      },
    },
    static_resources: {
      clusters: [
        {
          name: 'xds',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'xds',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(xdsPort) } }] }],
          },
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        },
      ],
    },
  };
}
