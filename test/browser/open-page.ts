/** Opens the debugger's page in a real Chromium. */
import { join } from 'node:path';
import { type Browser, type ConsoleMessage, chromium, type Page, type Request, type Response } from 'playwright-core';
import { type PageServer, startPageServer } from '../../src/debugger/visualize/page-server.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { requireChromium } from './chromium.ts';

/**
 * Launches a browser that all tests of a file share and close. @throws ChartpilotError without Chromium, so that tests fail instead of being skipped
 */
export function launchBrowser(): Promise<Browser> {
  // The sandbox needs permissions that root in a container lacks, and the pages are trusted.
  return chromium.launch({ executablePath: requireChromium(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

export interface OpenedPage {
  readonly page: Page;
  /** Address of the page without the place in the trace. */
  readonly address: string;
  /** Console errors, exceptions and failed requests of the browser so far. */
  readonly problems: string[];
  /** Closes page and server. @throws Error after any problem in the browser */
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly colorScheme?: 'light' | 'dark';
  /** Defaults to this machine's time zone. */
  readonly timezoneId?: string;
  readonly reducedMotion?: 'reduce' | 'no-preference';
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Problems that the test causes, such as failed requests to a program that has ended. */
  readonly expected?: RegExp;
  /** Whether the browser has no network. */
  readonly offline?: boolean;
  /** Fragment of the address: a place in the trace. */
  readonly hash?: string;
  /** Called before the page is loaded. */
  readonly prepare?: (page: Page) => Promise<void>;
  /** Uses a new page without cache, to measure the first visit. */
  readonly isNew?: boolean;
}

/** Closed pages for reuse, because a new page costs twice as much. Each server's port is a separate origin, so stored data is not shared. */
const unused = new WeakMap<Browser, Page[]>();

/** Serves sources and opens the page. */
export async function openPage(
  browser: Browser,
  sources: readonly PageSource[],
  options: OpenOptions = {},
): Promise<OpenedPage> {
  const server = await startPageServer({ sources });
  try {
    const openedPage = await openAddress(browser, server.address + (options.hash ?? ''), options);
    return { ...openedPage, address: server.address, close: () => closeBoth(openedPage, server) };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** Opens the page at an address that another server serves, or from a file. */
export async function openAddress(browser: Browser, address: string, options: OpenOptions = {}): Promise<OpenedPage> {
  const { expected, offline = false, prepare, isNew = prepare !== undefined, timezoneId } = options;
  // Files share one origin; a time zone and preparations apply to a page until it is closed.
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
  const reusedPage = isReusable ? unused.get(browser)?.pop() : undefined;
  if (reusedPage !== undefined) {
    await reusedPage.emulateMedia({ colorScheme, reducedMotion });
    await reusedPage.setViewportSize(viewport);
    return reusedPage;
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

/** Keeps a page for the next address. @returns false if the page cannot be reused */
async function leave(browser: Browser, page: Page, forget: () => void): Promise<boolean> {
  if (page.isClosed()) return false;
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  forget();
  await page.goto('about:blank');
  await page.mouse.move(-1, -1);
  unused.set(browser, [...(unused.get(browser) ?? []), page]);
  return true;
}

async function closeBoth(openedPage: OpenedPage, server: PageServer): Promise<void> {
  try {
    await openedPage.close();
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
    const reason = request.failure()?.errorText ?? 'failed';
    // The page cancels a live stream when it opens another source.
    if (reason !== 'net::ERR_ABORTED') note(`request: ${request.url()}: ${reason}`);
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
