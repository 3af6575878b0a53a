/** The examples of this repository, as files that the control plane reads, in real Envoys. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';

const folder = join(packageRoot(), 'examples/mesh');
let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      gateway: { type: 'router', namespace: 'demo', labels: { istio: 'ingressgateway' } },
      sidecar: { namespace: 'demo', labels: { app: 'sample', version: 'v1' }, ip: '127.0.0.1' },
    },
  });
});

afterAll(() => mesh?.stop());

test('every Envoy accepts the example mesh, and requests pass through the mesh', async () => {
  const [v1, v2] = [await mesh.http('v1'), await mesh.http('v2')];
  const [http, https, inbound, outbound] = (await freePorts(4)) as [number, number, number, number];
  const { certificate, privateKey } = mesh.authority.issue(['sample.localhost']);
  const replacements: readonly (readonly [string, string | number])[] = [
    ['18080', http],
    ['18443', https],
    ['19101', inbound],
    ['19080', outbound],
    ['19001', v1.port],
    ['19002', v2.port],
    ['/etc/istio/ingressgateway-certs/tls.crt', mesh.file('tls.crt', certificate)],
    ['/etc/istio/ingressgateway-certs/tls.key', mesh.file('tls.key', privateKey)],
  ];
  const files = readdirSync(folder).map((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    return [name, replacements.reduce((result, [from, to]) => result.replaceAll(from, String(to)), text)] as const;
  });
  expect(files.length).toBeGreaterThan(3);
  await mesh.apply(Object.fromEntries(files));
  const host = 'sample.localhost';
  const tls = { servername: host, ca: mesh.authority.certificate };
  for (const response of [
    await mesh.request('gateway', { port: http, host }),
    await mesh.request('gateway', { port: https, host, tls }),
    await mesh.request('sidecar', { port: outbound, host }),
    await mesh.request('sidecar', { port: inbound, host, inbound: true }),
  ]) {
    expect(['v1', 'v2']).toContain(response.seen.backend);
  }
});
