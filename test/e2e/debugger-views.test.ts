/** The main views on three screens, light and dark, compared with docs/pictures (UPDATE_PICTURES=1 replaces them). */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { waitUntilOpened } from '../browser/page-state.ts';
import { takeView } from '../browser/pictures.ts';
import { traceOf } from '../browser/written-trace.ts';
import { sized } from '../harness/size-of-run.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const hour = 3_600_000;
/** The certificate changes every twelve hours, and an Envoy is killed. */
const life = recordedLife([
  ...Array.from({ length: 5 }, () => ({ gap: { ms: 12 * hour }, scheduledEvent: { kind: 'certificate' } as const })),
  { gap: { ms: 40_000 }, scheduledEvent: { kind: 'ready?' } },
]);
// Each run has the same time and date.
const source = traceOf({ ...life, header: { ...life.header, pid: 4_242, startedAt: '2026-11-20T20:00:00.000Z' } });

const screens = [
  { width: 1_440, height: 900 },
  { width: 1_024, height: 768 },
  { width: 390, height: 844 },
];
const press = (name: string) => (page: Page) => page.getByRole('button', { name }).click();
const views: readonly (readonly [string, (page: Page) => Promise<void>])[] = [
  ['page', async () => {}],
  ['chart', press('Maximize chart')],
  ['sequence', press('Maximize sequence')],
  ['story', press('Causal chain')],
];

// The long form (CHARTPILOT_TESTS=full) compares all screens; the layout tests always check for cut-off labels.
describe.each(sized({ short: screens.slice(0, 1), full: screens }))(
  'the page at $width × $height',
  ({ width, height }) => {
    test.each(['light', 'dark'] as const)('shows its main views with the %s theme', async (colorScheme) => {
      const openedPage = await openPage(browser, [source], {
        viewport: { width, height },
        colorScheme,
        hash: '#actor=supervisor',
      });
      const { page } = openedPage;
      await waitUntilOpened(page);
      for (const [view, show] of views) {
        // The small screen shows one pane at a time, and the dark theme only changes colors.
        if (view !== 'page' && (colorScheme === 'dark' || width < 1_000)) continue;
        await show(page);
        await takeView(`view-${view}-${width}-${colorScheme}`, page);
        await page.keyboard.press('Escape');
      }
      await openedPage.close();
    });
  },
);
