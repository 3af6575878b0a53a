/** `chartpilot diagram --open` in a real browser. */
import { expect, test } from 'vitest';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { statechartOf } from '../../src/runtime/trace/statechart.ts';
import { launchBrowser, openAddress } from '../browser/open-page.ts';
import { Program } from '../harness/program.ts';

test('chartpilot diagram --open shows the chart of a machine that has never run, without steps', async () => {
  const command = Program.start('chartpilot', {
    args: ['diagram', 'supervisor', '--open'],
    // A browser command that does nothing.
    env: { ...process.env, BROWSER: 'true' },
    cwd: packageRoot(),
  });
  const browser = await launchBrowser();
  const openedPage = await openAddress(browser, await command.line(/^http:/));
  const chart = openedPage.page.locator('.chart-viewport svg[data-machine="supervisor"]');
  await chart.waitFor();
  expect(await chart.locator('.state').count()).toBe(statechartOf(supervisorMachine).states.length);
  expect(await openedPage.page.locator('#place').count()).toBe(0);
  await openedPage.close();
  await browser.close();
  expect((await command.stop({ signal: 'SIGINT' })).code).toBe(0);
});
