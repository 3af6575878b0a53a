/** User interactions with the page: keyboard, wheel, dropped files and exported files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkTraces } from '../../src/debugger/check/check-command.ts';
import { launchBrowser, openAddress, openPage } from '../browser/open-page.ts';
import { drop, shownRecordCount, shownSeq, waitUntilIdle, waitUntilOpened } from '../browser/page-state.ts';
import { traceOf, writtenTrace } from '../browser/written-trace.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

const life = recordedLife([
  { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } },
  { gap: { ms: 60_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
  { gap: { ms: 60_000 }, scheduledEvent: { kind: 'ready?' } },
]);
const trace = traceOf(life);

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await launchBrowser();
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-hands-'));
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('keyboard shortcuts of the page', () => {
  test('W, S, A and D zoom and move the timeline at the pointer, by physical key position', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100&marks=90,110' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    const initialFlags = await flagsAt(page);
    await page.mouse.move(initialFlags.track + initialFlags.first, initialFlags.top + 40);
    // On a French keyboard this key types Z.
    for (let i = 0; i < 3; i++) await press(page, { key: 'z', code: 'KeyW' });
    await waitUntilIdle(page);
    const nearer = await flagsAt(page);
    expect(nearer.apart).toBeGreaterThan(initialFlags.apart * 2);
    expect(nearer.first).toBeCloseTo(initialFlags.first, 0);
    await press(page, { key: 'd', code: 'KeyD' });
    await waitUntilIdle(page);
    expect((await flagsAt(page)).first).toBeLessThan(nearer.first - 50);
    await press(page, { key: 'q', code: 'KeyA' });
    await waitUntilIdle(page);
    expect((await flagsAt(page)).first).toBeCloseTo(nearer.first, 0);
    for (let i = 0; i < 3; i++) await press(page, { key: 's', code: 'KeyS' });
    await waitUntilIdle(page);
    expect((await flagsAt(page)).apart).toBeCloseTo(initialFlags.apart, 0);
    await openedPage.close();
  });

  test('F centers the selection and, pressed again, fits it, and R makes it the range', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100&actor=epoch-0' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await page.keyboard.press('r');
    await expectEventually(() => page.locator('.range-text').innerText()).toMatch(/^records \d+–\d+/);
    const rangeText = await page.locator('.range-text').innerText();
    const shade = page.locator('.range-handle');
    const selectedWidth = async (): Promise<number> =>
      (await shade.nth(1).boundingBox())!.x - (await shade.nth(0).boundingBox())!.x;
    const trackWidth = (await page.locator('.track').boundingBox())!.width;
    await page.keyboard.press('f');
    await waitUntilIdle(page);
    // The complete trace was visible, so it could not be centered.
    expect(await selectedWidth()).toBeGreaterThan(trackWidth * 0.6);
    for (let i = 0; i < 4; i++) await press(page, { key: 's', code: 'KeyS' });
    for (let i = 0; i < 2; i++) await press(page, { key: 'a', code: 'KeyA' });
    await page.keyboard.press('f');
    await waitUntilIdle(page);
    const smallWidth = await selectedWidth();
    expect(smallWidth).toBeLessThan(trackWidth * 0.5);
    await page.keyboard.press('f');
    await waitUntilIdle(page);
    expect(await selectedWidth()).toBeGreaterThan(trackWidth * 0.6);
    expect(await page.locator('.range-text').innerText()).toBe(rangeText);
    await openedPage.close();
  });

  test('. and , step through the events of the selected actor, and I and O set the ends of the range', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100&actor=supervisor' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await page.keyboard.press('Shift+ArrowRight');
    const next = await shownSeq(page);
    await page.keyboard.press(',');
    await page.keyboard.press('.');
    expect(await shownSeq(page)).toBe(next);
    expect(next).toBeGreaterThan(100);
    await page.keyboard.press('i');
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('o');
    expect(await page.locator('.range-text').innerText()).toMatch(new RegExp(`^records ${next}–${next! + 5},`));
    await openedPage.close();
  });

  test('M marks a record, the link contains the mark, and Shift + M jumps to the mark', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await page.keyboard.press('m');
    await page.keyboard.press('Home');
    await page.keyboard.press('Shift+M');
    expect(await shownSeq(page)).toBe(100);
    const flag = page.getByRole('button', { name: /^Marked: record 100, / });
    expect(await flag.count()).toBe(1);
    await expectEventually(() => page.url()).toContain('marks=100');
    await page.reload();
    await waitUntilOpened(page);
    await page.keyboard.press('End');
    await flag.click();
    expect(await shownSeq(page)).toBe(100);
    await page.keyboard.press('m');
    await expectEventually(() => flag.count()).toBe(0);
    await openedPage.close();
  });

  test('single-character shortcuts can be disabled permanently, and the help lists every key', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    for (const key of ['W', 'S', 'A', 'D', 'F', 'R', 'M', '.', ',', 'I', 'O', '/', '?']) {
      expect(await help.locator('kbd').getByText(key, { exact: true }).count(), key).toBe(1);
    }
    await help.getByRole('checkbox', { name: /single character/ }).uncheck();
    await page.keyboard.press('Escape');
    await page.reload();
    await waitUntilOpened(page);
    for (const key of ['m', 'r', 'f', 'w', '/', '?', '.', '+']) await page.keyboard.press(key);
    await waitUntilIdle(page);
    expect(await page.locator('.flag').count()).toBe(0);
    expect(await page.locator('.range-text').count()).toBe(0);
    expect(await help.count()).toBe(0);
    expect(await shownSeq(page)).toBe(100);
    // Other keys keep working.
    await page.keyboard.press('ArrowRight');
    expect(await shownSeq(page)).toBe(101);
    await openedPage.close();
  });
});

test('the wheel zooms over the axis and with Ctrl, and scrolls lanes that do not fit', async () => {
  const openedPage = await openPage(browser, [trace], { hash: '#record=100&marks=90,110' });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await page.addStyleTag({ content: '.shell > .timeline { flex: 0 0 90px !important; }' });
  const lanes = page.locator('.lanes');
  const scrolled = (): Promise<number> => lanes.evaluate((element) => (element as unknown as Scrolled).scrollTop);
  await lanes.evaluate((element) => (element as unknown as Scrolled).scrollTo(0, 0));
  const initialFlags = await flagsAt(page);
  await page.mouse.move(initialFlags.track + 300, initialFlags.top + 45);
  await page.mouse.wheel(0, 20);
  await expectEventually(scrolled).toBeGreaterThan(10);
  await waitUntilIdle(page);
  expect((await flagsAt(page)).apart).toBeCloseTo(initialFlags.apart, 0);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -400);
  await page.keyboard.up('Control');
  await expectEventually(async () => (await flagsAt(page)).apart).toBeGreaterThan(initialFlags.apart * 1.5);
  await page.keyboard.press('0');
  await expectEventually(async () => (await flagsAt(page)).apart).toBeCloseTo(initialFlags.apart, 0);
  await page.mouse.move(initialFlags.track + 300, initialFlags.top + 8);
  await page.mouse.wheel(0, -400);
  await expectEventually(async () => (await flagsAt(page)).apart).toBeGreaterThan(initialFlags.apart * 1.5);
  await openedPage.close();
});

interface Scrolled {
  readonly scrollTop: number;
  scrollTo(x: number, y: number): void;
}

describe('a file dropped on the page', () => {
  test('opens with its charts, and the previous trace can be selected again', async () => {
    const openedPage = await openPage(browser, [writtenTrace([{ kind: 'spawn', actor: 'alone' }])]);
    const { page } = openedPage;
    await waitUntilOpened(page);
    await drop(page, [{ name: 'agent.trace', body: await wholeText() }]);
    await expectEventually(() => shownRecordCount(page)).toBe(life.records.length);
    expect(await page.title()).toContain('agent.trace');
    await expectEventually(() => page.locator('.chart-viewport .state').count()).toBeGreaterThan(3);
    // A second file of the same name is a separate source.
    await drop(page, [{ name: 'agent.trace', body: await wholeText() }]);
    await expectEventually(() => page.getByLabel('Source').locator('option').allInnerTexts()).toEqual([
      'written.trace',
      'agent.trace',
      'agent.trace (2)',
    ]);
    await page.getByLabel('Source').selectOption('written.trace');
    await expectEventually(() => shownRecordCount(page)).toBe(1);
    await openedPage.close();
  });

  test('opens by keyboard with a file dialog, too', async () => {
    const openedPage = await openPage(browser, [writtenTrace([{ kind: 'spawn', actor: 'alone' }])]);
    await waitUntilOpened(openedPage.page);
    await openedPage.page
      .getByLabel('Open traces')
      .setInputFiles({ name: 'chosen.trace', mimeType: '', buffer: Buffer.from(await wholeText()) });
    await expectEventually(() => shownRecordCount(openedPage.page)).toBe(life.records.length);
    await openedPage.close();
  });

  const none: readonly (readonly [string, string | Buffer, RegExp])[] = [
    ['notes.txt', 'not a trace at all\n', /notes\.txt cannot be opened: line 1/],
    ['empty.trace', '', /empty\.trace cannot be opened: it is empty/],
    ['agent.trace.gz', gzipSync('x'), /it is compressed; decompress it/],
    ['report.html', '<!doctype html><title>x</title>', /it is an HTML page; if chartpilot wrote it, open it/],
    [
      'headless.trace',
      '{"kind":"spawn","seq":1,"t":0,"actor":"a"}\n',
      /line 1: a spawn record comes before the header/,
    ],
    [
      'future.trace',
      `${JSON.stringify({ ...life.header, version: 99 })}\n`,
      /unsupported format version 99.*use the chartpilot release/,
    ],
  ];

  test('leaves the current trace open and shows the reason if it is not a trace', async () => {
    const openedPage = await openPage(browser, [trace], { hash: '#record=100' });
    const { page } = openedPage;
    await waitUntilOpened(page);
    for (const [name, body, reason] of none) {
      await drop(page, [{ name, body }]);
      await expectEventually(() => page.locator('.banners').innerText()).toMatch(reason);
      expect([await shownSeq(page), await shownRecordCount(page)], name).toEqual([100, life.records.length]);
      expect(await page.getByLabel('Source').count(), name).toBe(0);
    }
    await openedPage.close();
  });
});

test('a dropped file is lost on reload, and the page reports this and offers the available traces', async () => {
  const openedPage = await openPage(browser, [writtenTrace([{ kind: 'spawn', actor: 'alone' }])]);
  const { page } = openedPage;
  await waitUntilOpened(page);
  await drop(page, [{ name: 'agent.trace', body: await wholeText() }]);
  await expectEventually(() => shownRecordCount(page)).toBe(life.records.length);
  await expectEventually(() => page.url()).toContain('source=1');
  await page.reload();
  const banners = page.locator('.banners');
  await expectEventually(() => banners.innerText()).toMatch(/agent\.trace is no longer loaded/);
  expect(await banners.getByRole('button', { name: 'Try again' }).count()).toBe(0);
  await page.locator('.opening').getByRole('button', { name: 'written.trace' }).click();
  await expectEventually(() => shownRecordCount(page)).toBe(1);
  // The page also reports a number that belongs to no dropped file.
  await page.evaluate('location.hash = "#source=99"');
  await expectEventually(() => banners.innerText()).toMatch(/Source 99 does not exist/);
  expect(await shownRecordCount(page)).toBe(1);
  await openedPage.close();
});

test('an unavailable source leaves the current view open, and the page shows the reason', async () => {
  const secondTrace = writtenTrace([{ kind: 'spawn', actor: 'alone' }]);
  const openedPage = await openPage(browser, [trace, { ...secondTrace, name: 'other.trace' }], {
    hash: '#record=100',
    expected: /ERR_FAILED|Failed to load|Failed to fetch/,
  });
  const { page } = openedPage;
  await waitUntilOpened(page);
  // Simulates that the page's server has exited.
  await page.route('**/*', (route) => route.abort());
  await page.getByLabel('Source').selectOption('other.trace');
  await expectEventually(() => page.locator('.banners').innerText()).toMatch(
    /other\.trace cannot be opened.*server of this page does not respond.*still shown/,
  );
  expect([await shownSeq(page), await shownRecordCount(page)]).toEqual([100, life.records.length]);
  expect(await page.getByLabel('Source').locator('option:checked').innerText()).toBe('written.trace');
  await page.unroute('**/*');
  await page.getByLabel('Source').selectOption('other.trace');
  await expectEventually(() => shownRecordCount(page)).toBe(1);
  await openedPage.close();
});

test('an exported file contains the selected part with its facts, opens without a server, and can be exported again', async () => {
  // The middle of a restart, whose result is recorded later.
  const lostSeq = life.records.find(
    (record) =>
      record.kind === 'event' &&
      record.event.type === 'epoch.failed' &&
      ['serving'].includes(String(record.event.during)),
  )!.seq;
  const servingAgainSeq = life.records.find(
    (record) => record.seq > lostSeq && record.kind === 'event' && record.event.type === 'serving.began',
  )!.seq;
  const openedPage = await openPage(browser, [trace], {
    hash: `#record=${lostSeq}&actor=supervisor&marks=${lostSeq - 2}`,
  });
  await waitUntilOpened(openedPage.page);
  await expectEventually(() => openedPage.page.locator('.finding-bar .current-finding').innerText()).toMatch(
    /failed while serving: /,
  );
  const summary = await openedPage.page.locator('.finding-bar .current-finding').innerText();
  const file = await copyAsFile(openedPage.page);
  await openedPage.close();
  const html = readFileSync(file, 'utf8');
  expect(html).not.toContain(tmpdir());

  const other = await openAddress(browser, pathToFileURL(file).href, { offline: true });
  await waitUntilOpened(other.page);
  await expectEventually(() => shownSeq(other.page)).toBe(lostSeq);
  expect(await shownRecordCount(other.page)).toBeLessThan(life.records.length);
  await expectEventually(() => other.page.locator('.finding-bar .current-finding').innerText()).toBe(summary);
  const partText = await other.page.locator('[data-part-of]').innerText();
  const [, first, last, of] = /part of a trace: records (\d+)–(\d+) of (\d+)/i.exec(partText)!.map(Number);
  expect([last! - first! + 1, of]).toEqual([await shownRecordCount(other.page), life.records.length]);
  expect(last).toBeGreaterThanOrEqual(servingAgainSeq);
  // The part contains the result of the restart, and none for a shutdown that did not happen.
  await other.page.locator('.all-findings summary').click();
  const all = async (): Promise<string> => (await other.page.locator('.all-findings li').allInnerTexts()).join('\n');
  await expectEventually(all).toMatch(/serves after|replaced/);
  expect(await all()).not.toMatch(/no Envoy serves|trace ends/);
  await other.page.locator('.all-findings summary').click();
  await expectEventually(() => other.page.url()).toMatch(
    new RegExp(`#.*record=${lostSeq}&actor=supervisor&marks=${lostSeq - 2}`),
  );
  await expectEventually(() => other.page.locator('.chart-viewport .state').count()).toBeGreaterThan(3);
  expect(await other.page.locator('[data-gaps]').count()).toBe(0);
  // The chain of causes is complete, and the part conforms to the sequence contract.
  await expectEventually(() => other.page.locator('[data-part="causes"]').innerText()).not.toMatch(/not in the trace/);
  const sentOn = await copyAsFile(other.page);
  await other.close();
  const third = await openAddress(browser, pathToFileURL(sentOn).href, { offline: true });
  await waitUntilOpened(third.page);
  await expectEventually(() => shownSeq(third.page)).toBe(lostSeq);
  await expectEventually(() => third.page.locator('.finding-bar .current-finding').innerText()).toBe(summary);
  expect(await third.page.locator('[data-part-of]').innerText()).toContain(`of ${life.records.length}`);
  await third.close();
  const partFile = join(folder, 'part.trace');
  // NDJSON: `<` is written as an escape that a JSON parser decodes.
  writeFileSync(partFile, /id="chartpilot-trace-0">([^<]*)</.exec(html)![1]!);
  const outputLines: string[] = [];
  const print = (line: string): void => void outputLines.push(line);
  expect(await checkTraces([partFile], { format: 'text' }, { out: print, error: print }), outputLines.join('')).toBe(0);
});

async function copyAsFile(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Export' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'Download as HTML page' }).click();
  const finishedDownload = await download;
  const path = join(folder, `${Math.random().toString(36).slice(2)}-${finishedDownload.suggestedFilename()}`);
  await finishedDownload.saveAs(path);
  return path;
}

async function wholeText(): Promise<string> {
  return text(await trace.read({ follow: false }));
}

async function press(page: Page, key: { readonly key: string; readonly code: string }): Promise<void> {
  await page.evaluate(
    (pressed) => (globalThis as unknown as { inPage: { press(key: unknown): void } }).inPage.press(pressed),
    key,
  );
}

/** Positions of two marked records on the axis, visible or not, and of the timeline on the page. */
async function flagsAt(page: Page): Promise<{ first: number; apart: number; track: number; top: number }> {
  const flagPositions = await page
    .locator('.flag')
    .evaluateAll((flags) => flags.map((flag) => Number(/translateX\((.*)px\)/.exec(flag.getAttribute('style')!)![1])));
  const { x, y } = (await page.locator('.axis').boundingBox())!;
  return { first: flagPositions[0]!, apart: flagPositions[1]! - flagPositions[0]!, track: x, top: y };
}

/** Retries, because a busy machine draws late. */
function expectEventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read);
}
