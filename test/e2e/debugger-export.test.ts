/** Each export of the page is read by a program for its format. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkTraces } from '../../src/debugger/check/check-command.ts';
import { parseDiagram } from '../../src/debugger/diagram/parse.ts';
import { fileSource } from '../../src/debugger/visualize/file-source.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceHeader, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { traceFile } from '../../src/runtime/trace/trace-file.ts';
import { TraceState } from '../../src/runtime/trace/trace-state.ts';
import { launchBrowser, type OpenedPage, openPage } from '../browser/open-page.ts';
import { shownRecordCount, waitUntilOpened } from '../browser/page-state.ts';
import type { Schedule } from '../simulation/random-schedule.ts';
import { writeRandomTrace } from '../simulation/random-search.ts';

const schedule: Schedule = {
  settings: 'short times',
  startConditions: 'in order',
  durationSeed: 0,
  ending: 'in peace',
  steps: [
    { gap: { ms: 5_000 }, scheduledEvent: { kind: 'certificate' } },
    { gap: { ms: 20_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
  ],
};
/** Numbers of the exported records. */
const range = [120, 200] as const;

let folder: string;
let trace: string;
let browser: Browser;
let openedPage: OpenedPage;
let page: Page;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-export-'));
  trace = join(folder, 'agent.trace');
  writeRandomTrace(schedule, traceFile(trace));
  browser = await launchBrowser();
  openedPage = await openPage(browser, [fileSource(trace)], {
    hash: `#source=0&record=150&actor=supervisor&range=${range.join('-')}`,
  });
  page = openedPage.page;
  await waitUntilOpened(page);
});

afterAll(async () => {
  await openedPage?.close();
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('an exported part of a trace is a valid trace that ends in the same state as the full trace', async () => {
  const exportedTrace = await exportAs('Trace', 'Download as trace');
  const { header, records } = readTrace(exportedTrace);
  expect(records.map(({ seq }) => seq)).toEqual(
    Array.from({ length: range[1] - range[0] + 1 }, (_, i) => range[0] + i),
  );
  const wholeTrace = readTrace(trace);
  expect(fold(header, records)).toEqual(fold(wholeTrace.header, wholeTrace.records.slice(0, range[1])));
  const consoleLines: string[] = [];
  const print = (text: string): void => void consoleLines.push(text);
  expect(
    await checkTraces([exportedTrace], { format: 'text' }, { out: print, error: print }),
    consoleLines.join(''),
  ).toBe(0);

  const other = await openPage(browser, [fileSource(exportedTrace)]);
  await waitUntilOpened(other.page);
  expect(await shownRecordCount(other.page)).toBe(records.length);
  await other.close();
});

test('the Mermaid export is a sequence diagram with the messages of the exported part', async () => {
  const text = readFileSync(await exportAs('Sequence', 'Download as Mermaid'), 'utf8');
  expect(() => parseDiagram(text, 'exported.mmd')).not.toThrow();
  const sentEvents = readTrace(trace).records.filter(
    (record) => record.kind === 'event' && record.seq >= range[0] && record.seq <= range[1],
  );
  const types = sentEvents.map((record) => (record as TraceRecord & { kind: 'event' }).event.type);
  for (const type of types.filter((eventType) => !eventType.startsWith('xstate.'))) expect(text).toContain(`: ${type}`);
});

test.each(['Sequence', 'Chart'])('the exported pictures of the %s are valid images', async (group) => {
  const svg = readFileSync(await exportAs(group, 'Download as SVG'), 'utf8');
  const parsed = `new DOMParser().parseFromString(${JSON.stringify(svg)}, 'image/svg+xml')`;
  const problem = await page.evaluate(`${parsed}.querySelector('parsererror')?.textContent`);
  expect(problem).toBeUndefined();
  // The file must work without other files and without a network.
  expect(svg).not.toMatch(/(?:href|src|url)\s*[=(]\s*["']?(?:https?:|blob:)/);
  const png = readFileSync(await exportAs(group, 'Download as PNG'));
  expect(png.subarray(1, 4).toString()).toBe('PNG');
  expect(png.readUInt32BE(16)).toBeGreaterThan(400);
});

test('the exported test passes, and fails if the machines behave differently', async () => {
  const file = await exportAs('Trace', 'Download as test');
  expect(await vitest()).toMatch(/Tests .*1 passed/);
  const source = readFileSync(file, 'utf8');
  expect(source).toContain('running.backing off');
  writeFileSync(file, source.replaceAll('running.backing off', 'running.settled'));
  expect(await vitest()).toMatch(/Tests .*1 failed/);
});

/**
 * Selects a command of the export menu.
 * @returns the downloaded file
 */
async function exportAs(group: string, name: string): Promise<string> {
  await page.getByRole('button', { name: 'Export' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('group', { name: group }).getByRole('menuitem', { name }).click();
  const file = await download;
  const path = join(folder, file.suggestedFilename());
  await file.saveAs(path);
  return path;
}

function readTrace(path: string): { header: TraceHeader; records: TraceRecord[] } {
  const [header, ...records] = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as never);
  return { header: header!, records };
}

function fold(header: TraceHeader, records: readonly TraceRecord[]): unknown {
  const state = TraceState.of(header);
  for (const record of records) state.apply(record);
  return Object.fromEntries(state.actors);
}

/** Runs the tests in the folder as a project that has chartpilot installed. */
async function vitest(): Promise<string> {
  const modules = join(folder, 'node_modules');
  mkdirSync(modules, { recursive: true });
  for (const [name, target] of [
    ['chartpilot', packageRoot()],
    ['vitest', join(packageRoot(), 'node_modules/vitest')],
  ] as const) {
    rmSync(join(modules, name), { force: true });
    symlinkSync(target, join(modules, name));
  }
  const runner = join(packageRoot(), 'node_modules/vitest/vitest.mjs');
  const runResult = await promisify(execFile)(process.execPath, [
    runner,
    'run',
    '--root',
    folder,
    '--testTimeout=120000',
  ]).catch((error: { stdout: string; stderr: string }) => error);
  return `${runResult.stdout}${runResult.stderr}`;
}
