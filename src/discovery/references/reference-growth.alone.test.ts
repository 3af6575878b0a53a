/** The cost of checks per object must not grow with the mesh. Operations are counted, not timed. */
import { expect, it } from 'vitest';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import { defaultFeatures } from '../../model/mesh/features.ts';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { buildPushContext } from '../../model/push-context/build-push-context.ts';
import { buildServiceRegistry } from '../../model/services/service-registry.ts';
import { findConfigWarnings } from './find-config-warnings.ts';
import { ObjectsOfFiles } from './known-objects.ts';

const [smallCount, largeCount] = [100, 400];
/** Maximum exponent of the growth of counted operations. */
const maxExponent = 1.2;

const mesh = {
  ...defaultMeshConfig,
  extensionProviders: [{ name: 'one', zipkin: { service: 'one.test', port: 1 } }],
};

const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }];
const entry = (index: number, extraSpec: object = {}): Config =>
  givenObject('ServiceEntry', 'shop', `s${index}`, {
    ...{ hosts: [`s${index}.test`], location: 'MESH_INTERNAL', resolution: 'STATIC', ports },
    endpoints: [{ address: '10.1.0.1', labels: { version: `v${index}` }, network: `n${index % 3}` }],
    ...extraSpec,
  });
const to = (index: number, extraDestination: object = {}): object => ({
  route: [{ destination: { host: `s${index}.test`, ...extraDestination } }],
});
const routes = (index: number, spec: object): Config => givenObject('VirtualService', 'shop', `v${index}`, spec);
const rule = (index: number, spec: object): Config => givenObject('DestinationRule', 'shop', `r${index}`, spec);
const peers = (index: number, spec: object): Config => givenObject('PeerAuthentication', 'shop', `p${index}`, spec);

function service(index: number): Config {
  const clusterIP = `10.2.${index >> 8}.${index & 255}`;
  const servicePorts = [{ name: '', port: 8000, protocol: 'TCP', targetPort: 9080 }];
  return givenObject('Service', 'shop', `k${index}`, {
    spec: {
      ...{
        type: 'ClusterIP',
        clusterIP,
        clusterIPs: [clusterIP],
        ports: servicePorts,
        externalName: '',
        externalIPs: [],
      },
      ...{ selector: { all: 'same', app: `a${index}` }, internalTrafficPolicy: 'Cluster' },
    },
    status: { loadBalancer: { ingress: [] } },
  });
}

/** Objects by number, each with an error that one tenant can repeat. */
const cases: readonly (readonly [what: string, objectsOf: (index: number, size: number) => readonly Config[]])[] = [
  [
    'services with one route, rule and policy each',
    (index) => [
      entry(index),
      routes(index, { hosts: [`s${index}.test`], http: [to(index, { subset: `v${index}` })] }),
      rule(index, { host: `s${index}.test`, subsets: [{ name: `v${index}`, labels: { version: `v${index}` } }] }),
      peers(index, { selector: { app: `a${index}` }, mtls: 'STRICT' }),
    ],
  ],
  [
    'references to missing objects',
    (index) => [
      entry(index),
      routes(index, { hosts: ['x.test'], gateways: ['none'], http: [to(-1), { delegate: { name: 'none' } }] }),
    ],
  ],
  [
    'rules and routes for one host',
    (index) => [
      ...(index === 0 ? [entry(0)] : []),
      routes(index, { hosts: ['s0.test'], http: [to(0, { subset: 'none' })] }),
      rule(index, {
        ...{ host: 's0.test', subsets: [{ name: 'same', labels: { version: `w${index}` } }] },
        trafficPolicy: { outlierDetection: { interval: '1s' }, tls: { mode: 'DISABLE' } },
      }),
    ],
  ],
  [
    'a VirtualService whose matches contain the prefixes of others',
    (index, size) =>
      index > 0
        ? []
        : [
            entry(0),
            routes(0, {
              hosts: ['s0.test'],
              http: Array.from({ length: size }, (_, at) => ({
                match: [{ uri: { prefix: `/p${at}` }, method: { exact: 'GET' } }],
                ...to(0),
              })),
            }),
          ],
  ],
  [
    'servers and services at one address',
    (index) => [
      entry(index, { addresses: ['10.9.0.1'], ports: [{ number: 443, name: 'tls', protocol: 'TLS' }] }),
      givenObject('Gateway', 'shop', `g${index}`, {
        selector: { istio: 'edge' },
        servers: [
          {
            port: { number: 443, name: `h${index}`, protocol: 'HTTPS' },
            hosts: [`h${index}.test`],
            tls: { mode: 'SIMPLE', credentialName: 'one' },
          },
        ],
      }),
    ],
  ],
  [
    'rules of one wildcard, and Sidecars that import it',
    (index) => [
      entry(index, { exportTo: ['.'] }),
      rule(index, { host: '*.test', trafficPolicy: { tls: { mode: 'DISABLE' } } }),
      givenObject('Sidecar', 'other', `i${index}`, {
        egress: [{ captureMode: 'DEFAULT', hosts: ['shop/*.test', '*/*.test', `n${index}/*.test`, 'shop/s0.test'] }],
      }),
    ],
  ],
  [
    'routes of servers and services of another protocol',
    (index) => [
      entry(index, { ports: [{ number: 9000, name: 'tcp', protocol: 'TCP' }] }),
      routes(index, { hosts: [`s${index}.test`], http: [to(index)] }),
    ],
  ],
  [
    'targets and providers that do not exist',
    (index) => [
      entry(index),
      ...(index === 0 ? [entry(-1, { hosts: ['one.test'] })] : []),
      givenObject('Telemetry', 'shop', `t${index}`, {
        targetRefs: [{ group: 'networking.istio.io', kind: 'Gateway', name: `none${index}` }],
        tracing: [{ providers: ['one', 'none'] }],
      }),
    ],
  ],
  [
    'policies and Services with one label',
    (index) => [
      service(index),
      givenObject('Pod', 'shop', `k${index}`, {
        spec: { nodeName: '', serviceAccountName: 'a', containers: [], initContainers: [] },
        status: { phase: 'Running', podIP: '', podIPs: [], conditions: [] },
      }),
      peers(index, {
        selector: { all: 'same', x: `a${index}` },
        portLevelMtls: { 8000: 'STRICT' },
      }),
    ],
  ],
];

it.each(cases)('the cost of reference checks grows linearly with the number of objects: %s', (_, objectsOf) => {
  const growth = growthOfWork(
    (size) => {
      const objects = Array.from({ length: size }, (_, index) => objectsOf(index, size)).flat();
      const configs = configSetOf(objects);
      const contextFields = { version: '1', mesh, domain: 'cluster.local', features: defaultFeatures };
      const context = buildPushContext({ ...contextFields, configs, ...buildServiceRegistry(configs) });
      const knownObjects = new ObjectsOfFiles(configs, true);
      // Excludes what the push context computes on first use from the measurement.
      Array.from(findConfigWarnings(context, configs, knownObjects));
      return countedWork(() => void Array.from(findConfigWarnings(context, configs, knownObjects)));
    },
    smallCount,
    largeCount,
    maxExponent,
  );
  expect(growth.tooFast).toEqual([]);
  expect(growth.exponent).toBeLessThan(maxExponent);
});
