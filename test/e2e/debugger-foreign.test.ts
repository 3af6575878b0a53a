/** The page with traces of other programs, and with several programs on one time axis. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { mergeTraces, type ProgramTrace } from '../../src/debugger/merge/merge-traces.ts';
import { memorySource } from '../../src/debugger/visualize/memory-source.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { statechartOf } from '../../src/runtime/trace/statechart.ts';
import { formatTraceLine, type TraceBody, type TraceRecord } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { drop, shownRecordCount, waitUntilOpened } from '../browser/page-state.ts';
import { traceOf } from '../browser/written-trace.ts';
import { headerWith } from '../fixtures/trace-header.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

test('the page shows the door lock recorded by chartpilot/record with its states as bars of a lane and its marks', async () => {
  const file = join(packageRoot(), 'test/fixtures/traces-of-versions/version-3-recorded.trace');
  const openedPage = await openPage(browser, [memorySource('lock.trace', readFileSync(file, 'utf8'))]);
  const { page } = openedPage;
  // No actor exists at the end, so none is drawn.
  await expectEventually(() => shownRecordCount(page)).toBe(29);
  await expectEventually(() =>
    page.locator('[data-lane]').evaluateAll((lanes) => lanes.map((lane) => lane.getAttribute('data-lane'))),
  ).toEqual(['lock']);
  const phases = await page
    .locator('[data-lane="lock"] .bar')
    .evaluateAll((bars) => bars.map((bar) => bar.getAttribute('data-phase')));
  expect(phases).toEqual(expect.arrayContaining(['locked', 'open']));
  // The trace's last record: no actor of the trace started or stopped the machine.
  await expectEventually(() => page.locator('[data-part="causes"]').innerText()).toMatch(
    /Sent from outside the program/,
  );
  const fillColor = await page
    .locator('[data-lane="lock"] .bar rect')
    .first()
    .evaluate((bar) => (globalThis as unknown as InPage).getComputedStyle(bar).fill);
  expect(fillColor).toMatch(/^rgb/);
  expect(fillColor).not.toBe('rgb(0, 0, 0)');
  expect(await page.locator('.timeline .legend').innerText()).toMatch(/open/);
  expect(await page.locator('[data-lane="lock"] .mark[data-kind="rejected"]').count()).toBe(1);
  await openedPage.close();
});

test('a gateway and its control plane share one time axis, and an arrow and the chain of causes connect them', async () => {
  const event = (
    t: number,
    from: string,
    to: string,
    type: string,
    extraFields: object = {},
  ): TraceBody & { t: number } => ({
    kind: 'event',
    from,
    to,
    event: { type, ...extraFields },
    t,
  });
  const program = (
    label: string,
    machine: Parameters<typeof statechartOf>[0],
    bodies: readonly (TraceBody & { t: number })[],
  ): ProgramTrace => ({
    label,
    header: headerWith({ program: label, machines: [statechartOf(machine)] }),
    records: bodies.map((body, i) => ({ seq: i + 1, ...body }) as TraceRecord),
  });
  const node = 'router~1.2.3.4~gateway.demo~demo.svc';
  const programs = [
    program('gateway', epochMachine, [
      { kind: 'spawn', actor: 'epoch-0', machine: 'epoch', t: 10 },
      { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0', t: 11, cause: 1 },
      event(12, 'epoch-0/prepare', 'epoch-0', 'xstate.done.actor.prepare', { output: { configFile: 'x', node } }),
      event(20, 'epoch-0/process', 'epoch-0', 'process.spawned', { pid: 1 }),
      event(500, 'epoch-0/probe', 'epoch-0', 'probe.passed'),
    ]),
    program('discovery', adsConnectionMachine, [
      { kind: 'spawn', actor: 'ads-connection-1', machine: 'ads-connection', t: 90 },
      { kind: 'spawn', actor: 'ads-connection-1/stream', parent: 'ads-connection-1', t: 90, cause: 1 },
      event(100, 'ads-connection-1/stream', 'ads-connection-1', 'node.accepted', { node }),
    ]),
  ];
  const mergedTrace = mergeTraces(programs);
  expect(mergedTrace.arrows).toBe(2);
  const acceptedRecord = mergedTrace.records.find(
    (record) => record.kind === 'event' && record.event.type === 'node.accepted',
  )!;
  const openedPage = await openPage(browser, [traceOf({ header: mergedTrace.header, records: mergedTrace.records })], {
    hash: `#record=${acceptedRecord.seq}`,
  });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await expectEventually(() => page.locator('[data-lane="gateway:epoch-0"]').count()).toBe(1);
  // The page opens at a record of the control plane and shows its chart.
  expect(await page.locator('.chart-head h2').innerText()).toBe('discovery:ads-connection-1');
  const arrow = mergedTrace.records.find((record) => record.kind === 'event' && record.event.type === 'xds.connect')!;
  await expectEventually(() => page.locator(`.sequence-view [data-record="${arrow.seq}"]`).count()).toBe(1);
  expect(await page.locator('.sequence-view').innerText()).toContain('xds.configured');
  // Traces dropped together give the same result as on the command line.
  await drop(
    page,
    programs.map(({ label, header, records }) => ({
      name: `${label}.trace`,
      body: [header, ...records].map(formatTraceLine).join(''),
    })),
  );
  await expectEventually(() => page.getByLabel('Source').locator('option').allInnerTexts()).toEqual([
    'written.trace',
    'gateway.trace',
    'discovery.trace',
    'on one axis',
  ]);
  await page.getByLabel('Source').selectOption('on one axis');
  await expectEventually(() => shownRecordCount(page)).toBe(mergedTrace.records.length);
  await openedPage.close();
});

/** Retries, because a page is slow on a busy machine. */
const expectEventually = <T>(read: () => Promise<T>) => expect.poll(read);

/** The browser API that this test uses. */
interface InPage {
  getComputedStyle(element: unknown): { readonly fill: string };
}
