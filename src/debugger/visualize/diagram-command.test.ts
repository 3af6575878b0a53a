import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { discoveryMachine } from '../../../machines/discovery/discovery.machine.ts';
import { tangledMachine } from '../../../test/fixtures/tangled-machine.ts';
import { headerWith } from '../../../test/fixtures/trace-header.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { machinesOf, type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import { formatTraceLine } from '../../runtime/trace/trace.ts';
import { namedMachines } from '../statechart/named-machines.ts';
import { type DiagramCommandOptions, drawDiagram } from './diagram-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-diagram-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function printDiagram(machine?: string, options: Partial<DiagramCommandOptions> = {}): Promise<string> {
  let printedText = '';
  const output = {
    out: (text: string) => {
      printedText += text;
    },
    error: () => {},
  };
  await drawDiagram(machine, { format: 'mermaid', ...options }, output);
  return printedText;
}

function traceOf(...machines: Statechart[]): string {
  const file = join(folder, `${machines.map(({ id }) => id).join('-')}.trace`);
  writeFileSync(file, formatTraceLine(headerWith({ program: 'pilot-agent', machines })));
  return file;
}

describe('chartpilot diagram', () => {
  test('lists the machines of both programs with their files', async () => {
    const lines = (await printDiagram()).trimEnd().split('\n');
    expect(lines.map((line) => line.split(/ +/)[0])).toEqual(namedMachines.map(({ name }) => name));
    for (const line of lines) expect(existsSync(join(packageRoot(), line.split(/ +/)[1]!)), line).toBe(true);
  });

  test('accepts a name for every machine of the programs', () => {
    const ids = [...machinesOf(agentMachine), ...machinesOf(discoveryMachine)].map(({ id }) => id);
    expect(namedMachines.map(({ name }) => name)).toEqual(expect.arrayContaining(ids));
  });

  test('prints a machine as mermaid, SVG, or JSON', async () => {
    expect(await printDiagram('start-limiter')).toMatch(/^stateDiagram-v2\n/);
    expect(await printDiagram('start-limiter', { format: 'svg' })).toMatch(/^<svg .*data-machine="start-limiter"/);
    const { load } = namedMachines.find(({ name }) => name === 'start-limiter')!;
    expect(JSON.parse(await printDiagram('start-limiter', { format: 'json' }))).toEqual(statechartOf(await load()));
  });

  test('writes to a file and creates its folder', async () => {
    const output = join(folder, 'deep/er/push.mmd');
    expect(await printDiagram('push', { output })).toBe('');
    expect(readFileSync(output, 'utf8')).toBe(await printDiagram('push'));
  });

  test("draws a machine of a user's module", async () => {
    const module = join(packageRoot(), 'examples/generate/reservation.machine.ts');
    expect(await printDiagram(module)).toMatch(/^stateDiagram-v2\n/);
    await expect(printDiagram(module, { export: 'nothing' })).rejects.toMatchObject({ code: 'FLAG_INVALID' });
  });

  test('draws a machine with its definition in a trace', async () => {
    const olderChart: Statechart = { id: 'epoch', states: [{ path: '', type: 'atomic' }], transitions: [] };
    const from = traceOf(olderChart, { ...olderChart, id: 'of-another-release' });
    expect(await printDiagram(undefined, { from })).toBe('epoch\nof-another-release\n');
    expect(JSON.parse(await printDiagram('epoch', { from, format: 'json' }))).toEqual(olderChart);
    await expect(printDiagram('push', { from })).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      hint: 'machines of the trace: epoch, of-another-release',
    });
  });

  test("rejects a trace's machine that is too large to draw, and still prints its definition", async () => {
    const from = traceOf(tangledMachine('giant', 501, 1));
    for (const format of ['svg', 'mermaid', 'table'] as const) {
      await expect(printDiagram('giant', { from, format })).rejects.toMatchObject({ code: 'NOT_DRAWN' });
    }
    expect(JSON.parse(await printDiagram('giant', { from, format: 'json' }))).toMatchObject({ id: 'giant' });
  });

  test('lists the known names for an unknown one', async () => {
    await expect(printDiagram('supervisr')).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      hint: expect.stringContaining('ads-connection'),
    });
  });

  test('opens the page with the machine without a run', async () => {
    let address = '';
    let markSeen: () => void = () => {};
    const pageSeen = new Promise<void>((resolve) => {
      markSeen = resolve;
    });
    const addressPrinted = new Promise<void>((resolve) => {
      const output = {
        out: (text: string) => {
          address = text.trim();
          resolve();
        },
        error: () => {},
      };
      void drawDiagram('status', { format: 'mermaid', open: true, browser: false, enough: pageSeen }, output);
    });
    await addressPrinted;
    const trace = await (await fetch(new URL('trace/0', address))).text();
    expect(JSON.parse(trace)).toMatchObject({ kind: 'header', program: 'diagram', machines: [{ id: 'status' }] });
    const session = (await (await fetch(new URL('session/0.json', address))).json()) as { charts: object };
    expect(Object.keys(session.charts)).toEqual(['status']);
    markSeen();
  });
});
