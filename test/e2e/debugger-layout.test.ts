/** Layout of the page for several traces and screen sizes, in a real browser. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { nextFrame, shownSeq, waitUntilOpened } from '../browser/page-state.ts';
import { traceOf, writtenTrace } from '../browser/written-trace.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const hour = 3_600_000;
/** Height of the timeline's axis, above its lanes. */
const axisHeight = 30;
/** The certificate changes every twelve hours. */
const week = recordedLife([
  ...Array.from({ length: 6 }, () => ({ gap: { ms: 12 * hour }, scheduledEvent: { kind: 'certificate' } as const })),
  { gap: { ms: 60_000 }, scheduledEvent: { kind: 'ready?' } },
]);
/** The certificate changes three times, and at the end an Envoy is killed. */
const crash = recordedLife([
  ...Array.from({ length: 9 }, () => ({ gap: { ms: 90_000 }, scheduledEvent: { kind: 'certificate' } as const })),
  { gap: { ms: 90_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
  { gap: { ms: 30_000 }, scheduledEvent: { kind: 'ready?' } },
]);

test('the lane of the failed epoch is visible at 1440 × 900, and failures outside the visible range are indicated', async () => {
  const openedPage = await openPage(browser, [traceOf(crash)]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  const failedLane = page.locator('.lane:has(.mark[data-kind="failure"])').last();
  await expectEventually(() => isLaneVisible(failedLane)).toBe(true);
  const hint = page.locator('.lanes-hint.below');
  await page
    .locator('.lanes')
    .evaluate((lanes) => (lanes as unknown as { scrollTo(x: number, y: number): void }).scrollTo(0, 0));
  await expectEventually(() => hint.getAttribute('aria-label')).toMatch(/^\d lanes? below, with [1-9]\d* problems?/);
  expect(await isLaneVisible(failedLane)).toBe(false);
  await hint.click();
  await expectEventually(() => isLaneVisible(failedLane)).toBe(true);
  await openedPage.close();
});

test('restarts 12 hours apart are wide enough to read, show their date, and idle hours between them are folded', async () => {
  const openedPage = await openPage(browser, [traceOf(week)]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  const folds = page.locator('.idle');
  await expectEventually(() => folds.count()).toBe(6);
  expect(await folds.first().innerText()).toMatch(/^12 h|11 h 59 min$/);
  const draining = page.locator('.bar[data-phase="draining"] rect');
  expect(await draining.count()).toBe(7);
  const widths = await draining.evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('width'))));
  expect(Math.min(...widths)).toBeGreaterThan(30);
  const walls = await page.locator('.axis .wall').allTextContents();
  expect(walls.filter((wall) => /^[A-Z][a-z]{2} \d+ \d\d:\d\d/.test(wall)).length).toBeGreaterThanOrEqual(6);
  expect(await page.locator('[data-lane="program"] .mark-label').allTextContents()).toContain('hot restart +1');

  // Opens one fold, then all folds.
  await folds.first().getByRole('button').click();
  await expectEventually(() => folds.count()).toBe(5);
  const idle = page.getByRole('button', { name: 'Collapse idle time' });
  expect(await idle.getAttribute('aria-pressed')).toBe('false');
  await idle.click();
  await expectEventually(() => folds.count()).toBe(6);
  await idle.click();
  await expectEventually(() => folds.count()).toBe(0);
  await openedPage.close();
});

test('a maximized chart fits the window at a readable size, and a folded state stays open after a click', async () => {
  const openedPage = await openPage(browser, [traceOf(crash)], { hash: '#actor=supervisor' });
  const { page } = openedPage;
  await waitUntilOpened(page);
  const chart = page.locator('.chart-viewport');
  await page.getByRole('button', { name: 'Maximize chart' }).click();
  await page.getByRole('button', { name: 'Fit', exact: true }).click();
  const scale = async (): Promise<number> => Number.parseInt(await page.locator('.chart-scale').innerText(), 10) / 100;
  await expectEventually(async () => 12 * (await scale())).toBeGreaterThanOrEqual(9);
  const chartBox = (await chart.boundingBox())!;
  const chartSvgBox = (await chart.locator('svg').boundingBox())!;
  expect(chartSvgBox.width).toBeLessThanOrEqual(chartBox.width);
  expect(chartSvgBox.height).toBeLessThanOrEqual(chartBox.height);
  expect(await page.locator('.chart-minimap').count()).toBe(0);

  await chart.getByRole('button', { name: /^Open running\.full restart/ }).click();
  await expectEventually(() => chart.locator('.state[data-path^="running.full restart."]').count()).toBe(2);
  await page.reload();
  await waitUntilOpened(page);
  await expectEventually(() => chart.locator('.state[data-path^="running.full restart."]').count()).toBe(2);
  await chart.getByRole('button', { name: /^Fold running\.full restart/ }).press('Enter');
  await expectEventually(() => chart.locator('.state[data-path^="running.full restart."]').count()).toBe(0);

  // Next to the other panes the chart has less space, so a minimap shows its visible part.
  await page.keyboard.press('Escape');
  await expectEventually(() => page.locator('.chart-minimap').count()).toBe(1);
  await expectNoOverlap(page, ['.chart-viewport', '.chart-minimap', '.chart-zoom']);
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expectEventually(() => chart.locator('text').count()).toBeGreaterThan(60);
  await openedPage.close();
});

test('an actor selected among all charts or in the list becomes the displayed chart', async () => {
  const openedPage = await openPage(browser, [traceOf(crash)], { hash: '#actor=supervisor' });
  const { page } = openedPage;
  await waitUntilOpened(page);
  const all = page.getByRole('button', { name: 'All charts' });
  await all.click();
  await page.locator('.chart-card[data-actor="status"] button').click();
  await expectEventually(() => page.locator('.chart-head h2').innerText()).toBe('status');
  await all.click();
  // The list also opens the previously selected actor.
  await page.locator('.actors [data-actor="status"]').click();
  await expectEventually(() => page.locator('.chart-head h2').innerText()).toBe('status');
  await openedPage.close();
});

test('the sequence is as wide as its lanes need, and names and labels are complete or shortened in the middle', async () => {
  const openedPage = await openPage(browser, [traceOf(crash)]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  const pane = (await page.locator('.sequence-pane').boundingBox())!;
  expect(pane.width).toBeGreaterThan(560);
  const names = page.locator('.sequence-name');
  expect(await names.count()).toBeGreaterThan(7);
  const boxes = await names.evaluateAll((elements) =>
    (elements as unknown as BoxElement[]).map((name) => ({
      text: name.textContent,
      title: name.getAttribute('title'),
      isCut: name.scrollWidth > name.clientWidth || name.scrollHeight > name.clientHeight,
      left: name.offsetLeft,
      right: name.offsetLeft + name.offsetWidth,
    })),
  );
  expect(boxes.filter(({ isCut }) => isCut)).toEqual([]);
  for (const [i, { left }] of boxes.entries()) expect(left).toBeGreaterThanOrEqual(boxes[i - 1]?.right ?? 0);
  for (const { text, title } of boxes) expect(text!.includes('…') || title!.startsWith(text!)).toBe(true);
  const width = await page
    .locator('.sequence-page')
    .evaluate((element) => (element as unknown as BoxElement).offsetWidth);
  const textBoxes = await page.locator('.sequence-text, .sequence-note, .sequence-born').evaluateAll((elements) =>
    (elements as unknown as BoxElement[]).map((element) => {
      const isCentred = !element.className.includes('sequence-text');
      const left = element.offsetLeft - (isCentred ? element.offsetWidth / 2 : 0);
      return { text: element.textContent, left, right: left + element.offsetWidth };
    }),
  );
  expect(textBoxes.length).toBeGreaterThan(10);
  expect(textBoxes.filter(({ left, right }) => left < 134 || right > width)).toEqual([]);
  // At any horizontal scroll position, the name of each visible row is visible.
  for (const scrollShare of [0, 0.5, 1]) {
    await page.locator('.sequence-scroll').evaluate((element, to) => {
      const scroller = element as unknown as ScrollElement;
      scroller.scrollLeft = to * (scroller.scrollWidth - scroller.clientWidth);
    }, scrollShare);
    await expectEventually(async () => {
      const rows = await readVisibleRows(page);
      return rows.length > 6 && rows.filter(({ isWhole }) => !isWhole);
    }).toEqual([]);
  }
  await openedPage.close();
});

test('a long payload fills its row, leaves the name of its event visible, and is complete in its tooltip', async () => {
  const reason = `the end of it ${'and what is said of it '.repeat(10)}ends`;
  const actors = ['agent', 'supervisor', 'status', 'epoch-0', 'epoch-0/process', 'other', 'one-more', 'last-of-all'];
  const openedPage = await openPage(browser, [
    writtenTrace([
      ...actors.map((actor): TraceBody => ({ kind: 'spawn', actor })),
      {
        kind: 'event',
        from: 'other',
        to: 'last-of-all',
        event: { type: 'process.exited', reason },
      },
    ]),
  ]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  const row = page.locator(`.sequence-row[data-record="${actors.length + 1}"]`);
  const [name] = (await readVisibleRows(page)).filter(({ text }) => text?.startsWith('process.exited') === true);
  expect(name).toMatchObject({ isWhole: true });
  expect(await row.getAttribute('title')).toContain(reason);
  await page.getByRole('button', { name: 'Maximize sequence' }).click();
  // Only a row that begins at the left edge is cut off.
  await expectEventually(async () => {
    const [textBox, scrollBox] = await Promise.all([
      row.locator('.sequence-text').boundingBox(),
      page.locator('.sequence-scroll').boundingBox(),
    ]);
    return textBox!.width / (scrollBox!.width - 134 - 170);
  }).toBeGreaterThan(0.9);
  await openedPage.close();
});

test('the cause chain shows one step in each direction, all steps on request, and two keys move along it', async () => {
  // A changed certificate, which led to a restart.
  const startSeq = crash.records.find(
    (record) =>
      record.kind === 'event' &&
      record.event.type === 'files.changed' &&
      record.t > 100_000 &&
      crash.records.some((other) => 'cause' in other && other.cause === record.seq),
  )!.seq;
  const openedPage = await openPage(browser, [traceOf(crash)], { hash: `#record=${startSeq}` });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await expectEventually(() => shownSeq(page)).toBe(startSeq);
  await page.keyboard.press(']');
  await expectEventually(() => shownSeq(page)).toBeGreaterThan(startSeq);
  await page.keyboard.press('[');
  await expectEventually(() => shownSeq(page)).toBe(startSeq);

  await page.getByRole('button', { name: 'Causal chain' }).click();
  await expectEventually(() => page.locator('.story-words').innerText()).toMatch(
    new RegExp(`of #${startSeq}: \\d+ records.*, (?:[3-9]|1\\d) actors, `),
  );
  const [, records = 0] = /(\d+) records/.exec(await page.locator('.story-words').innerText())!.map(Number);
  expect(records).toBeGreaterThan(15);
  // The path crosses lanes (with a hollow mark for an actor without a lane), charts, actors and the sequence.
  const path = page.locator('.story-path[data-whole]');
  expect(await path.locator('circle').count()).toBeGreaterThan(3);
  expect(await path.locator('circle.folded').count()).toBeGreaterThan(0);
  expect(await page.locator('.chart-chip.story').count()).toBeGreaterThan(2);
  expect(await page.locator('.story-count').count()).toBeGreaterThan(2);
  const seenSeqs = new Set<number>();
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press(']');
    await nextFrame(page);
    seenSeqs.add((await shownSeq(page))!);
    expect(await page.locator('.sequence-row.here, .sequence-row.near').count()).toBe(1);
  }
  expect(seenSeqs.size).toBe(12);
  expect(await page.locator('.sequence-row.story').count()).toBeGreaterThan(4);
  await page.getByRole('button', { name: 'Causal chain' }).click();
  await expectEventually(() => path.count()).toBe(0);
  await openedPage.close();
});

test.each([
  { width: 1_024, height: 768 },
  // 1440 × 900 at 200 %.
  { width: 720, height: 450 },
  { width: 390, height: 844 },
])('the page scrolls vertically at $width × $height, and nothing is cut off horizontally', async (viewport) => {
  const openedPage = await openPage(browser, [traceOf(crash)], { viewport });
  const { page } = openedPage;
  await waitUntilOpened(page);
  const root = page.locator('html');
  const scrollWidth = (): Promise<number> => root.evaluate((html) => (html as unknown as BoxElement).scrollWidth);
  await expectEventually(scrollWidth).toBe(viewport.width);
  // The record at which the page opens is visible, and no control covers the chart.
  await expectNoOverlap(page, ['.chart-viewport', '.chart-zoom']);
  expect((await readVisibleRows(page)).filter(({ isWhole }) => !isWhole)).toEqual([]);
  if (viewport.height > 700) {
    await expectEventually(async () => {
      const element = await page.locator('.sequence-row.here, .sequence-row.near').boundingBox();
      const transportBox = await page.locator('.transport').boundingBox();
      return (
        element !== null && element.y > 0 && element.y + element.height <= Math.min(transportBox!.y, viewport.height)
      );
    }).toBe(true);
  }
  // During a hot restart the note about the states of the status port is long.
  const handover = crash.records.find(
    (record) => record.kind === 'event' && record.event.type === 'handover.began',
  )!.seq;
  await page.evaluate(`location.hash = '#record=${handover}'`);
  await expectEventually(() => shownSeq(page)).toBe(handover);
  await expectEventually(async () =>
    (await readVisibleRows(page)).some(({ text }) => text?.startsWith('handing over') === true),
  ).toBe(true);
  expect((await readVisibleRows(page)).filter(({ isWhole }) => !isWhole)).toEqual([]);
  for (const pane of ['.actors', '.chart-pane', '.sequence-pane', '.timeline', '.transport', '.details']) {
    await page.locator(pane).scrollIntoViewIfNeeded();
    const box = (await page.locator(pane).boundingBox())!;
    expect([pane, box.x >= 0, box.x + box.width <= viewport.width, box.height > 30]).toEqual([pane, true, true, true]);
  }
  await openedPage.close();
});

test.each([1_440, 860, 390])('the list of search results fits a window with a width of %i px', async (width) => {
  const openedPage = await openPage(browser, [traceOf(crash)], { viewport: { width, height: 844 } });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await page.locator('#search').fill('epoch');
  await expectEventually(() => page.locator('.found .record-link').count()).toBeGreaterThan(0);
  const { x, width: boxWidth } = (await page.locator('.found').boundingBox())!;
  expect({ left: x >= 0, right: x + boxWidth <= width }).toEqual({ left: true, right: true });
  await openedPage.close();
});

/** Returns how far the name of each visible row of the sequence extends beyond the left and right edges. */
async function readVisibleRows(
  page: Page,
): Promise<{ text: string | null; from: number; to: number; isWhole: boolean }[]> {
  const scroller = (await page.locator('.sequence-scroll').boundingBox())!;
  const rowBoxes = await page.locator('.sequence-row').evaluateAll((rows) =>
    (rows as unknown as BoxElement[]).map((row) => {
      const rowLabels = [...row.querySelectorAll('.sequence-label, .sequence-note, .sequence-born')];
      // If the arrow has no label, the box of the new actor has it.
      const lastLabel = rowLabels.at(-1);
      const { left = 0, right = 0 } = lastLabel?.getBoundingClientRect() ?? {};
      const { top, bottom } = row.getBoundingClientRect();
      return { text: lastLabel?.textContent ?? null, left, right, top, bottom };
    }),
  );
  return rowBoxes
    .filter(({ top, bottom }) => top >= scroller.y + 40 && bottom <= scroller.y + scroller.height - 8)
    .map(({ text, left, right }) => {
      const from = Math.round(left - scroller.x - 134);
      const to = Math.round(right - scroller.x - scroller.width);
      return { text, from, to, isWhole: from >= 0 && to <= 0 };
    });
}

/** Fails if two of the elements overlap. */
async function expectNoOverlap(page: Page, selectors: readonly string[]): Promise<void> {
  const boxes = await Promise.all(selectors.map(async (one) => ({ one, ...(await page.locator(one).boundingBox())! })));
  const overlaps = boxes.flatMap((a, i) =>
    boxes
      .slice(i + 1)
      .filter((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)
      .map((b) => `${a.one} and ${b.one}`),
  );
  expect(overlaps).toEqual([]);
}

/** Whether a lane is completely visible between the axis and the lower edge of the lanes. */
async function isLaneVisible(lane: Locator): Promise<boolean> {
  const [laneBox, lanesBox] = await Promise.all([lane.boundingBox(), lane.page().locator('.lanes').boundingBox()]);
  if (laneBox === null || lanesBox === null) return false;
  return laneBox.y >= lanesBox.y + axisHeight - 1 && laneBox.y + laneBox.height <= lanesBox.y + lanesBox.height + 1;
}

/** Retries, because a busy machine draws late. */
function expectEventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}

/** The DOM properties of an element that are read in the browser. */
interface BoxElement {
  readonly className: string;
  readonly textContent: string | null;
  readonly scrollWidth: number;
  readonly scrollHeight: number;
  readonly clientWidth: number;
  readonly clientHeight: number;
  readonly offsetLeft: number;
  readonly offsetWidth: number;
  getAttribute(name: string): string | null;
  querySelectorAll(selector: string): Iterable<BoxElement>;
  getBoundingClientRect(): Record<'left' | 'right' | 'top' | 'bottom', number>;
}

interface ScrollElement extends BoxElement {
  scrollLeft: number;
}
