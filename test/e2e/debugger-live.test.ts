/** Follows a restart of a real Envoy in a real browser, then steps backwards through it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { liveSource } from '../../src/debugger/visualize/live-source.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, type OpenedPage, openAddress, openPage } from '../browser/open-page.ts';
import {
  actorsAt,
  highlightedStates,
  nextFrame,
  readSeenStates,
  readShownActors,
  shownRecordCount,
  shownSeq,
  watchActors,
} from '../browser/page-state.ts';
import { pictureOf, takePicture } from '../browser/pictures.ts';
import { envoyBinary, temporaryFolder } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { Program } from '../harness/program.ts';
import { conclude } from './conclude.ts';

let slowFolder: ReturnType<typeof temporaryFolder>;
let mesh: Mesh;
let gateway: AgentProgram;
let browser: Browser;
let openedPage: OpenedPage;
let page: Page;
let receiver: OtlpReceiver;
let exporter: Program;

beforeAll(async () => {
  slowFolder = temporaryFolder();
  const binary = join(slowFolder.path, 'slow-envoy');
  // A page draws the current state once per frame. On a busy machine, a shorter state would be in no frame.
  const waits = 'case "$*" in *version*) ;; *) sleep 2;; esac';
  writeFileSync(binary, `#!/bin/sh\n${waits}\nexec ${envoyBinary()} "$@"\n`, { mode: 0o755 });
  const agentArgs = ['--binaryPath', binary];
  [mesh, browser] = await Promise.all([
    startMesh({ sidecar: false, watchDelayMs: 500, drainMs: 3_000, parentShutdownMs: 6_000, agentArgs }),
    launchBrowser(),
  ]);
  gateway = mesh.gateway!;
  // Finally the program exits, and the page's request fails.
  openedPage = await openPage(
    browser,
    [liveSource({ host: '127.0.0.1', port: gateway.statusPort }, { name: 'gateway' })],
    {
      viewport: { width: 1_600, height: 1_100 },
      expected: /status 502|502 \(Bad Gateway\)/,
    },
  );
  page = openedPage.page;
  receiver = await startOtlpReceiver();
  exporter = Program.start('chartpilot', {
    args: ['trace', '--attach', `127.0.0.1:${gateway.statusPort}`, '--otlp', receiver.address],
    env: process.env,
    cwd: mesh.root,
  });
});

afterAll(async () => {
  await openedPage?.close();
  await browser?.close();
  await exporter?.stop({ signal: 'SIGKILL' });
  receiver?.close();
  await conclude(mesh);
  slowFolder?.[Symbol.dispose]();
});

test('the page shows a restart live: epoch 1 appears and becomes live, then epoch 0 drains and exits', async () => {
  await eventually('epoch 0 serves', async () => (await readShownActors(page))['epoch-0'] === 'running.live');
  expect((await readShownActors(page))['epoch-1']).toBeUndefined();
  const recordCount = await shownRecordCount(page);
  await watchActors(page);
  mesh.renewCertificate();
  await eventually('epoch 1 serves alone', async () => {
    const shownActors = await readShownActors(page);
    return shownActors['epoch-1'] === 'running.live' && shownActors['epoch-0'] === undefined;
  });
  const seenStates = await readSeenStates(page);
  expect(seenStates['epoch-1']).toEqual(
    expect.arrayContaining(['preparing', 'running.initializing.just started', 'running.live']),
  );
  expect(seenStates['epoch-0']!.join()).toMatch(/^running\.live,.*draining/);
  for (const epoch of ['epoch-0', 'epoch-1']) expect(await page.locator(`[data-lane="${epoch}"]`).count()).toBe(1);
  expect(await shownRecordCount(page)).toBeGreaterThan(recordCount + 30);
});

test('the restart is exported to an OpenTelemetry receiver while the program runs, with each span once', async () => {
  await eventually('both starts are told', () => receiver.requests.flat().length >= 8);
  expect(receiver.requests).toEqual([
    ['cold start', 'validate', 'start', 'initialise'],
    ['hot restart', 'validate', 'hand-over', 'start', 'initialise', 'drain'],
  ]);
});

test('the page shows the recorded state at each record when stepping back', async () => {
  const last = (await shownSeq(page))!;
  for (const actor of ['supervisor', 'epoch-1']) {
    await page.keyboard.press('End');
    await page.locator(`[data-actor="${actor}"][data-state-name]`).click();
    for (let step = 0; step < 60; step++) {
      await page.keyboard.press('ArrowLeft');
      await expectTruth(actor);
    }
  }
  expect(await shownSeq(page)).toBeLessThan(last - 30);
  await page.keyboard.press('ArrowRight');
  await expectTruth('epoch-1');
});

test('each view of the page has content in the middle of a restart (takes a screenshot)', async () => {
  const draining = recordsOf(gateway).find(
    (record) => record.kind === 'transition' && record.actor === 'epoch-0' && record.to.includes('draining'),
  )!;
  await page.keyboard.press('End');
  while ((await shownSeq(page))! > draining.seq) {
    await page.keyboard.press('ArrowLeft');
    await nextFrame(page);
  }
  await page.locator('[data-actor="supervisor"][data-state-name]').click();
  await takePicture('debugger', page);
  await pictureOf('timeline', page.locator('.timeline'));
  await pictureOf('details', page.locator('.details'));
  await page.locator('[data-actor="epoch-0"][data-state-name]').click();
  await pictureOf('chart', page.locator('.chart-pane'));
  await pictureOf('sequence', page.locator('.sequence-pane'));
  await page.emulateMedia({ colorScheme: 'dark' });
  await pictureOf('dark', page);
});

test('chartpilot visualize attaches with only the port, and exits on Ctrl-C', async () => {
  const command = Program.start('chartpilot', {
    args: ['visualize', '--attach', String(gateway.statusPort)],
    env: process.env,
    cwd: mesh.root,
  });
  onTestFinished(async () => void (await command.stop({ signal: 'SIGKILL' })));
  const address = await command.line(/^http:/);
  const other = await openAddress(browser, address);
  await eventually('the same is shown', async () => (await readShownActors(other.page))['epoch-1'] === 'running.live');
  await other.close();
  expect((await command.stop({ signal: 'SIGINT' })).code).toBe(0);
});

test('chartpilot visualize explains how to get the right token if the given one is wrong', async () => {
  const command = Program.start('chartpilot', {
    args: ['visualize', '--attach', `localhost:${gateway.statusPort}`],
    env: { ...process.env, CHARTPILOT_TOKEN: 'wrong' },
    cwd: mesh.root,
  });
  expect((await command.exited).code).toBe(2);
  expect(command.output()).toMatch(/status 401[\s\S]*→ .*--token/);
});

test('the page reports the exit of the program and keeps the trace', async () => {
  await page.keyboard.press('End');
  await gateway.program.stop();
  await page.getByText('The program ended').waitFor();
  expect(await readShownActors(page)).toEqual({});
  const records = recordsOf(gateway);
  expect(await shownRecordCount(page)).toBe(records.length);
  expect(await shownSeq(page)).toBe(records.at(-1)!.seq);
  // The exporter exits when the program does.
  expect((await exporter.exited).code).toBe(0);
  expect(exporter.lines).toEqual([`otlp: 2 traces, 10 spans → ${receiver.address}/v1/traces`]);
});

/** Checks that the list of actors and the selected chart match the trace file at the displayed record. */
async function expectTruth(chosenActor: string): Promise<void> {
  await nextFrame(page);
  const truth = actorsAt(readFileSync(gateway.traceFile, 'utf8'), await shownSeq(page));
  expect(await readShownActors(page)).toEqual(truth);
  expect(await highlightedStates(page)).toEqual(activePaths(truth[chosenActor]));
}

/** `a.b | a.c` → a, a.b, a.c */
function activePaths(state = ''): string[] {
  const paths = state.split(' | ').flatMap((leaf) => {
    const names = leaf === '' ? [] : leaf.split('.');
    return names.map((_, depth) => names.slice(0, depth + 1).join('.'));
  });
  return [...new Set(paths)].toSorted();
}

function recordsOf({ traceFile }: AgentProgram): TraceRecord[] {
  const lines = readFileSync(traceFile, 'utf8').trimEnd().split('\n');
  return lines.slice(1).map((line) => JSON.parse(line) as TraceRecord);
}
