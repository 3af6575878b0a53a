/** What a person sees of a trace at once, on screens of several sizes: in a real browser. */
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { opened } from '../browser/page-state.ts';
import { traceOf } from '../browser/written-trace.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const hour = 3_600_000;
/** Of the timeline, above its lanes. */
const axisHeight = 30;
/** A certificate every twelve hours. */
const week = recordedLife([
  ...Array.from({ length: 6 }, () => ({ gap: { ms: 12 * hour }, happens: { what: 'certificate' } as const })),
  { gap: { ms: 60_000 }, happens: { what: 'ready?' } },
]);
/** Three of them, and an Envoy that was killed at the end. */
const crash = recordedLife([
  ...Array.from({ length: 9 }, () => ({ gap: { ms: 90_000 }, happens: { what: 'certificate' } as const })),
  { gap: { ms: 90_000 }, happens: { what: 'crash', whom: 'serving' } },
  { gap: { ms: 30_000 }, happens: { what: 'ready?' } },
]);

test('at 1440 × 900 the lane of the epoch that failed is seen, and what is bad beyond the border is said', async () => {
  const open = await openPage(browser, [traceOf(crash)]);
  const { page } = open;
  await opened(page);
  const failed = page.locator('.lane:has(.mark[data-kind="failure"])').last();
  await shown(() => isSeen(failed)).toBe(true);
  const hint = page.locator('.lanes-hint.below');
  await page
    .locator('.lanes')
    .evaluate((lanes) => (lanes as unknown as { scrollTo(x: number, y: number): void }).scrollTo(0, 0));
  await shown(() => hint.getAttribute('aria-label')).toMatch(/^\d lanes? below, [1-9]\d* of their marks bad/);
  expect(await isSeen(failed)).toBe(false);
  await hint.click();
  await shown(() => isSeen(failed)).toBe(true);
  await open.close();
});

test('a certificate every 12 hours: each restart is wide enough to be read, its date beside it, idle hours are folded', async () => {
  const open = await openPage(browser, [traceOf(week)]);
  const { page } = open;
  await opened(page);
  const folds = page.locator('.idle');
  await shown(() => folds.count()).toBe(6);
  expect(await folds.first().innerText()).toMatch(/^12 h|11 h 59 min$/);
  const draining = page.locator('.bar[data-phase="draining"] rect');
  expect(await draining.count()).toBe(7);
  const widths = await draining.evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('width'))));
  expect(Math.min(...widths)).toBeGreaterThan(30);
  const walls = await page.locator('.axis .wall').allTextContents();
  expect(walls.filter((wall) => /^[A-Z][a-z]{2} \d+ \d\d:\d\d/.test(wall)).length).toBeGreaterThanOrEqual(6);
  expect(await page.locator('[data-lane="program"] .mark-label').allTextContents()).toContain('Hot restart +1');

  // A fold opens, and all of them.
  await folds.first().getByRole('button').click();
  await shown(() => folds.count()).toBe(5);
  const idle = page.getByRole('button', { name: 'Fold idle time' });
  expect(await idle.getAttribute('aria-pressed')).toBe('false');
  await idle.click();
  await shown(() => folds.count()).toBe(6);
  await idle.click();
  await shown(() => folds.count()).toBe(0);
  await open.close();
});

/** Whether all of a lane is to be seen between the axis and the lower border of the lanes. */
async function isSeen(lane: Locator): Promise<boolean> {
  const [own, around] = await Promise.all([lane.boundingBox(), lane.page().locator('.lanes').boundingBox()]);
  if (own === null || around === null) return false;
  return own.y >= around.y + axisHeight - 1 && own.y + own.height <= around.y + around.height + 1;
}

/** A busy machine draws later. */
function shown<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read, { timeout: 20_000 });
}
