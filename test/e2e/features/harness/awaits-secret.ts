import { object } from './objects.ts';

/** An EnvoyFilter for gateways: the cluster waits without a time limit for a secret that does not exist. */
export const awaitsSecret = (cluster: string): string =>
  object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'secret', {
    configPatches: [
      {
        applyTo: 'CLUSTER',
        match: { context: 'GATEWAY', cluster: { name: cluster } },
        patch: {
          operation: 'MERGE',
          value: {
            transport_socket: {
              name: 'envoy.transport_sockets.tls',
              typed_config: {
                '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
                common_tls_context: {
                  tls_certificate_sds_secret_configs: [
                    {
                      name: 'kubernetes://missing',
                      sds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' },
                    },
                  ],
                },
              },
            },
          },
        },
      },
    ],
  });
