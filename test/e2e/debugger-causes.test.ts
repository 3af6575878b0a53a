/** Five cases from symptom to cause, each with the first three clicks of a user. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { waitUntilIdle, waitUntilOpened } from '../browser/page-state.ts';
import { traceOf, writtenTrace } from '../browser/written-trace.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const minute = 60_000;

const rejectingTrace = writtenTrace(
  [
    { kind: 'spawn', actor: 'discovery', t: 0 },
    { kind: 'spawn', actor: 'ads-connection-7', parent: 'discovery', t: 10 },
    { kind: 'spawn', actor: 'ads-connection-7/stream', parent: 'ads-connection-7', cause: 2, t: 11 },
    { ...fromTo('outside', 'discovery', { type: 'files.changed', files: ['routes/checkout.yaml'] }), t: 60_000 },
    { ...fromTo('discovery', 'ads-connection-7', { type: 'responses.send' }), cause: 4, t: 60_040 },
    {
      ...fromTo('ads-connection-7/stream', 'ads-connection-7', {
        type: 'request.classified',
        typeUrl: 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
        requestClass: 'rejection',
        reason: 'route: unknown cluster outbound|80||checkout',
      }),
      cause: 5,
      t: 60_100,
    },
  ],
  { program: 'pilot-discovery' },
);

const slowTrace = writtenTrace(
  [
    { kind: 'spawn', actor: 'discovery', t: 0 },
    { kind: 'spawn', actor: 'push', parent: 'discovery', t: 1 },
    { ...fromTo('outside', 'discovery', { type: 'files.changed', files: ['services.yaml'] }), t: 10_000 },
    { ...fromTo('discovery', 'push', { type: 'push.request' }), cause: 3, t: 10_020 },
    { ...fromTo('push/context', 'push', { type: 'context.built' }), cause: 4, t: 14_600 },
    {
      ...fromTo('push', 'push-queue', { type: 'clients.push', version: '8', forced: false, configs: ['a', 'b'] }),
      cause: 5,
      t: 14_620,
    },
    { ...fromTo('push-queue', 'push', { type: 'clients.served' }), cause: 6, t: 15_000 },
  ],
  { program: 'pilot-discovery' },
);

interface Case {
  readonly symptom: string;
  readonly source: PageSource;
  /** The sentence that a user sees and clicks first, and the text after it. */
  readonly sentence: RegExp;
  readonly causes: readonly RegExp[];
}

test.each<Case>([
  {
    symptom: 'a starting child that the kernel killed',
    source: traceOf(
      recordedLife([
        { gap: { ms: 19_000 }, scheduledEvent: { kind: 'slow start', ms: 6_000 } },
        { gap: { ms: 1_000 }, scheduledEvent: { kind: 'certificate' } },
        { gap: { ms: 3_000 }, scheduledEvent: { kind: 'oom', target: 'starting' } },
        { gap: { ms: minute }, scheduledEvent: { kind: 'ready?' } },
      ]),
    ),
    sentence: /is live after 2 failed attempts; first failure while initializing: signal SIGKILL/,
    causes: [/epoch-1\/process → epoch-1: process\.exited/, /signal SIGKILL/],
  },
  {
    symptom: 'a bad certificate',
    source: traceOf(
      recordedLife([
        { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate half written' } },
        { gap: { ms: minute }, scheduledEvent: { kind: 'ready?' } },
      ]),
    ),
    sentence: /new configuration rejected, old one kept: tls\.crt: not a certificate/,
    causes: [/files\.changed/, /not a certificate/],
  },
  {
    symptom: 'retries that are exhausted',
    source: traceOf(
      recordedLife([
        { gap: { ms: 20_000 }, scheduledEvent: { kind: 'no processes', forMs: 10_000_000 } },
        { gap: { ms: 1_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
        { gap: { ms: 15 * minute }, scheduledEvent: { kind: 'ready?' } },
      ]),
    ),
    sentence: /retries exhausted after 10 attempts; last failure while starting: spawn EAGAIN/,
    causes: [/epoch-0\/process → epoch-0: process\.failed/, /spawn EAGAIN/],
  },
  {
    symptom: 'a proxy that rejects',
    source: rejectingTrace,
    sentence: /the proxy of .* rejected RouteConfiguration: route: unknown cluster/,
    causes: [/files\.changed/, /checkout\.yaml/],
  },
  {
    symptom: 'a push that is slow',
    source: slowTrace,
    sentence:
      /slow push: 2 changed objects, version 8, sent to all clients 5\.0 s after the change.*4\.\d s push\/context/,
    causes: [/files\.changed/, /services\.yaml/],
  },
])('three clicks lead from the symptom "$symptom" to its cause', async ({ source, sentence, causes }) => {
  const openedPage = await openPage(browser, [source]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  await waitUntilIdle(page);
  const clicks = new Clicks(page);
  const bar = page.getByRole('region', { name: 'Findings' });
  const details = page.locator('.details');
  const sentenceText = async (): Promise<string> =>
    (await bar.locator('.current-finding').innerText()).replaceAll(/\s+/g, ' ');
  const isShown = async (): Promise<boolean> => {
    const text = await details.innerText();
    return causes.every((cause) => cause.test(text));
  };
  if (!sentence.test(await sentenceText())) {
    await clicks.on(bar.locator('summary'));
    const [buttonText] = sentence.source.split('.*4');
    await clicks.on(bar.getByRole('listitem').getByRole('button', { name: new RegExp(buttonText!) }));
  }
  expect(await sentenceText()).toMatch(sentence);
  const root = bar.getByRole('button', { name: 'Root cause' });
  const causeLink = page.locator('[data-part="causes"] .record-link').filter({ hasText: causes[0]! });
  if (!(await isShown())) await clicks.on((await root.count()) > 0 ? root : causeLink.first());
  expect(await isShown(), await details.innerText()).toBe(true);
  expect(clicks.count).toBeLessThanOrEqual(3);
  await openedPage.close();
});

class Clicks {
  count = 0;
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  async on(target: Locator): Promise<void> {
    this.count++;
    await target.click();
    await waitUntilIdle(this.#page);
  }
}

function fromTo(from: string, to: string, event: { type: string; [field: string]: unknown }) {
  return { kind: 'event', from, to, event } as const;
}
