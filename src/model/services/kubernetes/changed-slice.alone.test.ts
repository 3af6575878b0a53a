/** Counts calls and elements that are processed for a changed slice. */
import { expect, it } from 'vitest';
import { type CountedWork, countedWork, sumOf } from '../../../../test/harness/counted-work.ts';
import { decodedObject } from '../../../discovery/kubernetes/readers/decoded-object.ts';
import type { Config } from '../../config/config.ts';
import type { KindName } from '../../kinds/index.ts';
import { defaultRegistryOptions } from '../service-registry.ts';
import { KubernetesServices } from './kubernetes-services.ts';

const pods = 50;
const namespace = 'shop';
const metadata = (name: string, overrides: object = {}) => ({
  name,
  namespace,
  uid: name,
  resourceVersion: '1',
  ...overrides,
});

function decodedConfig(kind: KindName, object: object): Config {
  const apiVersion = kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1';
  return decodedObject('k8s://services', kind, { apiVersion, kind, ...object } as never).config!;
}

const slice = (notReady: number): object => ({
  metadata: metadata('web-1', { labels: { 'kubernetes.io/service-name': 'web' } }),
  ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 8080 }] },
  endpoints: Array.from({ length: pods }, (_, pod) => ({
    ...{ addresses: [`10.0.0.${pod}`], conditions: { ready: pod !== notReady } },
    targetRef: { kind: 'Pod', name: `web-${pod}`, namespace },
  })),
});

function cluster(): KubernetesServices {
  const services = new KubernetesServices({ ...defaultRegistryOptions, discoverySelectors: [] });
  const apply = (kind: KindName, object: object): void => {
    const current = decodedConfig(kind, object);
    services.apply([{ key: { kind, namespace, name: current.name }, current }]);
  };
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }];
  apply('Service', { metadata: metadata('web'), spec: { clusterIP: '10.9.0.1', selector: { app: 'web' }, ports } });
  for (let pod = 0; pod < pods; pod++) {
    const spec = { nodeName: 'n1', containers: [{ ports: [{ containerPort: 8080 }] }] };
    const status = { phase: 'Running', podIP: `10.0.0.${pod}` };
    apply('Pod', { metadata: metadata(`web-${pod}`, { labels: { app: 'web' } }), spec, status });
  }
  apply('EndpointSlice', slice(-1));
  return services;
}

const events = 10;

const callsOf = (work: CountedWork, pattern: RegExp): number =>
  [...work].reduce((sum, [name, count]) => sum + (pattern.test(name) ? count : 0), 0);

it('a changed slice causes no conversion of Services, and keeps the selector index', () => {
  const services = cluster();
  const slices = Array.from({ length: events }, (_, event) => decodedConfig('EndpointSlice', slice(event)));
  const key = { kind: 'EndpointSlice', namespace, name: 'web-1' } as const;
  const work = countedWork(() => {
    for (const current of slices) services.apply([{ key, current }]);
  });
  expect(callsOf(work, /^sliceEndpoints /)).toBe(events);
  expect(callsOf(work, /^convertService /)).toBe(0);
  expect(callsOf(work, / src\/model\/services\/label-match\.ts/)).toBe(0);
});

it('a changed Service is converted, and its new selector applies', () => {
  const services = cluster();
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }];
  const spec = { clusterIP: '10.9.0.2', selector: { app: 'other' }, ports };
  const current = decodedConfig('Service', { metadata: metadata('web'), spec });
  services.apply([{ key: { kind: 'Service', namespace, name: 'web' }, current }]);
  expect([...services.services()].map(({ defaultAddress }) => defaultAddress)).toEqual(['10.9.0.2']);
  const { lookup } = services;
  const proxy = {
    type: 'sidecar',
    clusterId: defaultRegistryOptions.clusterId,
    configNamespace: namespace,
    ipAddresses: [],
    metadata: {},
  } as const;
  const targetsOf = (app: string) => lookup.targetsOf({ ...proxy, name: 'x', labels: { app } } as never);
  expect([targetsOf('web'), targetsOf('other')].map(({ length }) => length)).toEqual([0, 1]);
});

/** Maximum per endpoint; 67 were measured, and 98 with a decoder that copies its input. */
const maxWorkOfEndpoint = 80;

it('decoding a slice requires a limited number of calls and elements per endpoint', () => {
  const work = countedWork(() => {
    for (let event = 0; event < events; event++) decodedConfig('EndpointSlice', slice(event));
  });
  expect(sumOf(work) / events / pods).toBeLessThan(maxWorkOfEndpoint);
});
