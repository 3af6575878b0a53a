/** Nearly every name of a trace occurs once: the page draws a bounded number of them, shows how many it omits, and finds each of them. */
import { Readable } from 'node:stream';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memorySource } from '../../src/debugger/visualize/memory-source.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { type ManyNames, manyNamesLines, manyNamesTrace, nameOf } from '../browser/many-names.ts';
import { launchBrowser, type OpenedPage, openPage } from '../browser/open-page.ts';
import {
  countWork,
  heapBytes,
  mainThreadMs,
  slownessOf,
  waitUntilIdle,
  waitUntilOpened,
} from '../browser/page-state.ts';
import { sized } from '../harness/size-of-run.ts';

const actors = 20_000;
/** Maximum number of the page's elements for any trace. */
const maxElements = 8_000;
/** Maximum processor time of the page's main thread in milliseconds: for an empty page, plus for each record. */
const maxMs = { page: 2_000, record: 0.025 };
/** Maximum memory of the page's JavaScript in bytes: for an empty page, plus for each record with its columns and texts. */
const maxBytes = { page: 30e6, record: 1_200 };

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

/** A trace that is too long for one string. */
function longSource(manyNames: ManyNames): PageSource {
  const first = manyNamesLines(manyNames).next().value as string;
  return {
    ...memorySource('names.trace', first),
    read: async () => Readable.from(chunks(manyNames), { objectMode: false }),
  };
}

function* chunks(manyNames: ManyNames): Generator<string> {
  let lines: string[] = [];
  for (const line of manyNamesLines(manyNames)) {
    if (lines.push(line) < 1_000) continue;
    yield lines.join('');
    lines = [];
  }
  yield lines.join('');
}

const elements = (page: Page): Promise<number> => page.locator('*').count();
const records = (page: Page): Promise<number> =>
  page.evaluate(
    () => (globalThis as unknown as { chartpilot: { recording(): { length: number } } }).chartpilot.recording().length,
  );

async function openMany(names: Omit<ManyNames, 'actors'>, hash = ''): Promise<OpenedPage> {
  const openedPage = await openPage(browser, [memorySource('names.trace', manyNamesTrace({ actors, ...names }))], {
    hash,
  });
  await waitUntilOpened(openedPage.page);
  await waitUntilIdle(openedPage.page);
  return openedPage;
}

test.each<[string, ManyNames]>([
  ['actors that each have their own machine, state, event, effect and timer', { actors, machines: true, words: true }],
  ['states, events, effects and timers of one actor', { actors, machines: true, one: true }],
  ...sized<[string, ManyNames][]>({
    short: [],
    full: [
      ['actors of one machine', { actors }],
      ['actors that each start the next one', { actors, chain: true }],
      ['effects of one actor', { actors, effects: true }],
      ['actors: a million', { actors: 1_000_000 }],
    ],
  }),
])(
  'the page opens a trace with many %s in bounded time, memory and elements',
  async (_, manyNames) => {
    const openedPage = await openPage(browser, [longSource(manyNames)], { prepare: countWork });
    const { page } = openedPage;
    await page.waitForFunction(
      () => (globalThis as unknown as { chartpilot?: { opened?: number } }).chartpilot?.opened !== undefined,
      undefined,
      { timeout: 500_000 },
    );
    await waitUntilIdle(page);
    const count = await records(page);
    const workedMs = (await mainThreadMs(page)) / (await slownessOf(page));
    const bytes = await heapBytes(page);
    const drawnCount = await elements(page);
    console.log(`${count} records: ${Math.round(workedMs)} ms, ${Math.round(bytes / 1e6)} MB, ${drawnCount} elements`);
    expect(count).toBeGreaterThan(manyNames.actors);
    expect(drawnCount).toBeLessThan(maxElements);
    // Ensures that the page was drawn.
    expect(drawnCount).toBeGreaterThan(300);
    expect(workedMs).toBeLessThan(maxMs.page + count * maxMs.record);
    expect(bytes).toBeLessThan(maxBytes.page + count * maxBytes.record);
    await openedPage.close();
  },
  600_000,
);

test('the list of actors shows how many it omits, and its filter finds each omitted actor', async () => {
  const openedPage = await openMany({ machines: true });
  const { page } = openedPage;
  const list = page.locator('.actors');
  expect(await list.innerText()).toMatch(/… and 19,751 more: use the filter/);
  const last = nameOf(actors - 1);
  expect(await list.locator(`[data-actor="${last}"]`).count()).toBe(0);
  await list.getByRole('searchbox').fill(last.toUpperCase());
  await list.locator(`[data-actor="${last}"]`).click();
  expect(await page.locator('.chart-head').innerText()).toContain(last);
  // The actor's name has a separate column in the sequence.
  await page.locator('.sequence-name.chosen', { hasText: last }).waitFor();
  // The actor stays in the list when the filter is cleared.
  await list.getByRole('searchbox').fill('');
  expect(await list.locator(`[data-actor="${last}"][aria-pressed="true"]`).count()).toBe(1);
  expect(await page.locator('.chart-strip').innerText()).toMatch(/… and 19,851 more: select one in the list of actors/);
  expect(await page.locator('.sequence-head').innerText()).toMatch(/19,9\d\d\s+others/);
  await openedPage.close();
});

test('a link to an actor shows the actor even if the list omits it', async () => {
  const actor = nameOf(12_345);
  const openedPage = await openMany({ chain: true }, `#actor=${actor}`);
  const { page } = openedPage;
  expect(await page.locator(`.actors [data-actor="${actor}"][aria-pressed="true"]`).count()).toBe(1);
  expect(await page.locator('.chart-head').innerText()).toContain(actor);
  await openedPage.close();
});

test('a large group lists the selected actor, at any position', async () => {
  const actor = nameOf(12_345);
  const openedPage = await openMany({}, `#actor=${actor}`);
  const { page } = openedPage;
  const group = page.locator('[data-group="ads-connection"]');
  await group.getByRole('button').first().click();
  expect(await group.innerText()).toMatch(/… and 19,940 more: use the filter/);
  expect(await group.locator(`[data-actor="${actor}"][aria-pressed="true"]`).count()).toBe(1);
  await openedPage.close();
});

test('a payload with very many fields, flat or nested, is shown in part', async () => {
  const wideFields = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`field ${i}`, i]));
  let nestedFields: unknown = 'innermost';
  for (let level = 0; level < 4; level++)
    nestedFields = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`n${i}`, nestedFields]));
  const [header, ...rest] = [...manyNamesLines({ actors: 1 })];
  const seq = rest.length + 1;
  const event = { type: 'x', wide: wideFields, nested: nestedFields, ...wideFields };
  const line = { kind: 'event', seq, t: seq, from: 'discovery', to: nameOf(0), event };
  const change = Object.keys(wideFields).map((key) => ({ path: `/${key}`, value: 1 }));
  const step = { kind: 'step', seq: seq + 1, t: seq, actor: nameOf(0), on: 'x', cause: seq, change };
  const trace = [header, ...rest, `${JSON.stringify(line)}\n`, `${JSON.stringify(step)}\n`].join('');
  const openedPage = await openPage(browser, [memorySource('wide.trace', trace)], { hash: `#record=${seq}` });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await waitUntilIdle(page);
  expect(await elements(page)).toBeLessThan(maxElements);
  const payload = page.locator('.record-column .json').first();
  expect(await payload.innerText()).toMatch(/… and 19,802 more: copy to see all/);
  // Fields that the user expands are bounded as well.
  await payload.locator('summary', { hasText: 'wide' }).click();
  await payload.getByText('… and 19,800 more').waitFor();
  expect(await elements(page)).toBeLessThan(maxElements);
  await page.keyboard.press('ArrowRight');
  await waitUntilIdle(page);
  expect(await elements(page)).toBeLessThan(maxElements);
  await openedPage.close();
});
