/** Labels and versions that clients report (up to 512 KiB each) must be garbage-collectable with the client. */
import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { patchSetOf } from '../../networking/patches/patch-set.ts';

const mesh = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: istio-system }
spec: { mtls: { mode: STRICT } }
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: versions, namespace: istio-system }
spec:
  configPatches:
    - { applyTo: CLUSTER, match: { proxy: { proxyVersion: '^1\\.2.*' } }, patch: { operation: REMOVE } }
    - { applyTo: LISTENER, match: { proxy: { proxyVersion: '^1\\.2[12].*' } }, patch: { operation: REMOVE } }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: door, namespace: istio-system }
spec:
  selector: { app: door }
  servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }]
`;

const characters = 50_000;
const clients = 400;

it.each(['sidecar', 'router'] as const)(
  'the labels and versions of a %s are garbage-collected with the client',
  async (type) => {
    const { context } = givenMesh(mesh);
    const connect = (i: number): void => {
      const label = `${i}-`.padEnd(characters, 'x');
      const labels = { app: 'door', note: label };
      const shape = givenShape(
        { type, namespace: 'shop', labels, metadata: { ISTIO_VERSION: `1.20.${label}` } },
        context,
      );
      context.policiesFor(shape);
      context.gatewaysFor(shape);
      patchSetOf(shape, context);
    };
    connect(0);
    await collectGarbage();
    const heapBefore = process.memoryUsage().heapUsed;
    for (let i = 1; i <= clients; i++) connect(i);
    // A quarter of the size of all texts, because background compilation delays their collection.
    const maxGrownBytes = (clients * characters) / 4;
    await eventually('labels and versions are collected', async () => {
      await collectGarbage();
      return process.memoryUsage().heapUsed - heapBefore < maxGrownBytes;
    });
  },
);

it('proxies whose versions match the same patches share one set of patches', () => {
  const { context } = givenMesh(mesh);
  const setOf = (version: string) =>
    patchSetOf(givenShape({ namespace: 'shop', metadata: { ISTIO_VERSION: version } }, context), context);
  const sets = ['1.20.1', '1.20.7', '1.21.0', '1.22.3', '1.19.0', 'none'].map(setOf);
  expect(sets[0]).toBe(sets[1]);
  expect(sets[2]).toBe(sets[3]);
  expect(sets[4]).toBe(sets[5]);
  expect(new Set(sets).size).toBe(3);
});
