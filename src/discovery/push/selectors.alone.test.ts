/** The cost of objects that select one workload each is linear in the number of workloads. Operations are counted, not timed. */
import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';

const [smallCount, largeCount] = [20, 80];
/** Maximum growth exponent of the number of operations. */
const maxExponent = 1.2;
const services = 10;

const times = <T>(size: number, build: (index: number) => T): T[] =>
  Array.from({ length: size }, (_, index) => build(index));
const host = (index: number): string => `s${index % services}.test`;

function service(index: number): Config {
  return givenObject('ServiceEntry', 'a', `s${index}`, {
    hosts: [host(index)],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.1.0.${index}` }],
  });
}

/** A label shared by all workloads, and a unique one. */
const labels = (index: number): object => ({ team: 'all', app: `w${index}` });

/** An object for one workload, which differs for each `version`. */
type OwnObject = (index: number, version: number) => Config;

const clusterPatch = (seconds: number): object => ({
  applyTo: 'CLUSTER',
  match: { context: 'SIDECAR_OUTBOUND', cluster: { service: host(0) } },
  operation: 'MERGE',
  value: { connect_timeout: `${seconds}s` },
});

const kinds: Readonly<Record<string, OwnObject>> = {
  Sidecar: (index, version) =>
    givenObject('Sidecar', 'a', `o${index}`, {
      workloadSelector: { labels: labels(index) },
      egress: [{ hosts: [`./${host(index + version)}`], captureMode: 'DEFAULT' }],
    }),
  DestinationRule: (index, version) =>
    givenObject('DestinationRule', 'a', `o${index}`, {
      host: host(index),
      workloadSelector: { labels: labels(index) },
      trafficPolicy: { connectionPool: { http: { http2MaxRequests: version + 1 } } },
    }),
  EnvoyFilter: (index, version) =>
    givenObject('EnvoyFilter', 'a', `o${index}`, {
      workloadSelector: labels(index),
      priority: 0,
      configPatches: [clusterPatch(version + 1)],
    }),
  AuthorizationPolicy: (index, version) =>
    givenObject('AuthorizationPolicy', 'a', `o${index}`, {
      selector: labels(index),
      action: 'ALLOW',
      rules: [{ to: [{ paths: [`/${version}`] }] }],
    }),
  PeerAuthentication: (index, version) =>
    givenObject('PeerAuthentication', 'a', `o${index}`, {
      selector: labels(index),
      mtls: version === 0 ? 'STRICT' : 'PERMISSIVE',
    }),
  Gateway: (index, version) =>
    givenObject('Gateway', 'a', `o${index}`, {
      selector: labels(index),
      servers: [{ port: { number: 8000 + version, name: 'http', protocol: 'HTTP' }, hosts: [`h${index}.test`] }],
    }),
};

const types = [clusterType, endpointType, listenerType, routeType];

/** Each workload requests all resources, one object changes, and affected workloads request pushed types again. */
function serve(size: number, kind: string): void {
  const object = kinds[kind]!;
  const world = new GivenWorld([...times(services, service), ...times(size, (index) => object(index, 0))]);
  const type = kind === 'Gateway' ? 'router' : 'sidecar';
  const nodes = times(size, (index) =>
    world.connect(`10.9.${index >> 8}.${index & 255}`, {
      type,
      labels: labels(index),
      metadata: { ISTIO_VERSION: '1.28.0' },
    }),
  );
  const requestedNames = (one: string): readonly string[] | '*' => {
    if (one === routeType) return [type === 'router' ? 'http.8000' : '8080'];
    return one === endpointType ? times(services, (index) => `outbound|8080||${host(index)}`) : '*';
  };
  for (const node of nodes) for (const one of types) node.get(one, requestedNames(one));
  const change = world.put(object(0, 1));
  const affectedNodes = nodes.filter((node) => {
    const pushedTypes = node.typesToPush(change, types);
    for (const one of pushedTypes) node.get(one, requestedNames(one));
    return pushedTypes.length > 0;
  });
  expect(affectedNodes).toContain(nodes[0]);
}

describe('workloads and the objects that select them', () => {
  it.each(Object.keys(kinds))('have a linear total cost for %s', (kind) => {
    const { exponent, tooFast } = growthOfWork((size) => countedWork(() => serve(size, kind)), smallCount, largeCount);
    expect(tooFast).toEqual([]);
    expect(exponent).toBeLessThan(maxExponent);
  });
});
