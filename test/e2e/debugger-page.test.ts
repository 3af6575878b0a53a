/** What people who tried the page stumbled over: a case each, in a real browser. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { opened, seqShown } from '../browser/page-state.ts';
import { writtenTrace } from '../browser/written-trace.ts';
import { eventBody } from '../fixtures/event-body.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
});

const roots: TraceBody[] = ['agent', 'supervisor', 'status', 'cert-watcher', 'start-limiter'].map((actor) => ({
  kind: 'spawn',
  actor,
}));

describe('each kind of departure is shown with what was expected, if anything was', () => {
  test.each([
    { kind: 'undeclared', event: eventBody('status', 'cert-watcher', 'status.surprises'), says: /undeclared/ },
    { kind: 'unexpected', event: eventBody('start-limiter', 'supervisor', 'start.granted'), says: /^unexpected|out of order/ },
  ])('$kind', async ({ event, says }) => {
    const open = await openPage(browser, [writtenTrace([...roots, event], { program: 'pilot-agent' })]);
    await opened(open.page);
    await expect.poll(() => seqShown(open.page)).toBe(roots.length + 1);
    const row = open.page.locator(`.sequence-view [data-record="${roots.length + 1}"].departure`);
    await row.waitFor();
    expect(await row.getAttribute('aria-label')).toMatch(/departs from the contract/);
    expect(await open.page.locator('.sequence-expected').first().innerText()).toMatch(says);
    await open.close();
  });
});

test('eleven tries are one try, nine more that can be opened, and the first', async () => {
  const tries = Array.from({ length: 11 }, (_, i): TraceBody[] => {
    const before = i === 0 ? 2 : i * 4 + 2;
    return [
      { kind: 'spawn', actor: `epoch-${i}`, parent: 'supervisor', cause: before },
      { kind: 'spawn', actor: `epoch-${i}/process`, parent: `epoch-${i}`, cause: before + 1 },
      eventBody(`epoch-${i}/process`, `epoch-${i}`, 'process.exited'),
      eventBody(`epoch-${i}`, 'supervisor', 'epoch.failed', before + 3),
    ];
  }).flat();
  const open = await openPage(
    browser,
    [writtenTrace([{ kind: 'spawn', actor: 'supervisor' }, eventBody('outside', 'supervisor', 'go.now'), ...tries])],
    { hash: '#record=46' },
  );
  const { page } = open;
  await opened(page);
  const causes = page.locator('[data-part="causes"]');
  await expect.poll(() => causes.innerText()).toMatch(/9 × the same before it/);
  expect(await causes.locator('.record-link').count()).toBeLessThan(12);
  await causes.getByText(/9 × the same before it/).click();
  await expect.poll(() => causes.locator('.record-link[data-record="7"]').count()).toBe(1);
  await open.close();
});
