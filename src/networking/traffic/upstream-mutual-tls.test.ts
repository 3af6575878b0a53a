import { describe, expect, it } from 'vitest';
import { type GivenMesh, givenMesh } from '../../../test/fixtures/given-mesh.ts';
import type { PeerModes } from '../../model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { automaticMutualTls, endpointsAsSecured } from './upstream-mutual-tls.ts';

function entry(entrySpec: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 8080 }, { number: 90, name: tcp, protocol: TCP }]
  endpoints:
    - { address: 10.0.0.1, labels: { app: web }, serviceAccount: web }
    - { address: 10.0.0.2, labels: { app: other }, serviceAccount: web }
    - { address: 10.0.0.3, labels: { app: web, security.istio.io/tlsMode: disabled } }
  ${entrySpec}
---`;
}

function policy(spec: string, namespace = 'shop'): string {
  return `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: p, namespace: ${namespace} }
spec: ${spec}
---`;
}

function all({ context }: GivenMesh): readonly Endpoint[] {
  return context.endpointsOf('web.test', 'shop');
}

/** Returns `ADDRESS:PORT` for the endpoints that accept mutual TLS. */
function taking(mesh: GivenMesh): string[] {
  return endpointsAsSecured(all(mesh), mesh.context)
    .filter(({ tlsMode }) => tlsMode === 'istio')
    .map(({ address, port }) => `${address}:${port}`)
    .sort();
}

describe('endpoints that clients reach with mutual TLS', () => {
  it("endpoints whose proxy accepts mutual TLS are marked, in the registry's list itself if no object disables mutual TLS", () => {
    const mesh = givenMesh(entry(''));
    expect(taking(mesh)).toEqual(['10.0.0.1:8080', '10.0.0.1:90', '10.0.0.2:8080', '10.0.0.2:90']);
    expect(endpointsAsSecured(all(mesh), mesh.context)).toBe(all(mesh));
  });

  it('workloads are not marked if they disable mutual TLS', () => {
    const yaml = entry('') + policy('{ selector: { matchLabels: { app: web } }, mtls: { mode: DISABLE } }');
    expect(taking(givenMesh(yaml))).toEqual(['10.0.0.2:8080', '10.0.0.2:90']);
  });

  it("ports are not marked if they disable mutual TLS, which applies to the workload's port number", () => {
    const yaml =
      entry('') +
      policy(
        '{ selector: { matchLabels: { app: web } }, portLevelMtls: { 8080: { mode: DISABLE }, 80: { mode: DISABLE } } }',
      );
    expect(taking(givenMesh(yaml))).toEqual(['10.0.0.1:90', '10.0.0.2:8080', '10.0.0.2:90']);
  });

  it('equal endpoints share one list in all contexts, and different endpoints have another list', () => {
    const mesh = givenMesh(entry(''));
    const { context } = mesh;
    /** A push context in which mutual TLS is disabled on these ports. */
    const offOn = (...ports: number[]): PushContext => {
      const modes: PeerModes = { mode: 'PERMISSIVE', ports: new Map(ports.map((port) => [port, 'DISABLE'])) };
      return { mesh: context.mesh, disablesMutualTls: true, peerModesFor: () => modes } as unknown as PushContext;
    };
    const secured = (push: PushContext): readonly Endpoint[] => endpointsAsSecured(all(mesh), push);
    const [first, same, other] = [secured(offOn(90)), secured(offOn(90)), secured(offOn(8080))];
    expect(same).toBe(first);
    const stillTaking = (list: readonly Endpoint[]): number[] => [
      ...new Set(list.filter(({ tlsMode }) => tlsMode === 'istio').map(({ port }) => port)),
    ];
    expect([first, other, secured(offOn(7))].map(stillTaking)).toEqual([[8080], [90], [8080, 90]]);
    expect(secured(offOn(7))).toBe(all(mesh));
  });
});

describe('automatic mutual TLS of a service', () => {
  const inferred = (mesh: GivenMesh, originalDestination = false): string =>
    automaticMutualTls(mesh.context.serviceFor('web.test', 'shop')!, originalDestination, mesh.context);

  it.each([
    ['is used for each endpoint that accepts it', '', 'by endpoint'],
    ['is used for each endpoint that accepts it in mode STRICT', policy('{ mtls: { mode: STRICT } }'), 'by endpoint'],
    ['is off if its namespace disables mutual TLS', policy('{ mtls: { mode: DISABLE } }'), 'never'],
    ['is off if the mesh disables mutual TLS', policy('{ mtls: { mode: DISABLE } }', 'istio-system'), 'never'],
    ['is on if another namespace disables mutual TLS', policy('{ mtls: { mode: DISABLE } }', 'other'), 'by endpoint'],
    [
      'is on if an object with a selector disables mutual TLS',
      policy('{ selector: { matchLabels: { app: web } }, mtls: { mode: DISABLE } }'),
      'by endpoint',
    ],
  ])('auto mTLS %s', (_, objects, expected) => {
    expect(inferred(givenMesh(entry('') + objects))).toBe(expected);
  });

  it('auto mTLS is off for services outside the mesh or if the mesh disables it', () => {
    expect(inferred(givenMesh(entry('').replace('MESH_INTERNAL', 'MESH_EXTERNAL')))).toBe('never');
    expect(inferred(givenMesh(entry(''), { meshConfig: 'enableAutoMtls: false' }))).toBe('never');
  });

  it('auto mTLS requires, for original destinations, that every endpoint accepts mutual TLS', () => {
    expect(inferred(givenMesh(entry('')), true)).toBe('never');
    const allTake = entry('').replace(', security.istio.io/tlsMode: disabled }', ' }, serviceAccount: web');
    expect(inferred(givenMesh(allTake), true)).toBe('always');
    expect(
      inferred(
        givenMesh(allTake + policy('{ selector: { matchLabels: { app: other } }, mtls: { mode: DISABLE } }')),
        true,
      ),
    ).toBe('never');
  });
});
