import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatTraceLine, type TraceLine } from '../../src/runtime/trace/trace.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

beforeAll(async () => {
  mesh = await startMesh({ sidecar: false });
  await mesh.gateway!.program.stop();
});

afterAll(() => conclude(mesh));

test('chartpilot check accepts the trace of a real run, and names the record of a message that is out of order', async () => {
  const lines = readFileSync(mesh.gateway!.traceFile, 'utf8').trimEnd().split('\n');
  const trace = lines.map((line) => JSON.parse(line) as TraceLine);
  const indexOf = (type: string): number =>
    trace.findIndex((line) => line.kind === 'event' && line.event.type === type);
  const [startedIndex, live] = [indexOf('epoch.started'), indexOf('epoch.live')];
  expect((await checkTraces([mesh.gateway!.traceFile])).code).toBe(0);

  // Epoch 0 reports that it is live before it reports its start; record numbers and times stay in order.
  const swapped = trace.map((line, index) => {
    const other = index === startedIndex ? trace[live]! : index === live ? trace[startedIndex]! : undefined;
    return other === undefined || line.kind === 'header' ? line : { ...other, seq: line.seq, t: line.t };
  });
  const file = join(mesh.root, 'swapped.trace.ndjson');
  writeFileSync(file, (swapped as TraceLine[]).map(formatTraceLine).join(''));
  const { code, output } = await checkTraces([file]);
  expect(code).toBe(1);
  expect(output).toContain('epoch.live');
  expect(output).toMatch(/startup\.mmd|epoch\.mmd/);
});
