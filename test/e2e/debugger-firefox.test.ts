/** The main views in Firefox, whose engine lacks some features of Chromium. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PageServer, startPageServer } from '../../src/debugger/visualize/page-server.ts';
import { singleFile } from '../../src/debugger/visualize/single-file.ts';
import { FirefoxPage } from '../browser/firefox.ts';
import { traceOf } from '../browser/written-trace.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

const trace = traceOf(
  recordedLife([
    { gap: { ms: 20_000 }, scheduledEvent: { kind: 'certificate' } },
    { gap: { ms: 60_000 }, scheduledEvent: { kind: 'crash', target: 'serving' } },
    { gap: { ms: 60_000 }, scheduledEvent: { kind: 'ready?' } },
  ]),
);
const pageHash = '#source=0&record=150&actor=supervisor';
/** The right arrow among WebDriver's keys. */
const arrowRight = '\uE014';

let server: PageServer;
let folder: string;
let page: FirefoxPage;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-firefox-page-'));
  server = await startPageServer({ sources: [trace] });
  page = await FirefoxPage.launch();
});

afterAll(async () => {
  await page?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Views {
  readonly actors: number;
  readonly active: number;
  readonly rows: number;
  readonly bars: number;
  readonly marks: number;
  readonly finding: string;
  readonly details: string;
}

test('all views in Firefox show the record of the address, and a key moves to another record', async () => {
  await page.open(server.address + pageHash);
  const shownViews = await views();
  expect(shownViews).toMatchObject({ verdict: expect.stringMatching(/epoch/), details: expect.stringMatching(/#150/) });
  expect(shownViews.actors).toBeGreaterThan(5);
  expect(shownViews.active).toBeGreaterThan(1);
  expect(shownViews.rows).toBeGreaterThan(5);
  expect(shownViews.bars).toBeGreaterThan(5);
  expect(shownViews.marks).toBeGreaterThan(2);
  expect(await page.evaluate('location.pathname')).toBe('/');
  await page.press(arrowRight);
  await page.press('m');
  expect((await views()).details).toMatch(/#151/);
  expect(await page.evaluate('document.querySelectorAll(".flag").length')).toBe(1);
  // A single-color picture would be smaller.
  expect((await page.picture()).length).toBeGreaterThan(50_000);
});

test('a single-file page opens in Firefox without a server', async () => {
  const file = join(folder, 'page.html');
  await pipeline(Readable.from(singleFile({ sources: [trace] })), createWriteStream(file));
  await page.open(pathToFileURL(file).href + pageHash);
  const shownViews = await views();
  expect(shownViews.details).toMatch(/#150/);
  expect(shownViews.bars).toBeGreaterThan(5);
});

/** The content of the page when it is idle. */
async function views(): Promise<Views> {
  await page.evaluate('chartpilot.idle()');
  const count = (selector: string): string => `document.querySelectorAll(${JSON.stringify(selector)}).length`;
  const text = (selector: string): string => `document.querySelector(${JSON.stringify(selector)})?.innerText`;
  return page.evaluate<Views>(`({
    actors: ${count('[data-actor][data-state-name]')},
    active: ${count('.chart-viewport .state.active')},
    rows: ${count('.sequence-row')},
    bars: ${count('.bar')},
    marks: ${count('.mark')},
    verdict: ${text('.current-finding')},
    details: ${text('.details')},
  })`);
}
