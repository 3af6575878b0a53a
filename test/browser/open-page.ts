/** The debugger's page in a real Chromium, for tests. */
import { join } from 'node:path';
import { type Browser, type ConsoleMessage, chromium, type Page, type Request, type Response } from 'playwright-core';
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
  /** As for somebody who has never seen it: what opening it costs is measured. */
  readonly isNew?: boolean;
}

/**
 * Pages that were closed and take another address: a new one costs twice as much. Each server's port is another origin, so
 * that nothing of what the page keeps comes along.
 */
const unused = new WeakMap<Browser, Page[]>();

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
  const { expected, offline = false, prepare, isNew = prepare !== undefined, timezoneId } = options;
  // Those of files have one origin for all; a time zone and what was prepared are a page's for good.
  const isReusable = !isNew && !offline && timezoneId === undefined && address.startsWith('http:');
  const page = await takePage(browser, options, isReusable);
  const { problems, forget } = collectProblems(page, expected);
  await prepare?.(page);
  await page.goto(address);
  return {
    page,
    address,
    problems,
    close: async () => {
      if (!isReusable || !(await leave(browser, page, forget))) await page.context().close();
      if (problems.length > 0) throw new Error(`in the browser:\n${problems.join('\n')}`);
    },
  };
}

async function takePage(browser: Browser, options: OpenOptions, isReusable: boolean): Promise<Page> {
  const {
    reducedMotion = 'no-preference',
    colorScheme = 'light',
    viewport = { width: 1_440, height: 900 },
    offline = false,
    timezoneId,
  } = options;
  const known = isReusable ? unused.get(browser)?.pop() : undefined;
  if (known !== undefined) {
    await known.emulateMedia({ colorScheme, reducedMotion });
    await known.setViewportSize(viewport);
    return known;
  }
  const context = await browser.newContext({
    colorScheme,
    reducedMotion,
    viewport,
    offline,
    ...(timezoneId !== undefined && { timezoneId }),
  });
  await context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') });
  return context.newPage();
}

/** Puts a page aside for the next address. @returns false when it cannot be used again */
async function leave(browser: Browser, page: Page, forget: () => void): Promise<boolean> {
  if (page.isClosed()) return false;
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  forget();
  await page.goto('about:blank');
  await page.mouse.move(-1, -1);
  unused.set(browser, [...(unused.get(browser) ?? []), page]);
  return true;
}

async function closeBoth(opened: OpenedPage, server: PageServer): Promise<void> {
  try {
    await opened.close();
  } finally {
    await server.close();
  }
}

function collectProblems(page: Page, expected: RegExp | undefined): { problems: string[]; forget: () => void } {
  const problems: string[] = [];
  let closing = false;
  const note = (problem: string): void => {
    if (!closing && expected?.test(problem) !== true) problems.push(problem);
  };
  const noteConsole = (message: ConsoleMessage): void => {
    if (message.type() === 'error' || message.type() === 'warning')
      note(`console: ${message.text()} (${message.location().url})`);
  };
  const noteException = (error: Error): void => note(`exception: ${error.stack ?? error.message}`);
  const noteFailure = (request: Request): void => {
    const why = request.failure()?.errorText ?? 'failed';
    // The page leaves a live stream when it opens another source.
    if (why !== 'net::ERR_ABORTED') note(`request: ${request.url()}: ${why}`);
  };
  const noteRefusal = (response: Response): void => {
    if (response.status() >= 400) note(`request: ${response.url()}: status ${response.status()}`);
  };
  const close = (): void => {
    closing = true;
  };
  page.on('console', noteConsole).on('pageerror', noteException).on('requestfailed', noteFailure);
  page.on('response', noteRefusal).on('close', close);
  return {
    problems,
    forget: () => {
      page.off('console', noteConsole).off('pageerror', noteException).off('requestfailed', noteFailure);
      page.off('response', noteRefusal).off('close', close);
    },
  };
}
