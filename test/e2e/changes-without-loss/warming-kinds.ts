/** Kinds of changes whose new clusters warm slowly (a late certificate, a slow health check), and an extension (ECDS). */
import { joinDocuments, secret } from '../features/harness/gateway-objects.ts';
import { destinationRule, object } from '../features/harness/objects.ts';
import { type ChangeKind, httpTo, kind, service, subset } from './change-kinds.ts';

/** Path at which the application responds to health checks after a delay. */
export const slowHealthPath = '/slow-health';

const extensionType = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
const managerName = 'envoy.filters.network.http_connection_manager';

/** Number of generations whose certificates are served. */
const maxKeptGenerations = 20;

const lateCertificate: ChangeKind = {
  ...kind('late-certificate', (host, generation, world) => {
    const name = `s${generation}`;
    const tls = { mode: 'SIMPLE', credentialName: `late-${generation}` };
    const rule = destinationRule(host, { subsets: [{ ...subset(name), trafficPolicy: { tls } }] });
    return joinDocuments(service(host, world), rule, httpTo(host, world, [{ host, subset: name }]));
  }),
  // A slow proxy still fetches certificates of earlier generations.
  late: (generation, { certificate, authority }) =>
    joinDocuments(
      ...Array.from({ length: Math.min(generation + 1, maxKeptGenerations) }, (_unused, index) =>
        secret(`late-${generation - index}`, certificate, { 'ca.crt': authority }),
      ),
    ),
  proxies: 'gateway',
};

const healthCheck: ChangeKind = kind('health-check', (host, generation, world) => {
  const name = `s${generation}`;
  const check = {
    // On a busy machine the application responds late.
    timeout: '60s',
    interval: '60s',
    no_traffic_interval: '60s',
    unhealthy_threshold: 3,
    healthy_threshold: 1,
    http_health_check: { path: slowHealthPath },
  };
  const patch = { operation: 'MERGE', value: { health_checks: [check] } };
  return joinDocuments(
    service(host, world),
    destinationRule(host, { subsets: [subset(name)] }),
    httpTo(host, world, [{ host, subset: name }]),
    object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'health-check', {
      configPatches: [{ applyTo: 'CLUSTER', match: { cluster: { service: host } }, patch }],
    }),
  );
});

/** Envoy requests the configuration of a filter by name; it names the next cluster. */
const extensionNamed = (kindName: string, nameOf: (generation: number) => string): ChangeKind => ({
  ...kind(kindName, (_host, generation, world) => {
    const extensionName = nameOf(generation);
    const name = `${kindName}-${generation}`;
    const address = { socket_address: { address: 'localhost', port_value: world.mirror } };
    const cluster = {
      name,
      type: 'STRICT_DNS',
      dns_lookup_family: 'V4_ONLY',
      connect_timeout: '1s',
      load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    };
    const config = {
      '@type': extensionType,
      transport_api_version: 'V3',
      http_service: { server_uri: { uri: 'http://extension.test', cluster: name, timeout: '20s' } },
    };
    const source = { ads: {}, resource_api_version: 'V3' };
    const filter = {
      name: extensionName,
      config_discovery: { config_source: source, type_urls: [extensionType] },
    };
    const context = 'SIDECAR_INBOUND';
    return object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', kindName, {
      configPatches: [
        { applyTo: 'CLUSTER', match: { context }, patch: { operation: 'ADD', value: cluster } },
        {
          applyTo: 'HTTP_FILTER',
          match: { context, listener: { filterChain: { filter: { name: managerName } } } },
          patch: { operation: 'INSERT_FIRST', value: filter },
        },
        {
          applyTo: 'EXTENSION_CONFIG',
          patch: { operation: 'ADD', value: { name: extensionName, typed_config: config } },
        },
      ],
    });
  }),
  proxies: 'inbound',
  // DNS resolves the name in less than a millisecond.
  isLossy: false,
});

const extension = extensionNamed('extension', () => 'shop.extension');

/** The filter's name changes in each generation; the replaced listener still fetches the previous one. */
export const extensionRenamed = extensionNamed('extension-renamed', (generation) => `shop.extension-${generation}`);

export const warmingKinds: readonly ChangeKind[] = [lateCertificate, healthCheck, extension];
