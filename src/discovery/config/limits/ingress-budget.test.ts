import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { defaultMeshConfig, type MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { MeshConfigs } from '../snapshots/mesh-configs.ts';

const host = 'bank.test';
const ingress = (namespace: string, name: string, age: number, paths: number): string =>
  JSON.stringify({
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
    metadata: { name, namespace, creationTimestamp: `2026-01-01T00:00:${10 + age}Z` },
    spec: {
      rules: [
        {
          host,
          http: {
            paths: Array.from({ length: paths }, (_, index) => ({
              ...{ path: `/${name}/${index}`, pathType: 'Exact' },
              backend: { service: { name: 'web', port: { number: 80 } } },
            })),
          },
        },
      ],
    },
  });

/** Ingresses with a limit of ten paths per namespace. */
function createIngresses() {
  const folder = mkdtempSync(join(tmpdir(), 'ingresses-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const limits = { ...defaultConfigLimits, maxGatewayRoutesPerNamespace: 10 };
  let mesh: MeshConfig = { ...defaultMeshConfig, ingressControllerMode: 'DEFAULT' };
  const configs = new MeshConfigs({ mesh: () => mesh, domain: 'cluster.local', limits });
  return {
    changeMesh: () => {
      mesh = { ...mesh, ingressSelector: 'other' };
    },
    write: async (...objects: string[]) => {
      writeFileSync(join(folder, 'ingresses.yaml'), objects.join('\n---\n'));
      return await configs.read([folder]);
    },
    /** Effect of each Ingress: whether its paths have a backend, respond with 503, or are removed. */
    effects: (...names: string[]): Record<string, string> => {
      const services = configs.snapshot.set.VirtualService.map(({ spec }) => spec as VirtualService);
      const routes = services.filter(({ hosts }) => hosts.includes(host)).flatMap(({ http = [] }) => http);
      const effectOf = (name: string): string => {
        const matching = routes.filter(({ match }) => JSON.stringify(match).includes(`/${name}/`));
        const isClosed = matching.some(({ directResponse }) => directResponse?.status === 503);
        return matching.length === 0 ? 'none' : isClosed ? '503' : 'backend';
      };
      return Object.fromEntries(names.map((name) => [name, effectOf(name)]));
    },
  };
}

it('the oldest Ingresses of a namespace keep their paths, and paths of younger ones respond with 503 or are removed', async () => {
  const { write, effects, changeMesh } = createIngresses();
  const all = [ingress('mallory', 'c', 3, 9), ingress('mallory', 'b', 2, 9), ingress('mallory', 'a', 1, 9)];
  const configReading = await write(...all);
  const expected = { a: 'backend', b: '503', c: 'none' };
  expect(effects('a', 'b', 'c')).toEqual(expected);
  expect(configReading.problems.map(({ object, message }) => `${object} ${message}`).sort()).toEqual([
    expect.stringMatching(
      /^Ingress mallory\/b its paths respond with 503: .* 27 paths .* limit is 10 \(LIMIT_EXCEEDED\)/,
    ),
    expect.stringMatching(/^Ingress mallory\/c it is ignored/),
  ]);
  changeMesh();
  expect(effects('a', 'b', 'c')).toEqual(expected);
  await write(...all.slice(0, 2));
  expect(effects('a', 'b', 'c')).toEqual({ a: 'none', b: 'backend', c: '503' });
});

it('Ingresses that use a host of another namespace do not count against that namespace', async () => {
  const { write, effects } = createIngresses();
  const tenants = ['x', 'y', 'z'].map((name, index) => ingress('mallory', name, 5 + index, 9));
  await write(ingress('bank', 'front', 1, 9), ...tenants);
  expect(effects('front', 'x', 'y')).toEqual({ front: 'backend', x: 'backend', y: '503' });
});
