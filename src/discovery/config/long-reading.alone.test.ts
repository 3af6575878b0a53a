/**
 * While much is read the event loop has its turns: how long one lasts is counted in time of this thread on a processor,
 * which a busy machine does not lengthen.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { MeshConfigs } from './mesh-configs.ts';

let root: string;
let configs: MeshConfigs;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-long-'));
  configs = new MeshConfigs({ mesh: () => defaultMeshConfig, domain: 'cluster.local' });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const objects = 6_000;

/** A route of the same size each. */
const route = (name: string, timeout: string): string => `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.example.com]
  http: [{timeout: ${timeout}, route: [{destination: {host: ${name}.example.com}}]}]
`;

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

interface Measured<Result> {
  readonly result: Result;
  /** The longest turn. */
  readonly longestMs: number;
  readonly sumMs: number;
}

async function measured<Result>(work: () => Promise<Result>): Promise<Measured<Result>> {
  const turns: number[] = [];
  const over = { isIt: false };
  const watch = (async () => {
    for (let last = cpuMs(); !over.isIt; ) {
      await nextTurn();
      const now = cpuMs();
      turns.push(now - last);
      last = now;
    }
  })();
  const result = await work();
  over.isIt = true;
  await watch;
  turns.sort((a, b) => b - a);
  return { result, longestMs: turns[0] ?? 0, sumMs: turns.reduce((sum, ms) => sum + ms, 0) };
}

const source = (): string => `fs://${root}`;

async function readAndJoin(...paths: string[]) {
  const { objects: count, problems } = Object.assign(
    { objects: -1, problems: -1 },
    await configs.readSource(source(), paths),
  );
  const reading = await configs.join([source()]);
  return { count, problems, reading };
}

it('gives others their turn while a file with very many objects is read, put together, changed in all of them, and broken', async () => {
  const file = join(root, 'a.yaml');
  const write = (timeout: string): void =>
    writeFileSync(file, Array.from({ length: objects }, (_, i) => route(`r${i}`, timeout)).join('---\n'));
  await configs.join([]);
  const stages: Record<string, { longestMs: number; sumMs: number }> = {};
  for (const [stage, timeout] of Object.entries({
    come: '1s',
    change: '2s',
    break: 'soon',
    recover: '3s',
    wander: '4s',
  })) {
    write(timeout);
    const { result, ...figures } = await measured(() => readAndJoin());
    stages[stage] = figures;
    expect(result.count).toBe(objects);
    expect(result.problems).toBe(stage === 'break' ? objects : 0);
  }
  for (const [stage, { longestMs, sumMs }] of Object.entries(stages)) {
    // Ten milliseconds of some hundred; a machine is slow in all of them, and one turn may have memory collected.
    expect(longestMs, `${stage}: ${JSON.stringify(stages)}`).toBeLessThan(sumMs / 5);
  }
}, 120_000);

it('an edit of one file costs as much beside many files that are broken as beside few', async () => {
  const broken = Array.from({ length: objects }, (_, i) => route(`r${i}`, '1s')).join('---\n');
  writeFileSync(join(root, 'many.yaml'), broken);
  writeFileSync(join(root, 'one.yaml'), route('one', '1s'));
  await readAndJoin();
  writeFileSync(join(root, 'many.yaml'), broken.replaceAll('timeout: 1s', 'timeout: soon'));
  const all = await measured(() => readAndJoin());
  const edits: number[] = [];
  for (let i = 2; i < 12; i++) {
    writeFileSync(join(root, 'one.yaml'), route('one', `${i}s`));
    const { result, sumMs } = await measured(() => readAndJoin(join(root, 'one.yaml')));
    expect(result.reading).toMatchObject({ changes: [{ key: 'VirtualService/shop/one' }], problemCount: objects });
    edits.push(sumMs);
  }
  // A hundredth, and a floor for what a clock and a collection of memory add.
  expect(edits.sort((a, b) => a - b)[4]).toBeLessThan(Math.max(5, all.sumMs / 50));
}, 120_000);
