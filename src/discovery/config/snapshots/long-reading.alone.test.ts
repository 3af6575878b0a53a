/** Long reads yield to the event loop. The duration of each step is measured as CPU time of the thread, because a busy machine does not affect it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { measuredTurns } from '../../../../test/harness/longest-turn.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { MeshConfigs } from './mesh-configs.ts';

let root: string;
let configs: MeshConfigs;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-long-'));
  configs = new MeshConfigs({ mesh: () => defaultMeshConfig, domain: 'cluster.local' });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const objects = 6_000;

/** All routes have the same size. */
const route = (name: string, timeout: string): string => `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.example.com]
  http: [{timeout: ${timeout}, route: [{destination: {host: ${name}.example.com}}]}]
`;

const source = (): string => `fs://${root}`;

async function readAndJoin(...paths: string[]) {
  const { objects: count, problems } = Object.assign(
    { objects: -1, problems: -1 },
    await configs.readSource(source(), paths),
  );
  const configReading = await configs.join([source()]);
  return { count, problems, reading: configReading };
}

it('other work proceeds while a very large file is read, merged, changed and made invalid', async () => {
  const file = join(root, 'a.yaml');
  const write = (timeout: string): void =>
    writeFileSync(file, Array.from({ length: objects }, (_, i) => route(`r${i}`, timeout)).join('---\n'));
  await configs.join([]);
  const stages: Record<string, { maxMs: number; sumMs: number }> = {};
  for (const [stage, timeout] of Object.entries({
    come: '1s',
    change: '2s',
    break: 'soon',
    recover: '3s',
    wander: '4s',
  })) {
    write(timeout);
    const { result, maxMs, sumMs } = await measuredTurns(() => readAndJoin());
    stages[stage] = { maxMs, sumMs };
    expect(result.count).toBe(objects);
    expect(result.problems).toBe(stage === 'break' ? objects : 0);
  }
  for (const [stage, { maxMs, sumMs }] of Object.entries(stages)) {
    // A step takes about 10 ms of some hundred in total, and may include a garbage collection.
    expect(maxMs, `${stage}: ${JSON.stringify(stages)}`).toBeLessThan(sumMs / 5);
  }
});

it('a file change costs the same with many other invalid files as with few', async () => {
  const invalidRoutes = Array.from({ length: objects }, (_, i) => route(`r${i}`, '1s')).join('---\n');
  writeFileSync(join(root, 'many.yaml'), invalidRoutes);
  writeFileSync(join(root, 'one.yaml'), route('one', '1s'));
  await readAndJoin();
  writeFileSync(join(root, 'many.yaml'), invalidRoutes.replaceAll('timeout: 1s', 'timeout: soon'));
  const all = await measuredTurns(() => readAndJoin());
  const edits: number[] = [];
  for (let i = 2; i < 12; i++) {
    writeFileSync(join(root, 'one.yaml'), route('one', `${i}s`));
    const { result, sumMs } = await measuredTurns(() => readAndJoin(join(root, 'one.yaml')));
    expect(result.reading).toMatchObject({ changes: [{ key: 'VirtualService/shop/one' }], problemCount: objects });
    edits.push(sumMs);
  }
  // An edit takes about a hundredth of a full read. The minimum allows for clock resolution and garbage collection.
  expect(edits.sort((a, b) => a - b)[4]).toBeLessThan(Math.max(5, all.sumMs / 50));
});

const kinds: Readonly<Record<string, (index: number, timeout: string) => string>> = {
  Ingress: (index, timeout) => `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i${index}, namespace: shop, annotations: {kubernetes.io/ingress.class: istio, said: ${timeout}}}
spec:
  rules: [{host: h${index}.example.com, http: {paths: [{path: /${timeout}, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`,
  HTTPRoute: (index, timeout) => `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r${index}, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [h${index}.example.com]
  rules: [{matches: [{path: {type: PathPrefix, value: /${timeout}}}], backendRefs: [{name: web, port: 80}]}]
`,
};

const gateway = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
`;

it.each(Object.keys(kinds))(
  'other work proceeds while very many %s objects generate others, and the result applies as a whole',
  async (kind) => {
    const file = join(root, 'a.yaml');
    writeFileSync(join(root, 'gateway.yaml'), gateway);
    const write = (timeout: string): void =>
      writeFileSync(file, Array.from({ length: 3_000 }, (_, i) => kinds[kind]!(i, timeout)).join('---\n'));
    const generatedCounts: Record<string, number> = {};
    for (const timeout of ['1s', '2s', '3s']) {
      write(timeout);
      expect(await configs.readSource(source(), [])).toMatchObject({ problems: 0 });
      // Each step must see all VirtualServices with one timeout, never a mixture.
      const seenTimeouts = new Set<string>();
      const { maxMs: turnMs, sumMs } = await measuredTurns(
        () => configs.join([source()]),
        () => {
          const { VirtualService } = configs.snapshot.set;
          const [first, last] = [VirtualService[0], VirtualService.at(-1)].map((one) => JSON.stringify(one?.spec));
          const isNew = (text: string | undefined): boolean => text?.includes(timeout) ?? false;
          seenTimeouts.add(`${VirtualService.length} ${isNew(first)} ${isNew(last)}`);
        },
      );
      const previous = timeout === '1s' ? '0 false false' : '3000 false false';
      expect([...seenTimeouts]).toEqual([previous, '3000 true true']);
      // While the first one is read, the heap grows: a garbage collection takes as long as several steps.
      if (timeout !== '1s') expect(turnMs, `${timeout}: ${turnMs} of ${sumMs} ms`).toBeLessThan(sumMs / 4);
      generatedCounts[timeout] = configs.snapshot.set.VirtualService.length;
    }
    expect(generatedCounts).toEqual({ '1s': 3_000, '2s': 3_000, '3s': 3_000 });
  },
);
