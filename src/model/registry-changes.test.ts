import { describe, expect, it } from 'vitest';
import { configKeyText } from './config.ts';
import { configEvents } from './config-changes.ts';
import { type GivenMesh, givenMesh } from './given-mesh.ts';
import { changedKeys, registryChanges } from './registry-changes.ts';

interface Entry {
  readonly host?: string;
  readonly resolution?: string;
  readonly port?: number;
  readonly more?: string;
}

const entry = (
  name: string,
  { host = `${name}.b`, resolution = 'STATIC', port = 80, more = '' }: Entry = {},
): string => `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, creationTimestamp: 2024-01-01T00:00:00Z}
spec:
  hosts: [${host}]
  resolution: ${resolution}
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  ${more}
`;

const workload = (address: string): string => `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w, namespace: shop, creationTimestamp: 2024-01-01T00:00:00Z}
spec: {address: ${address}, labels: {app: web}}
`;

const at = (address: string): string => `endpoints: [{address: ${address}}]`;

function changes(before: string, after: string): string[] {
  return registryChanges(givenMesh(before).registry, givenMesh(after).registry).map(configKeyText);
}

describe('changes of a service registry', () => {
  it('are none when nothing differs', () => {
    expect(changes(entry('a', { more: at('1.1.1.1') }), entry('a', { more: at('1.1.1.1') }))).toEqual([]);
  });

  it('are of endpoints only when only static endpoints differ', () => {
    expect(changes(entry('a', { more: at('1.1.1.1') }), entry('a', { more: at('2.2.2.2') }))).toEqual([
      'Endpoints/shop/a.b',
    ]);
  });

  it('are of the service when endpoints that DNS resolves differ: they are in the cluster', () => {
    const dns = (address: string): string => entry('a', { resolution: 'DNS', more: at(address) });
    expect(changes(dns('x.y'), dns('z.y'))).toEqual(['ServiceEntry/shop/a.b', 'ServiceEntry/shop/a']);
  });

  it.each([
    ['a new service', '', entry('a')],
    ['a service that went', entry('a'), ''],
    ['another port', entry('a'), entry('a', { port: 81 })],
  ])('are of the service and its object for %s', (_, before, after) => {
    expect(changes(before + entry('z'), after + entry('z'))).toEqual(['ServiceEntry/shop/a.b', 'ServiceEntry/shop/a']);
  });
});

describe('the keys of a push', () => {
  function keys(before: string, after: string): string[] {
    const [old, now] = [givenMesh(before), givenMesh(after)];
    const all = ({ file }: GivenMesh): GivenMesh['file']['configs'] => file.configs;
    return [...changedKeys(configEvents(all(old), all(now)), old.registry, now.registry)].map(configKeyText);
  }

  it('tell WorkloadEntries by the endpoints that they change', () => {
    const selecting = entry('a', { more: 'workloadSelector: {labels: {app: web}}' });
    expect(keys(selecting + workload('1.1.1.1'), selecting + workload('1.1.1.2'))).toEqual(['Endpoints/shop/a.b']);
    expect(keys(entry('a') + workload('1.1.1.1'), entry('a') + workload('1.1.1.2'))).toEqual([]);
  });

  it('tell other objects by their own names', () => {
    const rule = (subset: string): string =>
      `---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: r, namespace: shop}\nspec: {host: a.b, subsets: [{name: ${subset}}]}\n`;
    expect(keys(rule('v1'), rule('v2'))).toEqual(['DestinationRule/shop/r']);
  });

  it('tell a ServiceEntry whose selector changed, although no service differs', () => {
    const selecting = (app: string): string => entry('a', { more: `workloadSelector: {labels: {app: ${app}}}` });
    expect(keys(selecting('x'), selecting('y'))).toEqual(['ServiceEntry/shop/a']);
  });
});
