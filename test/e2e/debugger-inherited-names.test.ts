/** A trace with names that every JavaScript object inherits, and with hostile texts. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { waitUntilOpened } from '../browser/page-state.ts';
import { writtenTrace } from '../browser/written-trace.ts';
import { hostileCharacters, hostileText } from '../fixtures/hostile-text.ts';

const inherited = ['constructor', 'toString', '__proto__', 'hasOwnProperty'];
const pictures = process.env.PICTURES;

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const machines = inherited.map((id) => ({
  id,
  states: [
    { path: '', type: 'compound', initial: 1 },
    { path: id, parent: 0, type: 'atomic', description: hostileText },
    { path: 'valueOf', parent: 0, type: 'atomic' },
  ] as const,
  transitions: [{ source: 1, targets: [2], kind: 'event', on: id }] as const,
}));

const bodies = inherited.flatMap((id): TraceBody[] => [
  { kind: 'spawn', actor: id, machine: id },
  { kind: 'transition', actor: id, from: '', to: id, on: 'xstate.init', change: [{ path: '', value: { count: 0 } }] },
  { kind: 'event', from: 'outside', to: id, event: { type: id, text: hostileText } },
  { kind: 'transition', actor: id, from: id, to: 'valueOf', on: id, change: [{ path: `/${id}`, value: 1 }] },
  { kind: 'log', actor: id, level: 'info', text: hostileText },
]);

test('the page shows machines, actors, states and events with inherited names, and escapes hostile text', async () => {
  const source = writtenTrace(bodies, { machines, program: 'constructor' });
  const openedPage = await openPage(browser, [source], { viewport: { width: 1600, height: 1000 }, isNew: true });
  const { page } = openedPage;
  await waitUntilOpened(page);
  await page.keyboard.press('End');
  for (const id of inherited) {
    const actor = page.locator(`[data-actor="${id}"]`).first();
    expect(await actor.innerText()).toContain('valueOf');
    await actor.click();
    const chart = page.locator(`svg.statechart[data-machine="${id}"]`);
    await chart.first().waitFor();
    expect(await chart.first().textContent()).toContain('valueOf');
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${id}.png` });
  }
  // `textContent` includes hidden text; the markup includes attributes.
  const [text = '', title = '', titles = ''] = await page.evaluate(() => {
    const { document } = globalThis as unknown as { document: DocumentLike };
    const read = [...document.querySelectorAll('[title], [aria-label], title, svg text')];
    const elementTexts = read.map(
      (one) => `${one.getAttribute('title')} ${one.getAttribute('aria-label')} ${one.textContent}`,
    );
    return [document.body.textContent, document.title, elementTexts.join('\n')];
  });
  for (const pageText of [text, title, titles]) expect(pageText).not.toMatch(/native code|\[object |function \w+\(/);
  const pageWithoutData = await page.locator('#page').innerText();
  for (const pageText of [pageWithoutData, title, titles]) expect(pageText).not.toMatch(hostileCharacters);
  expect(pageWithoutData).toContain('\\u202egpj');
  await openedPage.close();
});

interface ElementLike {
  readonly textContent: string;
  getAttribute(name: string): string | null;
}

interface DocumentLike {
  readonly title: string;
  readonly body: ElementLike;
  querySelectorAll(selector: string): Iterable<ElementLike>;
}
