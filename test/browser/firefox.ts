/** Drives the debugger's page in the installed Firefox by WebDriver BiDi, as far as tests of the main views need. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { findBrowser } from './chromium.ts';

const names = ['firefox-esr', 'firefox'];
export const installFirefox = 'sudo apt-get update && sudo apt-get install -y --no-install-recommends firefox-esr';
/** A start takes 20 s on a busy machine. */
const startMs = 90_000;

/** Returns `$FIREFOX`, else the first of `firefox-esr`, `firefox` in PATH, else `undefined`. */
export function findFirefox(env: NodeJS.ProcessEnv): string | undefined {
  return findBrowser(env, 'FIREFOX', names);
}

/** A window of a separate Firefox process. */
export class FirefoxPage {
  /** Errors on the browser's console and exceptions so far. */
  readonly problems: string[] = [];
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #pendingRequests = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  #lastRequestId = 0;
  #context = '';

  private constructor(child: ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child;
    this.#profile = profile;
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#handleMessage(JSON.parse(String(data)) as Message));
    socket.addEventListener('close', () => {
      for (const { reject } of this.#pendingRequests.values()) reject(new Error('Firefox is gone'));
    });
  }

  /** @throws ChartpilotError without Firefox, so that tests fail instead of being skipped */
  static async launch(env: NodeJS.ProcessEnv = process.env): Promise<FirefoxPage> {
    const program = findFirefox(env);
    if (program === undefined) {
      throw new ChartpilotError('FILE_UNREADABLE', 'no Firefox: not in $FIREFOX, and not in PATH', {
        hint: `Run: npm run firefox (or: ${installFirefox})`,
      });
    }
    const profile = mkdtempSync(join(tmpdir(), 'chartpilot-firefox-'));
    const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'];
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...env, HOME: profile } });
    try {
      const socket = new WebSocket(`${await addressOf(child)}/session`);
      await once(socket, 'open', { signal: AbortSignal.timeout(startMs) });
      const page = new FirefoxPage(child, profile, socket);
      await page.#startSession();
      return page;
    } catch (error) {
      await waitForExit(child);
      rmSync(profile, { recursive: true, force: true });
      throw error;
    }
  }

  async #startSession(): Promise<void> {
    await this.#request('session.new', { capabilities: {} });
    await this.#request('session.subscribe', { events: ['log.entryAdded'] });
    const { contexts } = (await this.#request('browsingContext.getTree', {})) as { contexts: { context: string }[] };
    this.#context = contexts[0]!.context;
    await this.#request('browsingContext.setViewport', {
      context: this.#context,
      viewport: { width: 1_440, height: 900 },
    });
  }

  async open(address: string): Promise<void> {
    await this.#request('browsingContext.navigate', { context: this.#context, url: address, wait: 'complete' });
  }

  /** Evaluates an expression, or awaits its promise, in the page; returns plain data. @throws Error if it throws there */
  async evaluate<Value>(expression: string): Promise<Value> {
    const response = (await this.#request('script.evaluate', {
      expression: `(async () => JSON.stringify((await (${expression})) ?? null))()`,
      target: { context: this.#context },
      awaitPromise: true,
    })) as { type: string; result?: { value: string }; exceptionDetails?: { text: string } };
    if (response.type !== 'success') throw new Error(response.exceptionDetails?.text);
    return JSON.parse(response.result!.value) as Value;
  }

  /** Presses keys one after the other. Keys without a character have WebDriver codes. */
  async press(...keys: readonly string[]): Promise<void> {
    const actions = keys.flatMap((value) => [
      { type: 'keyDown', value },
      { type: 'keyUp', value },
    ]);
    await this.#request('input.performActions', {
      context: this.#context,
      actions: [{ type: 'key', id: 'keyboard', actions }],
    });
  }

  async picture(): Promise<Buffer> {
    const { data } = (await this.#request('browsingContext.captureScreenshot', { context: this.#context })) as {
      data: string;
    };
    return Buffer.from(data, 'base64');
  }

  /** @throws Error if any error occurred in the browser */
  async close(): Promise<void> {
    this.#socket.close();
    await waitForExit(this.#child);
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
    if (this.problems.length > 0) throw new Error(`in Firefox:\n${this.problems.join('\n')}`);
  }

  #request(method: string, params: object): Promise<unknown> {
    const id = ++this.#lastRequestId;
    return new Promise((resolve, reject) => {
      this.#pendingRequests.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  #handleMessage({ id, type, result, message, method, params }: Message): void {
    if (method === 'log.entryAdded' && (params?.level === 'error' || params?.level === 'warn')) {
      this.problems.push(`${params.level}: ${params.text}`);
    }
    const pendingRequest = this.#pendingRequests.get(id ?? -1);
    if (pendingRequest === undefined) return;
    this.#pendingRequests.delete(id!);
    if (type === 'error') pendingRequest.reject(new Error(message));
    else pendingRequest.resolve(result);
  }
}

interface Message {
  readonly id?: number;
  readonly type: string;
  readonly result?: unknown;
  readonly message?: string;
  readonly method?: string;
  readonly params?: { readonly level?: string; readonly text?: string };
}

/** Reads Firefox's address from standard error. */
async function addressOf(child: ChildProcess): Promise<string> {
  const limit = AbortSignal.timeout(startMs);
  limit.addEventListener('abort', () => child.kill('SIGKILL'));
  for await (const line of createInterface(child.stderr!)) {
    const [, address] = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(line) ?? [];
    if (address !== undefined) {
      // Further output must not fill the pipe.
      child.stderr!.resume();
      return address;
    }
  }
  throw new Error('Firefox does not say where it answers');
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exitEvent = once(child, 'exit');
  child.kill('SIGKILL');
  await exitEvent;
}
