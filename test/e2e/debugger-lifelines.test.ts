/** Lifelines, labels and results of the page for a trace with many machines of another program, on wide and narrow screens. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMachine } from 'xstate';
import { statechartOf } from '../../src/runtime/trace/statechart.ts';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { waitUntilIdle, waitUntilOpened } from '../browser/page-state.ts';
import { writtenTrace } from '../browser/written-trace.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const names = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota', 'kappa'];
const machine = statechartOf(
  createMachine({ id: 'light', initial: 'red', states: { red: { on: { go: 'green' } }, green: {} } }),
);
const reason = `the file ${'of a very long path/'.repeat(12)} is not there`;
const failureBody: TraceBody = {
  kind: 'stop',
  actor: 'alpha',
  status: 'error',
  error: reason,
  cause: names.length + 1,
};

/** Each machine is created and enters a state; then the first one sends an event to every other machine, and fails. */
const bodies: readonly TraceBody[] = [
  ...names.map((actor): TraceBody => ({ kind: 'spawn', actor, machine: 'light' })),
  { kind: 'event', from: 'outside', to: 'alpha', event: { type: 'begin' } },
  ...names.map((actor): TraceBody => ({ kind: 'transition', actor, from: '', to: 'red', on: 'xstate.init' })),
  ...names.slice(1).flatMap((actor): TraceBody[] => [
    { kind: 'event', from: 'alpha', to: actor, event: { type: 'go' } },
    { kind: 'transition', actor, from: 'red', to: 'green', on: 'go' },
  ]),
  failureBody,
];

const openDiagram = (width: number, hash = '', t = 0) =>
  openPage(
    browser,
    [
      writtenTrace(
        bodies.map((body, i) => ({ ...body, t: t + i * 1_000 })),
        { machines: [machine], foreign: true },
      ),
    ],
    {
      viewport: { width, height: 900 },
      hash,
    },
  );

const heads = (page: Page): Promise<string[]> =>
  page.locator('.sequence-name').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')!));

interface Box {
  readonly left: number;
  readonly right: number;
}
interface PageElement {
  getBoundingClientRect(): Box;
  getAttribute(name: string): string | null;
  querySelector(selector: string): PageElement;
  querySelectorAll(selector: string): Iterable<PageElement>;
  scrollTo(x: number, y: number): void;
  readonly scrollWidth: number;
  readonly clientWidth: number;
  readonly scrollHeight: number;
}
interface InPage {
  readonly document: PageElement;
  getComputedStyle(part: PageElement, pseudo: string): { readonly content: string; readonly width: string };
}

/** For each state label: whether it is over its actor's lifeline, and the actor name before it. */
function stateLabels(page: Page): Promise<{ actor: string; isUnder: boolean; name: string }[]> {
  return page.evaluate(() => {
    const { document, getComputedStyle } = globalThis as unknown as InPage;
    const middles = [...document.querySelectorAll('.sequence-name')].map((head) => {
      const { left, right } = head.getBoundingClientRect();
      return [head.getAttribute('aria-label')!, (left + right) / 2] as const;
    });
    const middleOf = new Map(middles);
    const box = document.querySelector('.sequence-scroll').getBoundingClientRect();
    const corner = document.querySelector('.sequence-corner').getBoundingClientRect();
    return [...document.querySelectorAll('.sequence-row.state')].map((row) => {
      const note = row.querySelector('.sequence-note');
      const actor = /: (\S+) is now/.exec(row.getAttribute('aria-label')!)![1]!;
      const middle = middleOf.get(actor)!;
      const { content, width } = getComputedStyle(note, '::before');
      const isUnder = middle >= corner.right && middle <= box.right;
      return { actor, isUnder, name: Number.parseFloat(width) > 5 ? content.replaceAll('"', '') : '' };
    });
  });
}

test.each([1_440, 390])(
  'at a width of %i px, a state shows the name of its actor only if the lifeline of that actor is not visible',
  async (width) => {
    const opening = await openDiagram(width);
    const { page } = opening;
    await waitUntilOpened(page);
    expect(await heads(page)).toEqual(['outside', ...names]);
    for (const share of [0, 0.5, 1]) {
      await page.locator('.sequence-scroll').evaluate((element, scrollShare) => {
        const { scrollWidth, clientWidth, scrollHeight } = element as unknown as PageElement;
        (element as unknown as PageElement).scrollTo((scrollWidth - clientWidth) * scrollShare, scrollHeight / 2);
      }, share);
      await waitUntilIdle(page);
      const labels = await stateLabels(page);
      expect(labels.length).toBeGreaterThan(3);
      expect(labels.map(({ name }) => name)).toEqual(labels.map(({ actor, isUnder }) => (isUnder ? '' : `${actor}: `)));
      if (width === 390) expect(labels.some(({ isUnder }) => !isUnder)).toBe(true);
    }
    await opening.close();
  },
);

test('only lifelines with a message in the selected range are columns', async () => {
  const first = names.length + 1 + names.length + 1;
  const opening = await openDiagram(1_440, `#record=${first}&range=${first}-${first + 3}`);
  await waitUntilOpened(opening.page);
  await expect.poll(() => heads(opening.page)).toEqual(['alpha', 'beta', 'gamma']);
  await opening.page.getByRole('button', { name: 'Clear range' }).click();
  await expect.poll(() => heads(opening.page)).toHaveLength(names.length + 1);
  await opening.close();
});

test.each([1_440, 390])(
  'at a width of %i px, the list of findings shows complete sentences, and a finding stays selected when its root cause is shown',
  async (width) => {
    const opening = await openDiagram(width);
    const { page } = opening;
    await waitUntilOpened(page);
    const bar = page.locator('.finding-bar');
    await bar.locator('summary').click();
    const list = bar.locator('.popup');
    const item = list.locator('.words').filter({ hasText: 'of a very long path' });
    const isCut = await item.evaluate((element) => {
      const { scrollWidth, clientWidth } = element as unknown as PageElement;
      return scrollWidth > clientWidth + 1;
    });
    const { x, width: boxWidth } = (await list.boundingBox())!;
    expect({ cut: isCut, left: x >= 0, right: x + boxWidth <= width }).toEqual({ cut: false, left: true, right: true });
    await item.click();
    const linkText = () => bar.locator('.current-finding .link').innerText();
    expect(await linkText()).toContain('of a very long path');
    await bar.getByRole('button', { name: 'Root cause' }).click();
    await expect.poll(() => page.locator('#place').getAttribute('aria-valuetext')).toMatch(/begin/);
    expect(await linkText()).toContain('of a very long path');
    await opening.close();
  },
);

test('times with hours are not cut off next to the rows of a long trace', async () => {
  const opening = await openDiagram(1_440, '', 277 * 3_600_000);
  await waitUntilOpened(opening.page);
  const cutCount = await opening.page
    .locator('.sequence-time')
    .evaluateAll((all) => (all as unknown as PageElement[]).filter((one) => one.scrollWidth > one.clientWidth).length);
  expect(cutCount).toBe(0);
  expect(await opening.page.locator('.sequence-time').first().innerText()).toMatch(/^277:00:\d\d\.000$/);
  await opening.close();
});
