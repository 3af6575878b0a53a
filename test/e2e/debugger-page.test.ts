/** Usability problems that users reported, in a real browser. */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { statechartOf } from '../../src/runtime/trace/statechart.ts';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { shownSeq, waitUntilOpened } from '../browser/page-state.ts';
import { takePicture } from '../browser/pictures.ts';
import { traceOf, writtenTrace } from '../browser/written-trace.ts';
import { eventBody } from '../fixtures/event-body.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const roots: TraceBody[] = ['agent', 'supervisor', 'status', 'cert-watcher', 'start-limiter'].map((actor) => ({
  kind: 'spawn',
  actor,
}));

describe('a page with a deviation', () => {
  test.each([
    { kind: 'undeclared', event: eventBody('status', 'cert-watcher', 'status.surprises'), says: /undeclared/ },
    {
      kind: 'unexpected',
      event: eventBody('start-limiter', 'supervisor', 'start.granted'),
      says: /^unexpected|out of order/,
    },
  ])('shows a deviation of the kind "$kind", and the expected step if there is one', async ({ event, says }) => {
    const openedPage = await openPage(browser, [writtenTrace([...roots, event], { program: 'pilot-agent' })]);
    await waitUntilOpened(openedPage.page);
    await expectEventually(() => shownSeq(openedPage.page)).toBe(roots.length + 1);
    const row = openedPage.page.locator(`.sequence-view [data-record="${roots.length + 1}"].departure`);
    await row.waitFor();
    expect(await openedPage.page.locator('.finding-bar .current-finding').innerText()).toMatch(
      /1 message deviates from the sequence diagrams/,
    );
    expect(await row.getAttribute('aria-label')).toMatch(/deviates from a sequence diagram/);
    expect(await openedPage.page.locator('.sequence-expected').first().innerText()).toMatch(says);
    await openedPage.close();
  });
});

test('the causes of eleven failed attempts show the last, the first, and an expandable summary of the other nine', async () => {
  const tries = Array.from({ length: 11 }, (_, i): TraceBody[] => {
    const causeSeq = i === 0 ? 2 : i * 4 + 2;
    return [
      { kind: 'spawn', actor: `epoch-${i}`, parent: 'supervisor', cause: causeSeq },
      { kind: 'spawn', actor: `epoch-${i}/process`, parent: `epoch-${i}`, cause: causeSeq + 1 },
      eventBody(`epoch-${i}/process`, `epoch-${i}`, 'process.exited'),
      {
        ...eventBody(`epoch-${i}`, 'supervisor', 'epoch.failed', causeSeq + 3),
        event: { type: 'epoch.failed', reason: 'signal SIGKILL', signal: 'SIGKILL', during: 'initializing' },
      } as TraceBody,
    ];
  }).flat();
  const openedPage = await openPage(
    browser,
    [writtenTrace([{ kind: 'spawn', actor: 'supervisor' }, eventBody('outside', 'supervisor', 'go.now'), ...tries])],
    { hash: '#record=46' },
  );
  const { page } = openedPage;
  await waitUntilOpened(page);
  const causes = page.locator('[data-part="causes"]');
  await expectEventually(() => causes.innerText()).toMatch(/9 × the same before: SIGKILL while initializing/);
  expect(await causes.locator('.record-link').count()).toBeLessThan(12);
  await causes.getByText(/9 × the same before/).click();
  await expectEventually(() => causes.locator('.record-link[data-record="7"]').count()).toBe(1);
  expect(await causes.getByText(/^attempt \d+ of 10$/).count()).toBe(9);
  await openedPage.close();
});

test('at the end of a trace, the page shows the chart of the actor that stopped last', async () => {
  const chart = statechartOf(epochMachine);
  const openedPage = await openPage(browser, [
    writtenTrace(
      [
        { kind: 'spawn', actor: 'epoch-0', machine: 'epoch' },
        { kind: 'transition', actor: 'epoch-0', from: '', to: 'preparing', on: 'xstate.init' },
        { kind: 'transition', actor: 'epoch-0', from: 'preparing', to: 'over', on: 'process.exited' },
        { kind: 'stop', actor: 'epoch-0', status: 'done' },
      ],
      { machines: [chart] },
    ),
  ]);
  await expectEventually(() => openedPage.page.locator('.chart-pane').innerText()).toContain('ended; last state: over');
  expect(await openedPage.page.locator('.chart-pane .state').count()).toBeGreaterThan(3);
  await openedPage.close();
});

test('the page describes a gap as chartpilot check does, and links to it', async () => {
  const openedPage = await openPage(browser, [
    writtenTrace([
      { kind: 'spawn', actor: 'a' },
      { ...eventBody('outside', 'a', 'go.now'), seq: 40 },
      { ...eventBody('outside', 'a', 'go.on'), seq: 41 },
    ]),
  ]);
  await waitUntilOpened(openedPage.page);
  const banner = openedPage.page.locator('[data-gaps]');
  await expectEventually(() => banner.innerText()).toMatch(/38 records are missing before record 40/);
  await banner.getByRole('button', { name: 'Go to gap' }).click();
  await expectEventually(() => shownSeq(openedPage.page)).toBe(40);
  await openedPage.close();
});

test('the page title names the trace, the address works without its trailing slash, and Alt with an arrow is left to the browser', async () => {
  const openedPage = await openPage(browser, [
    writtenTrace([...roots, eventBody('status', 'cert-watcher', 'status.surprises')], { program: 'pilot-agent' }),
  ]);
  const { page, address } = openedPage;
  await waitUntilOpened(page);
  await expectEventually(() => page.title()).toBe('⚠ written.trace · chartpilot');
  await page.goto(`${address.replace(/\/$/, '')}#record=2`);
  await waitUntilOpened(page);
  await expectEventually(() => shownSeq(page)).toBe(2);
  await page.keyboard.press('Alt+ArrowRight');
  expect(await shownSeq(page)).toBe(2);
  await page.keyboard.press('Control+ArrowRight');
  await expectEventually(() => shownSeq(page)).toBe(roots.length + 1);
  await openedPage.close();
});

test('a search shows why each record matches, and releases the keys when it closes', async () => {
  const openedPage = await openPage(browser, [
    writtenTrace([
      { kind: 'spawn', actor: 'a', input: { settings: { path: '/etc/certs/needle.crt' } } },
      eventBody('outside', 'a', 'go.now'),
    ]),
  ]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  // Tab moves into the help of the search, and Escape closes it, as it does for the list of results.
  await page.keyboard.press('/');
  await expectEventually(() => page.locator('.found').count()).toBe(1);
  for (let i = 0; i < 7; i++) await page.keyboard.press('Tab');
  await expectEventually(() => page.locator('.found').count()).toBe(0);
  const findings = page.locator('.all-findings');
  await findings.locator('summary').click();
  await expectEventually(() => findings.locator('ol').count()).toBe(1);
  await findings.locator('ol button').first().focus();
  await page.keyboard.press('Escape');
  await expectEventually(() => findings.locator('ol').count()).toBe(0);
  expect(await findings.locator('summary').evaluate((element) => element.matches(':focus'))).toBe(true);
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await expectEventually(() => page.locator('.found-text mark').allInnerTexts()).toEqual(['needle']);
  await page.locator('.found .record-link').click();
  await expectEventually(() => shownSeq(page)).toBe(1);
  await page.keyboard.press('ArrowRight');
  await expectEventually(() => shownSeq(page)).toBe(2);
  expect(await page.locator('.found').count()).toBe(0);
  await openedPage.close();
});

test('marks and bars have a legend, also in the help, and the time of a gap stays next to its row', async () => {
  const openedPage = await openPage(browser, [
    writtenTrace(
      [
        { kind: 'spawn', actor: 'a' },
        { ...eventBody('outside', 'a', 'signal.received'), t: 4e12 },
      ],
      {
        machines: [statechartOf(agentMachine)],
      },
    ),
  ]);
  await waitUntilOpened(openedPage.page);
  const time = openedPage.page.locator('.sequence-time').last();
  const stamp = (await openedPage.page.locator('.sequence-stamp').last().boundingBox())!;
  const timeBox = (await time.boundingBox())!;
  expect(await time.getAttribute('title')).toBe('1111111:06:40.000');
  expect(timeBox.x + timeBox.width).toBeLessThanOrEqual(stamp.x + stamp.width);
  await openedPage.page.keyboard.press('?');
  const help = (await openedPage.page.locator('#help').boundingBox())!;
  const last = (await openedPage.page.locator('#help .legend li').last().boundingBox())!;
  expect(last.x + last.width).toBeLessThan(help.x + help.width);
  await openedPage.page.keyboard.press('Escape');
  await expectEventually(() => openedPage.page.locator('.timeline .legend').innerText()).toMatch(/signal/);
  await openedPage.close();
});

test('a live program without recent events shows since when it is idle, and its timeline extends to the present', async () => {
  const startedAt = new Date(Date.now() - 42 * 60_000).toISOString();
  const { read, ...writtenSource } = writtenTrace(
    [{ kind: 'spawn', actor: 'a', machine: 'm' }, { ...eventBody('outside', 'a', 'go.now') }],
    { startedAt, machines: [{ id: 'm', states: [], transitions: [] }] },
  );
  const live: PageSource = {
    ...writtenSource,
    kind: 'live',
    // The stream of a live program does not end.
    read: async () => Readable.from(endless(await text(await read({ follow: true })))),
  };
  const openedPage = await openPage(browser, [live]);
  await expectEventually(() => openedPage.page.locator('.timeline .pane-head').innerText()).toMatch(/42 min/);
  await expectEventually(() => openedPage.page.locator('[data-actor="a"]').first().innerText()).toMatch(/4[12] min/);
  await openedPage.close();
});

test('a sentence at the top summarizes the displayed record and links to its root cause and time', async () => {
  const life = recordedLife([
    { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } },
    { gap: { ms: 60_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
    { gap: { ms: 60_000 }, scheduledEvent: { kind: 'ready?' } },
  ]);
  const openedPage = await openPage(browser, [traceOf(life)]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  const bar = page.locator('.finding-bar');
  await bar.getByRole('button', { name: 'Previous finding' }).click();
  await bar.getByText('2 problems').click();
  await bar
    .getByRole('listitem')
    .getByRole('button', { name: /epoch 1 replaced epoch 0/ })
    .click();
  await expectEventually(() => bar.locator('.current-finding').innerText()).toMatch(
    /with no downtime: tls\.crt changed/,
  );
  expect(await bar.locator('.spent').innerText()).toMatch(/^1\.2 s: 538 ms epoch-1\/probe/);
  expect(await page.locator('.range-text').innerText()).toMatch(/records \d+–\d+, 1\.2 s/);
  await takePicture('debugger-finding', page);
  await bar.getByRole('button', { name: 'Root cause' }).click();
  await expectEventually(() => page.locator('.details').innerText()).toContain('files.changed');
  await openedPage.close();
});

async function* endless(content: string): AsyncGenerator<string> {
  yield content;
  await new Promise(() => {});
}

/** Retries, because a busy machine draws late. */
function expectEventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}
