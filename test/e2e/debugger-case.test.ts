/** The example of docs/debugging-a-restart.md, whose pictures this test takes: from symptom to cause. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fileSource } from '../../src/debugger/visualize/file-source.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, type OpenedPage, openPage } from '../browser/open-page.ts';
import { shownSeq } from '../browser/page-state.ts';
import { takePicture } from '../browser/pictures.ts';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;
let gateway: AgentProgram;
let browser: Browser;
let openedPage: OpenedPage;
let records: readonly TraceRecord[];

beforeAll(async () => {
  [mesh, browser] = await Promise.all([
    startMesh({ sidecar: false, watchDelayMs: 200, drainMs: 3_000, parentShutdownMs: 9_000 }),
    launchBrowser(),
  ]);
  gateway = mesh.gateway!;
  const [parent] = mesh.envoysOf(gateway);
  mesh.renewCertificate();
  await gateway.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
  // The same signal as the kernel's OOM killer sends.
  process.kill(parent!.pid, 'SIGKILL');
  await gateway.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0b' }));
  await eventually('one Envoy is left', () => mesh.envoysOf(gateway).length === 1);
  await gateway.program.stop();
  records = readFileSync(gateway.traceFile, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as TraceRecord);
  openedPage = await openPage(browser, [fileSource(gateway.traceFile, 'gateway.trace')], {
    viewport: { width: 1_600, height: 1_000 },
  });
});

afterAll(async () => {
  await openedPage?.close();
  await browser?.close();
  await conclude(mesh);
});

/** A decision without a visible cause: no input had changed. */
const decision = (): TraceRecord =>
  records.find(
    (record) =>
      record.kind === 'event' && record.event.type === 'restart.decided' && record.event.reason === 'parent died early',
  )!;

test('the page shows that the third start was caused by the killed process', async () => {
  const { page } = openedPage;
  await page.keyboard.press('/');
  await page.keyboard.type('restart.decided replacement');
  await page.keyboard.press('Enter');
  await eventually('the decision is looked at', async () => (await shownSeq(page)) === decision().seq);
  await page.keyboard.press('Escape');
  for (const epoch of ['epoch-0', 'epoch-1', 'epoch-0b']) {
    expect(await page.locator(`[data-lane="${epoch}"]`).count()).toBe(1);
  }
  const details = page.locator('.details');
  expect(await details.innerText()).toContain('parent died early');
  await takePicture('case-timeline', page.locator('.timeline'));
  await takePicture('case-decision', page);

  await details.getByRole('button', { name: /process\.exited/ }).click();
  await eventually('its cause is looked at', async () => (await shownSeq(page))! < decision().seq);
  expect(await details.innerText()).toContain('SIGKILL');
  await takePicture('case-cause', details);
});

test('chartpilot trace --why shows the same cause as the page', () => {
  const whyOutput = execFileSync(
    join(packageRoot(), 'bin/chartpilot'),
    ['trace', gateway.traceFile, '--why', String(decision().seq)],
    { encoding: 'utf8' },
  );
  console.log(whyOutput);
  expect(whyOutput).toMatch(/epoch\.failed/);
  expect(whyOutput).toMatch(/epoch-0\/process → epoch-0: process\.exited .*SIGKILL/);
});
