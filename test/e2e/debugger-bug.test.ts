/** Finds a bug in a copy of the supervisor from its trace: the page and `check` name the deviating step, replay shows the first difference. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { checkTraces } from '../../src/debugger/check/check-command.ts';
import { replayTraces } from '../../src/debugger/replay/replay-command.ts';
import { fileSource } from '../../src/debugger/visualize/file-source.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { shownSeq, waitUntilOpened } from '../browser/page-state.ts';
import { pictureOf } from '../browser/pictures.ts';
import { writeSkippedEpochTrace } from '../simulation/skipping-supervisor.ts';

let folder: string;
let trace: string;
let browser: Browser;

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {});
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-bug-'));
  trace = join(folder, 'agent.trace');
  writeSkippedEpochTrace(trace);
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The effect that starts `epoch-3`, and the message that the supervisor sends after it. */
function recordsOfTheBug(): { spawned: TraceRecord; nextMessage: TraceRecord } {
  const records = readFileSync(trace, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as TraceRecord);
  const spawnRecord = records.find((record) => record.kind === 'spawn' && record.actor === 'epoch-3')!;
  const nextMessage = records.find(({ seq, kind }) => seq > spawnRecord.seq && kind === 'event')!;
  return { spawned: spawnRecord, nextMessage };
}

test('the page opens at the deviation of the trace and shows the expected step', async () => {
  const { nextMessage } = recordsOfTheBug();
  const openedPage = await openPage(browser, [fileSource(trace)]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  await expect.poll(() => shownSeq(page)).toBe(nextMessage.seq);
  const row = page.locator(`.sequence-view [data-record="${nextMessage.seq}"]`);
  await row.waitFor();
  expect(await row.getAttribute('class')).toContain('departure');
  expect(await page.locator('.sequence-expected').first().innerText()).toMatch(/numbers\.mmd:\d+/);
  expect(await page.locator('.sequence-view').innerText()).toMatch(/expected supervisor → epoch-2: spawn/);
  expect(await page.locator('.details').innerText()).toMatch(/Deviates from a sequence diagram[\s\S]*epoch-2: spawn/);
  // No earlier record deviates from the diagrams.
  const markedRows = page.locator('.sequence-view [data-record].departure');
  for (const seq of await markedRows.evaluateAll((rows) =>
    rows.map((rowElement) => Number(rowElement.getAttribute('data-record'))),
  )) {
    expect(seq).toBeGreaterThanOrEqual(nextMessage.seq);
  }
  expect(await page.locator('[data-lane="departures"]').count()).toBe(1);
  await pictureOf('departure', page);
  await openedPage.close();
});

test('chartpilot check reports the same step at which the page opens', async () => {
  const { nextMessage } = recordsOfTheBug();
  const { code, text } = await run((output) => checkTraces([trace], { format: 'text' }, output));
  expect(code).toBe(1);
  expect(text).toContain(`record ${nextMessage.seq} is out of order (machines/agent/sequences/numbers.mmd`);
  expect(text).toContain('(supervisor → epoch-2: spawn)');
});

test('replay with the corrected supervisor shows the first difference', async () => {
  const { spawned } = recordsOfTheBug();
  const { code, text } = await run((output) => replayTraces([trace], { format: 'text' }, output));
  expect(code).toBe(1);
  expect(text).toContain(`record ${spawned.seq}: supervisor: differs from the recording`);
  expect(text).toMatch(/recorded +"epoch-3"\n +replayed +"epoch-2"/);
});

async function run(
  command: (output: { out: (text: string) => void; error: (text: string) => void }) => Promise<number>,
): Promise<{ code: number; text: string }> {
  const outputTexts: string[] = [];
  const code = await command({
    out: (text) => void outputTexts.push(text),
    error: (text) => void outputTexts.push(text),
  });
  return { code, text: outputTexts.join('') };
}
