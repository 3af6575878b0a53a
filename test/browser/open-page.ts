/** The debugger's page in a real Chromium, for tests. */
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { type PageServer, startPageServer } from '../../src/debugger/visualize/page-server.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { requireChromium } from './chromium.ts';

/** One for all tests of a file; they close it. @throws ChartpilotError when there is no Chromium: no test is skipped. */
export function launchBrowser(): Promise<Browser> {
  // The sandbox wants rights that root in a container does not have; pages are our own.
  return chromium.launch({ executablePath: requireChromium(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

export interface OpenedPage {
  readonly page: Page;
  /** Where it is; without the place in the trace. */
  readonly address: string;
  /** What went wrong in the browser so far: errors on its console, exceptions, requests that failed. */
  readonly problems: string[];
  /** Closes page and server. @throws Error when anything went wrong in the browser */
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly colorScheme?: 'light' | 'dark';
  /** That of this machine unless given. */
  readonly timezoneId?: string;
  readonly reducedMotion?: 'reduce' | 'no-preference';
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Problems that belong to the test: a program that ends is asked in vain. */
  readonly expected?: RegExp;
  /** Without a network. */
  readonly offline?: boolean;
  /** What follows the `#` of the address: a place in the trace. */
  readonly hash?: string;
  /** Is done with the page before it goes anywhere. */
  readonly prepare?: (page: Page) => Promise<void>;
}

/** Serves sources and opens the page. */
export async function openPage(
  browser: Browser,
  sources: readonly PageSource[],
  options: OpenOptions = {},
): Promise<OpenedPage> {
  const server = await startPageServer({ sources });
  try {
    const opened = await openAddress(browser, server.address + (options.hash ?? ''), options);
    return { ...opened, address: server.address, close: () => closeBoth(opened, server) };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** Opens the page at an address that somebody else serves, or that is a file. */
export async function openAddress(browser: Browser, address: string, options: OpenOptions = {}): Promise<OpenedPage> {
  const {
    reducedMotion = 'no-preference',
    colorScheme = 'light',
    viewport = { width: 1_440, height: 900 },
    expected,
    offline = false,
  } = options;
  const context = await browser.newContext({
    colorScheme,
    reducedMotion,
    viewport,
    offline,
    ...(options.timezoneId !== undefined && { timezoneId: options.timezoneId }),
  });
  await context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') });
  const page = await context.newPage();
  const problems = collectProblems(page, expected);
  await options.prepare?.(page);
  await page.goto(address);
  return {
    page,
    address,
    problems,
    close: async () => {
      await context.close();
      if (problems.length > 0) throw new Error(`in the browser:\n${problems.join('\n')}`);
    },
  };
}

async function closeBoth(opened: OpenedPage, server: PageServer): Promise<void> {
  try {
    await opened.close();
  } finally {
    await server.close();
  }
}

function collectProblems(page: Page, expected: RegExp | undefined): string[] {
  const problems: string[] = [];
  let closing = false;
  const note = (problem: string): void => {
    if (!closing && expected?.test(problem) !== true) problems.push(problem);
  };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      note(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => note(`exception: ${error.stack ?? error.message}`));
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? 'failed';
    // The page leaves a live stream when it opens another source.
    if (why !== 'net::ERR_ABORTED') note(`request: ${request.url()}: ${why}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) note(`request: ${response.url()}: status ${response.status()}`);
  });
  page.on('close', () => {
    closing = true;
  });
  return problems;
}
