/** Large inputs: a trace of 100,000 records, a single-file page without a network, hundreds of connections. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memorySource } from '../../src/debugger/visualize/memory-source.ts';
import { singleFile } from '../../src/debugger/visualize/single-file.ts';
import { connectionsTrace, largeTrace } from '../browser/large-traces.ts';
import { launchBrowser, openAddress, openPage } from '../browser/open-page.ts';
import { expectStatesOfTrace, goToShare, shownRecordCount, waitUntilOpened } from '../browser/page-state.ts';

const records = 100_000;

let browser: Browser;
let folder: string;
let trace: string;

beforeAll(async () => {
  browser = await launchBrowser();
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-large-'));
  trace = largeTrace(records);
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the page shows any record of a trace with 100,000 records immediately', async () => {
  const openedPage = await openPage(browser, [memorySource('large.trace', trace)]);
  await waitUntilOpened(openedPage.page);
  for (const share of [0.1, 0.9, 0.33, 0]) {
    await goToShare(openedPage.page, share);
    await expectStatesOfTrace(openedPage.page, trace);
  }
  await openedPage.close();
});

test('a single-file page shows the same content without a server and a network', async () => {
  const file = join(folder, 'page.html');
  await pipeline(Readable.from(singleFile({ sources: [memorySource('large.trace', trace)] })), createWriteStream(file));
  const openedPage = await openAddress(browser, pathToFileURL(file).href, { offline: true });
  await waitUntilOpened(openedPage.page);
  expect(await shownRecordCount(openedPage.page)).toBeGreaterThanOrEqual(records);
  await goToShare(openedPage.page, 0.7);
  await expectStatesOfTrace(openedPage.page, trace);
  await openedPage.close();
});

describe('hundreds of connections', () => {
  test('form one group with counts of their states, and each of them can be found by a search', async () => {
    const openedPage = await openPage(browser, [memorySource('discovery.trace', connectionsTrace(500))], {
      isNew: true,
    });
    const { page } = openedPage;
    await waitUntilOpened(page);
    await page.keyboard.press('End');
    const group = page.locator('[data-group="ads-connection"]');
    await group.waitFor();
    expect(await group.innerText()).toMatch(/500[\s\S]*480[\s\S]*20/);
    expect(await page.locator('[data-actor^="ads-connection-"]').count()).toBeLessThan(20);
    // No view draws the connections one by one.
    expect(await page.locator('*').count()).toBeLessThan(5_000);
    await group.getByRole('button').first().click();
    await group.getByRole('searchbox').fill('347');
    await group.locator('[data-actor="ads-connection-347"]').click();
    expect(await page.locator('.chart-head').innerText()).toContain('ads-connection-347');
    await openedPage.close();
  });
});
