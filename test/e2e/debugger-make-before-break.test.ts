/** The lane of a proxy whose routes wait for new clusters, recorded with a real Envoy and a latency to the control plane. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fileSource } from '../../src/debugger/visualize/file-source.ts';
import { launchBrowser, openPage } from '../browser/open-page.ts';
import { waitUntilOpened } from '../browser/page-state.ts';
import { takePicture } from '../browser/pictures.ts';
import { temporaryFolder } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { plainKinds } from './changes-without-loss/change-kinds.ts';
import { ChangingMesh } from './changes-without-loss/changing-mesh.ts';

let browser: Browser;
let folder: ReturnType<typeof temporaryFolder>;

beforeAll(async () => {
  folder = temporaryFolder();
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  folder?.[Symbol.dispose]();
});

/** The trace of a control plane that moved the routes of a gateway to a new subset. */
async function recordedChange(): Promise<string> {
  const trace = join(folder.path, 'pilot-discovery.trace');
  const kind = plainKinds.find(({ name }) => name === 'subset-replaced')!;
  const mesh = await ChangingMesh.start({
    kinds: [kind],
    proxies: [{ type: 'gateway', delta: true, roundTripMs: 200 }],
    args: ['--trace', trace, '--traceLevel', 'full'],
    env: { PILOT_XDS_CLUSTER_REMOVAL_DELAY: '1s' },
  });
  try {
    await mesh.change(kind);
    await eventually('the cluster before is removed', () =>
      readFileSync(trace, 'utf8').includes('"type":"clusters.removed"'),
    );
  } finally {
    await mesh.stop();
  }
  return trace;
}

test('the lane of a proxy shows the steps of make before break: clusters, endpoints, routes, removal, and the reason of each wait', async () => {
  const { page, close } = await openPage(browser, [fileSource(await recordedChange())], {
    viewport: { width: 1_440, height: 900 },
  });
  await waitUntilOpened(page);
  const lane = page.locator('.lane[data-lane^="ads-connection-"]');
  await eventually('the lane is drawn', async () => (await lane.locator('.bar').count()) > 0);
  expect(await lane.getAttribute('aria-label')).toMatch(/^router~.*gateway-delta-200\.shop.*: make before break/);
  // A shortened name begins with the part that distinguishes proxies; the tooltip has the full name.
  const laneNames = page.locator('.lane-names li', { hasText: 'make before break' });
  expect(await laneNames.locator('span').getAttribute('title')).toMatch(/^router~.*: make before break$/);
  const bars = await lane
    .locator('.bar')
    .evaluateAll((elements) => elements.map((bar) => [bar.getAttribute('data-phase'), bar.getAttribute('aria-label')]));
  const steps = bars.map(([step]) => step);
  expect(steps.slice(-4)).toEqual(['clusters', 'endpoints', 'routes', 'removal']);
  const [clusters, , , removal] = bars.slice(-4).map(([, barLabel]) => barLabel);
  expect(clusters).toMatch(/waiting for outbound\|\d+\|s1\|subset-replaced/);
  expect(removal).toMatch(/requests may still use outbound\|\d+\|s0\|subset-replaced\S*, \d/);
  await takePicture('make-before-break', page.locator('.timeline'));
  await close();
});
