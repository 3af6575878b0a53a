/** Accessibility of the page: axe finds no violation in any view, and each mark and state has a name and is reachable by keyboard. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memorySource } from '../../src/debugger/visualize/memory-source.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { expectAria } from '../browser/aria-snapshots.ts';
import { connectionsTrace } from '../browser/large-traces.ts';
import { launchBrowser, type OpenOptions, openPage } from '../browser/open-page.ts';
import { type PageHooks, shownSeq, waitUntilIdle, waitUntilOpened } from '../browser/page-state.ts';
import { traceOf, writtenTrace } from '../browser/written-trace.ts';
import { eventBody } from '../fixtures/event-body.ts';
import { sized } from '../harness/size-of-run.ts';
import { numberOf, recordedLife } from '../simulation/recorded-life.ts';

const life = recordedLife([
  { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } },
  { gap: { ms: 60_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
  { gap: { ms: 60_000 }, scheduledEvent: { kind: 'ready?' } },
]);
const sidecar = traceOf(life);
/** The end of a restart: the replaced Envoy has exited. */
const replacedSeq = numberOf(life, 'stop', 'epoch-0');
const replacedHash = `#record=${replacedSeq}`;
const supervisorHash = `${replacedHash}&actor=supervisor`;
const departing = writtenTrace(
  [
    ...['agent', 'supervisor', 'status', 'cert-watcher'].map((actor) => ({ kind: 'spawn', actor }) as const),
    eventBody('status', 'cert-watcher', 'status.surprises'),
    { ...eventBody('outside', 'agent', 'go.now'), seq: 40 },
  ],
  { program: 'pilot-agent' },
);
const manyConnections = memorySource('discovery.trace', connectionsTrace(30));
const unreadableTrace = memorySource('broken.trace', 'nothing that is one\n');

interface View {
  readonly name: string;
  readonly source: PageSource;
  readonly options?: OpenOptions;
  readonly show?: (page: Page) => Promise<unknown>;
}

const views: readonly View[] = [
  {
    name: 'a restart',
    source: sidecar,
    options: { hash: `${supervisorHash}&range=${replacedSeq - 30}-${replacedSeq + 50}&marks=${replacedSeq - 10}` },
  },
  {
    name: 'all charts',
    source: sidecar,
    options: { hash: replacedHash },
    show: (page) => page.getByRole('button', { name: 'All charts' }).click(),
  },
  { name: 'the end of the trace', source: sidecar, show: (page) => page.keyboard.press('End') },
  { name: 'a deviation and a gap', source: departing },
  { name: 'many actors of one machine', source: manyConnections, show: openGroup },
  {
    name: 'all charts of many actors',
    source: manyConnections,
    show: (page) => page.getByRole('button', { name: 'All charts' }).click(),
  },
  { name: 'a file that is not a trace', source: unreadableTrace },
];

/** Overlays of the page, which are checked separately; the long form also checks the page below them. */
const overlays: readonly {
  readonly name: string;
  readonly opens: string;
  readonly show: (page: Page) => Promise<unknown>;
}[] = [
  { name: 'a search', opens: 'search', show: search },
  { name: 'hints for a search', opens: 'search', show: (page) => page.keyboard.press('/') },
  { name: 'the help', opens: '#help', show: (page) => page.keyboard.press('?') },
  { name: 'the export menu', opens: '.export', show: (page) => page.getByRole('button', { name: 'Export' }).click() },
  { name: 'all findings', opens: '.all-findings', show: (page) => page.locator('.all-findings summary').click() },
];

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

describe('accessibility of the page by axe', () => {
  test.each(views)('has no violations in the view "$name", light and dark', async ({ source, options = {}, show }) => {
    const openedPage = await openPage(browser, [source], { ...options, colorScheme: 'light' });
    const { page } = openedPage;
    if (source !== unreadableTrace) await waitUntilOpened(page);
    await show?.(page);
    await waitUntilIdle(page);
    expect(await violations(page), 'light').toEqual([]);
    // Checks the same elements with the colors of the dark theme.
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await violations(page, { rules: ['color-contrast'] }), 'dark').toEqual([]);
    await openedPage.close();
  });

  test('has no violations in overlays, light and dark', async () => {
    const openedPage = await openPage(browser, [sidecar], { hash: replacedHash });
    const { page } = openedPage;
    await waitUntilOpened(page);
    for (const { name, opens, show } of overlays) {
      await page.emulateMedia({ colorScheme: 'light' });
      const popup = page.locator(`${opens} .popup, dialog${opens}[open]`);
      expect(await popup.count(), name).toBe(0);
      await show(page);
      await waitUntilIdle(page);
      expect(await popup.count(), name).toBe(1);
      const checkedPart = sized({ short: opens, full: undefined });
      expect(await violations(page, { part: checkedPart }), `${name}, light`).toEqual([]);
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await violations(page, { part: checkedPart, rules: ['color-contrast'] }), `${name}, dark`).toEqual([]);
      // The first Escape clears the search text, the second one closes the search.
      for (let close = 0; close < 2; close++) await page.keyboard.press('Escape');
      await waitUntilIdle(page);
    }
    await openedPage.close();
  });

  test('has no violations on a valid page, and has those that the test adds', async () => {
    const openedPage = await openPage(browser, [sidecar]);
    await waitUntilOpened(openedPage.page);
    await openedPage.page.evaluate(() => {
      const { document } = globalThis as unknown as {
        document: { body: { insertAdjacentHTML(at: string, html: string): void } };
      };
      document.body.insertAdjacentHTML('beforeend', '<img src="data:,"><button></button>');
    });
    const foundViolations = (await violations(openedPage.page)).join('\n');
    expect(foundViolations).toMatch(/image-alt/);
    expect(foundViolations).toMatch(/button-name/);
    await openedPage.close();
  });
});

describe('the page with only a keyboard', () => {
  test('reaches each mark and phase, which has a unique name and leads to its record', async () => {
    const openedPage = await openPage(browser, [sidecar], { hash: replacedHash });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await waitUntilIdle(page);
    const lanes = page.getByRole('group', { name: /^Phases and marks/ });
    const all = await lanes
      .locator('[data-index]')
      .evaluateAll((elements) => elements.map((labelledElement) => labelledElement.getAttribute('aria-label')!));
    expect(all.length).toBeGreaterThan(8);
    expect(all.every((name) => /^[^:]+: \S/.test(name))).toBe(true);
    await tabTo(page, '.lane-rows');
    const seenNames = new Set<string>();
    await page.keyboard.press('ArrowRight');
    await pressToTheEnd(page, 'ArrowUp');
    do {
      await pressToTheEnd(page, 'ArrowLeft');
      for (const name of await pressToTheEnd(page, 'ArrowRight')) seenNames.add(name);
    } while (await pressed(page, 'ArrowDown'));
    expect([...new Set(all)].filter((name) => !seenNames.has(name))).toEqual([]);
    const mark = await lanes.locator('.mark').last().getAttribute('aria-label');
    for (let pressCount = 0; pressCount < 20 && (await nameInFocus(page)) !== mark; pressCount++)
      await page.keyboard.press('ArrowLeft');
    const index = await lanes.locator('.mark').last().getAttribute('data-index');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => page.evaluate(() => (globalThis as unknown as PageHooks).chartpilot.place()))
      .toBe(Number(index));
    await openedPage.close();
  });

  test('reaches each state of the chart, which has a name with its purpose and whether it is active', async () => {
    const openedPage = await openPage(browser, [sidecar], { hash: supervisorHash });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await waitUntilIdle(page);
    const states = page.locator('.chart-viewport .state');
    const count = await states.count();
    expect(count).toBeGreaterThan(5);
    await tabTo(page, '.chart-viewport');
    const seenNames = new Set<string>();
    for (let down = 0; down < count; down++) {
      await page.keyboard.press('ArrowDown');
      seenNames.add(await nameInFocus(page));
    }
    expect(seenNames.size).toBe(count);
    expect([...seenNames].some((name) => /^running\b.*, active\b/.test(name))).toBe(true);
    expect([...seenNames].filter((name) => name.length > 60).length).toBeGreaterThan(2);
    // The page handles the left and right arrow keys.
    const previous = await shownSeq(page);
    await page.keyboard.press('ArrowRight');
    await expectEventually(() => shownSeq(page)).toBe(previous! + 1);
    await openedPage.close();
  });

  test('scrolls every scrollable area and hides no focused element', async () => {
    const openedPage = await openPage(browser, [sidecar], { hash: supervisorHash });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await waitUntilIdle(page);
    const stops: string[] = [];
    await page.locator('body').click({ position: { x: 1, y: 1 } });
    for (let tab = 0; tab < 150; tab++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => (globalThis as unknown as InPage).inPage.focused());
      if (at === undefined || (stops.length > 5 && at.name === stops[0])) break;
      expect(at.visible, at.name).toBe(true);
      stops.push(at.name);
    }
    expect(stops.length).toBeGreaterThan(30);
    expect(await page.evaluate(() => (globalThis as unknown as InPage).inPage.unreachedScrollers())).toEqual([]);
    await openedPage.close();
  });
});

test('each view of the page matches its reviewed accessibility tree', async () => {
  const hash = `${supervisorHash}&range=${replacedSeq - 10}-${replacedSeq + 10}&marks=${replacedSeq - 2}`;
  const dated = traceOf({ ...life, header: { ...life.header, pid: 7, startedAt: '2026-03-01T03:12:00.000Z' } });
  const openedPage = await openPage(browser, [dated], { hash, timezoneId: 'UTC' });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await waitUntilIdle(page);
  await expectAria('finding', page.getByRole('region', { name: 'Findings' }));
  await expectAria('actors', page.getByRole('region', { name: 'Actors' }));
  await expectAria('timeline', page.getByRole('region', { name: 'Timeline' }));
  await expectAria('transport', page.getByRole('region', { name: 'Playback' }));
  await expectAria('details', page.getByRole('region', { name: 'Details' }));
  await page.keyboard.press('?');
  await expectAria('help', page.getByRole('dialog', { name: 'Keyboard shortcuts' }));
  await openedPage.close();
});

test('the page has no animations with prefers-reduced-motion', async () => {
  const openedPage = await openPage(browser, [sidecar], { hash: supervisorHash, reducedMotion: 'reduce' });
  const { page } = openedPage;
  await waitUntilOpened(page);
  for (let step = 0; step < sized({ short: 5, full: 12 }); step++) {
    await page.keyboard.press('ArrowRight');
    await page.waitForTimeout(160);
    const moving = await page.evaluate(() => (globalThis as unknown as InPage).inPage.moving());
    expect(moving).toEqual([]);
  }
  await openedPage.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeViolation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** One line for each violation: rule, severity, element. Includes best practices beyond WCAG. */
/**
 * @param rules only these rules (default: all)
 * @param part root of the checked elements (default: the page)
 */
async function violations(
  page: Page,
  { rules, part }: { readonly rules?: readonly string[]; readonly part?: string | undefined } = {},
): Promise<string[]> {
  // Reading axe takes as long as checking a small part.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe);
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }) };
  const axeResult = (await page.evaluate(
    `axe.run(${part === undefined ? 'document' : JSON.stringify(part)}, ${JSON.stringify(options)})`,
  )) as {
    violations: readonly AxeViolation[];
  };
  return axeResult.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(
      ({ html, failureSummary }) => `${id} (${impact}): ${html.slice(0, 160)} ${failureSummary.split('\n')[1]}`,
    ),
  );
}

async function openGroup(page: Page): Promise<void> {
  await page.keyboard.press('End');
  await page.locator('[data-group="ads-connection"]').getByRole('button').first().click();
}

async function search(page: Page): Promise<void> {
  await page.keyboard.press('/');
  await page.keyboard.type('epoch');
}

interface InPage {
  readonly inPage: {
    focused(): { readonly name: string; readonly visible: boolean } | undefined;
    unreachedScrollers(): string[];
    moving(): string[];
  };
}

/** Moves the focus with the tab key, as a user does. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let tab = 0; tab < 150; tab++) {
    if (await page.locator(`${selector}:focus`).count()) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${selector} is not reached with the tab key`);
}

async function nameInFocus(page: Page): Promise<string> {
  return page.locator(':focus').evaluate((element) => element.getAttribute('aria-label') ?? '');
}

/** @returns whether the focus moved */
async function pressed(page: Page, key: string): Promise<boolean> {
  const previous = await page.evaluateHandle('document.activeElement');
  await page.keyboard.press(key);
  await waitUntilIdle(page);
  const isMoved = await previous.evaluate(
    (element) => element !== (globalThis as unknown as { document: { activeElement: unknown } }).document.activeElement,
  );
  await previous.dispose();
  return isMoved;
}

/**
 * Repeats the key until the focus stays.
 * @returns the names of the focused elements
 */
async function pressToTheEnd(page: Page, key: string): Promise<string[]> {
  const names = [await nameInFocus(page)];
  for (let step = 0; step < 50 && (await pressed(page, key)); step++) names.push(await nameInFocus(page));
  return names;
}

/** Retries, because a busy machine draws late. */
function expectEventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}
