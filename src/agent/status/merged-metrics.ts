/**
 * Merges the metrics of agent, Envoy and application into one response (spec/agent.md §6.4). Streams them line by line with limits of time and
 * size for each part. A part that fails is omitted and counted; a part that is interrupted ends with its last complete line.
 */
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createGzip, constants as zlib } from 'node:zlib';
import { messageOf } from '../../runtime/errors.ts';
import { refuseOtherProtocol } from '../../runtime/fences/other-protocol.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { Turns } from '../../runtime/turns.ts';
import { AddressCounts } from './address-counts.ts';
import type { AgentMetrics } from './agent-metrics.ts';
import { type Exposition, keptLines } from './exposition-lines.ts';
import { SaidLines } from './said-lines.ts';

export interface MetricsTarget {
  readonly port: number;
  /** The path as sent. */
  readonly path: string;
}

export interface MergedMetricsEnvironment {
  readonly metrics: AgentMetrics;
  /** Loopback address of Envoy and the application. */
  readonly localhost: string;
  /** Admin port of the serving Envoy; `undefined` without Envoy. */
  readonly adminPort: () => number | undefined;
  readonly targets: readonly MetricsTarget[];
  readonly log: Logger;
}

/** Size limits: 10 MiB for the application as in Istio; Envoy's metrics are larger in a large mesh. */
const mostBytes = { application: 10 * 1024 * 1024, envoy: 64 * 1024 * 1024 } as const;
/** Minimum size of the chunks in which Istio's standard metrics are written. */
const pieceCharacters = 64 * 1024;
/** Limit for a line, which is buffered until it is complete. */
const mostLineBytes = 64 * 1024;
const mostHeaderBytes = 16 * 1024;
const mostRedirects = 5;
/** How long metrics are processed before other work of the event loop continues, such as readiness probes of Envoy. */
const turnMs = 2;
const mostAtOnce = 4;
/** Limit of running and waiting scrapes per client address, so that one slow client does not block others. */
const mostOfAddress = 2;
const mostWaiting = 32;
const defaultLimitMs = 10_000;
const longestLimitMs = 60_000;
/** Fractions of the time limit: for the application's response headers, which decide the content type, and for the complete response. */
const shares = { firstWord: 0.5, whole: 0.9 } as const;

const tooMany = 'too many concurrent scrapes\n';
const textFormat = 'text/plain; version=0.0.4; charset=utf-8';
const openMetricsFormat = 'application/openmetrics-text; version=0.0.1; charset=utf-8';
const endOfBody = '# EOF\n';
/** Content types that are read as text format; empty if the header is missing. */
const textTypes: ReadonlySet<string> = new Set(['', 'text/plain', 'application/octet-stream']);

type Part = 'envoy' | 'application';

/** The response, or the compression stream before it. */
type Output = NodeJS.WritableStream & { destroyed: boolean };

export class MergedMetrics {
  readonly #environment: MergedMetricsEnvironment;
  readonly #said = new SaidLines();
  #underWay = 0;
  readonly #callers = new AddressCounts();
  readonly #waiting: (() => void)[] = [];

  constructor(environment: MergedMetricsEnvironment) {
    this.#environment = environment;
  }

  async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (incoming.method === 'HEAD') {
      response.writeHead(200, { 'content-type': textFormat }).end();
      return;
    }
    const limitMs = this.#limitOf(incoming);
    const left = new AbortController();
    response.once('close', () => left.abort());
    const address = incoming.socket.remoteAddress ?? '';
    if (this.#callers.of(address) >= mostOfAddress) {
      response.writeHead(503).end(tooMany);
      return;
    }
    this.#callers.enter(address);
    try {
      if (await this.#turn(left.signal, limitMs)) await this.#answerInTurn(incoming, response, limitMs, left.signal);
      else response.writeHead(503).end(tooMany);
    } finally {
      this.#callers.leave(address);
    }
  }

  async #answerInTurn(incoming: IncomingMessage, response: ServerResponse, limitMs: number, left: AbortSignal) {
    try {
      await this.#answer(incoming, response, limitMs, left);
    } catch (error) {
      // The client has disconnected: no response is possible.
      if (!left.aborted) throw error;
    } finally {
      this.#underWay--;
      this.#waiting.shift()?.();
    }
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse, limitMs: number, left: AbortSignal) {
    const { metrics, targets, adminPort } = this.#environment;
    const until = performance.now() + limitMs * shares.whole;
    // AbortSignal.timeout accepts only integers.
    const after = (share: number): AbortSignal => AbortSignal.timeout(Math.ceil(limitMs * share));
    const signal = AbortSignal.any([left, after(shares.whole)]);
    const firstWord = AbortSignal.any([signal, after(shares.firstWord)]);
    const port = adminPort();
    const [envoy, ...applications] = await Promise.all([
      port === undefined
        ? undefined
        : this.#part('envoy', { port, path: '/stats/prometheus' }, incoming, signal, firstWord),
      ...targets.map((target) => this.#part('application', target, incoming, signal, firstWord)),
    ]);
    const openMetrics = applications.find((body) => body !== undefined && mediaTypeOf(body) === openMetricsType);
    metrics.scraped();
    response.setHeader('content-type', openMetrics === undefined ? textFormat : openMetricsTypeOf(openMetrics));
    const output = outputFor(incoming, response);
    const isOpen = openMetrics !== undefined;
    const to = isOpen ? 'OpenMetrics' : 'text';
    const own = await metrics.text();
    await write(output, isOpen ? keptLines(own, to, 'text').text : own, left);
    await this.#passMesh(output, left, isOpen);
    // Envoy's metrics are valid text format.
    await this.#pass('envoy', envoy, output, signal, isOpen ? to : undefined);
    const bodies = applications.filter((body) => body !== undefined);
    for (const [index, body] of bodies.entries()) {
      // Each target gets an equal share of the remaining time, so that a slow one does not delay the others.
      const share = (until - performance.now()) / (bodies.length - index);
      const turn = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(share)))]);
      await this.#pass('application', body, output, turn, to);
    }
    output.end(isOpen ? endOfBody : '');
  }

  /** Writes Istio's standard metrics in chunks, and lets other work run between them. */
  async #passMesh(output: Output, left: AbortSignal, isOpen: boolean): Promise<void> {
    const turns = new Turns(turnMs);
    let waiting = '';
    const flush = async (): Promise<void> => {
      // keptLines needs one character per byte.
      const bytes = Buffer.from(waiting);
      waiting = '';
      const text = isOpen ? keptLines(bytes.toString('latin1'), 'OpenMetrics', 'text').text : undefined;
      await write(output, text === undefined ? bytes : Buffer.from(text, 'latin1'), left);
    };
    for (const piece of this.#environment.metrics.meshText()) {
      waiting += piece;
      if (waiting.length < pieceCharacters) continue;
      await flush();
      await turns.rest();
    }
    if (waiting !== '') await flush();
  }

  /** Opens one part; `undefined` if it failed, which is counted. */
  async #part(
    part: Part,
    target: MetricsTarget,
    incoming: IncomingMessage,
    signal: AbortSignal,
    firstWord: AbortSignal,
  ): Promise<IncomingMessage | undefined> {
    try {
      const body = await this.#open(part, target, incoming, signal, firstWord);
      const type = mediaTypeOf(body);
      const isText = textTypes.has(type) || (part === 'application' && type === openMetricsType);
      if (isText) return body;
      body.destroy();
      throw new Error(`content type must be text/plain or OpenMetrics, got ${type}`);
    } catch (error) {
      this.#failed(part, error, firstWord);
      return undefined;
    }
  }

  async #open(
    part: Part,
    target: MetricsTarget,
    incoming: IncomingMessage,
    signal: AbortSignal,
    firstWord: AbortSignal,
  ): Promise<IncomingMessage> {
    const { localhost } = this.#environment;
    const base = new URL(`http://${localhost.includes(':') ? `[${localhost}]` : localhost}:${target.port}`);
    let { path } = target;
    for (let redirects = 0; redirects <= mostRedirects; redirects++) {
      const body = await open(
        { host: localhost, port: target.port, path },
        headersFor(part, incoming),
        signal,
        firstWord,
      );
      const { statusCode = 0, headers } = body;
      if (statusCode === 200) return body;
      body.destroy();
      const next =
        statusCode > 300 && statusCode < 400 ? URL.parse(headers.location ?? '', `${base.origin}${path}`) : null;
      if (next?.origin !== base.origin) throw new Error(`response status ${statusCode}`);
      path = `${next.pathname}${next.search}`;
    }
    throw new Error(`more than ${mostRedirects} redirects`);
  }

  async #pass(
    part: Part,
    body: IncomingMessage | undefined,
    output: Output,
    signal: AbortSignal,
    to: Exposition | undefined,
  ): Promise<void> {
    if (body === undefined) return;
    // The kernel can deliver 32 blocks of 64 KiB at once: let other work run between them.
    const turns = new Turns(turnMs);
    const from = mediaTypeOf(body) === openMetricsType ? 'OpenMetrics' : 'text';
    try {
      for await (const lines of wholeLines(body, mostBytes[part], signal)) {
        await turns.rest();
        if (to === undefined) {
          await write(output, lines, signal);
          continue;
        }
        const all = lines.toString('latin1');
        const { text, dropped, isOver } = keptLines(all, to, from);
        if (dropped > 0) this.#dropped(part, dropped);
        await write(output, text === all ? lines : Buffer.from(text, 'latin1'), signal);
        if (isOver) break;
      }
    } catch (error) {
      this.#failed(part, error, signal);
    } finally {
      body.destroy();
    }
  }

  #dropped(part: Part, count: number): void {
    const { metrics, log } = this.#environment;
    metrics.scrapeLinesDropped(count);
    if (this.#said.isDue(`${part} lines`, '')) log.warn('metrics.linesDropped', { part });
  }

  #failed(part: Part, error: unknown, signal: AbortSignal): void {
    if (nameOf(signal.reason) === 'AbortError') return;
    const { metrics, log } = this.#environment;
    const reason = nameOf(signal.reason) === 'TimeoutError' ? 'scrape timeout exceeded' : messageOf(error);
    metrics.scrapeFailed(part);
    if (this.#said.isDue(part, reason)) log.warn('metrics.scrapeFailed', { part, reason });
  }

  /**
   * Waits until the scrape may run.
   *
   * @returns false if too many scrapes wait, or the limit has passed
   */
  async #turn(left: AbortSignal, limitMs: number): Promise<boolean> {
    if (this.#underWay < mostAtOnce) {
      this.#underWay++;
      return true;
    }
    if (this.#waiting.length >= mostWaiting) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const take = (): void => {
      this.#underWay++;
      resolve(true);
    };
    const leave = (): void => {
      const place = this.#waiting.indexOf(take);
      if (place >= 0) this.#waiting.splice(place, 1);
      resolve(false);
    };
    this.#waiting.push(take);
    const timer = setTimeout(leave, limitMs);
    left.addEventListener('abort', leave, { once: true });
    const isMine = await promise;
    clearTimeout(timer);
    left.removeEventListener('abort', leave);
    return isMine;
  }

  #limitOf({ headers }: IncomingMessage): number {
    const text = headers['x-prometheus-scrape-timeout-seconds'];
    if (text === undefined) return defaultLimitMs;
    const ms = /^\d{1,9}(\.\d{1,9})?$/.test(String(text)) ? Number(text) * 1_000 : 0;
    if (ms > 0) return Math.min(ms, longestLimitMs);
    if (this.#said.isDue('limit', '')) this.#environment.log.warn('metrics.timeoutInvalid');
    return defaultLimitMs;
  }
}

const openMetricsType = 'application/openmetrics-text';

function mediaTypeOf({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

/** The application's content type if it is well-formed, otherwise the default. */
function openMetricsTypeOf({ headers }: IncomingMessage): string {
  const said = headers['content-type'] ?? '';
  return /^[\w/.-]+(; ?[\w-]+=[\w.-]+){0,4}$/.test(said) ? said : openMetricsFormat;
}

/** Requests only formats that the part supports and that consist of lines. */
function headersFor(part: Part, { headers }: IncomingMessage): Record<string, string> {
  const wanted = part === 'envoy' ? ['text/plain', 'text/*'] : ['text/plain', 'text/*', openMetricsType];
  const accepted = headers.accept
    ?.split(',')
    .filter((range) => wanted.includes(range.split(';', 1)[0]!.trim().toLowerCase()))
    .join(',');
  const { 'user-agent': agent, 'x-prometheus-scrape-timeout-seconds': limit } = headers;
  return {
    ...(accepted !== undefined && { accept: accepted || 'text/plain' }),
    ...(agent !== undefined && { 'user-agent': agent }),
    ...(limit !== undefined && { 'x-prometheus-scrape-timeout-seconds': String(limit) }),
  };
}

function open(
  target: { host: string; port: number; path: string },
  headers: Record<string, string>,
  signal: AbortSignal,
  firstWord: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...target, headers, agent: false, maxHeaderSize: mostHeaderBytes, signal });
    const tooLate = (): void => void outgoing.destroy(new Error('no response in time'));
    firstWord.addEventListener('abort', tooLate, { once: true });
    outgoing.on('response', (response) => {
      firstWord.removeEventListener('abort', tooLate);
      // The reader handles errors, but there may be no reader.
      response.on('error', () => {});
      resolve(response);
    });
    refuseOtherProtocol(outgoing, reject);
    outgoing.on('error', reject);
    outgoing.end();
  });
}

function outputFor({ headers }: IncomingMessage, response: ServerResponse): Output {
  const isTaken = String(headers['accept-encoding'] ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(;|$)/i.test(coding) && !/;\s*q=0(\.0*)?\s*$/i.test(coding));
  if (!isTaken) return response;
  response.setHeader('content-encoding', 'gzip');
  const gzip = createGzip({ level: zlib.Z_BEST_SPEED });
  gzip.pipe(response);
  response.once('close', () => gzip.destroy());
  gzip.on('error', () => response.destroy());
  return gzip;
}

/** Yields complete lines. Terminates the last line of a complete body; discards an interrupted line. */
async function* wholeLines(
  body: IncomingMessage,
  mostBytesOfPart: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  // Chunks of an incomplete line, joined once at its end.
  let rest: Buffer[] = [];
  let restBytes = 0;
  let bytes = 0;
  const stop = (): void => void body.destroy(new Error('response not complete in time'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > mostBytesOfPart) throw new Error(`response exceeds ${mostBytesOfPart} bytes`);
      const end = chunk.lastIndexOf(10) + 1;
      if (end > 0) {
        yield Buffer.concat([...rest, chunk.subarray(0, end)]);
        rest = [];
        restBytes = 0;
      }
      restBytes += chunk.length - end;
      if (restBytes > mostLineBytes) throw new Error(`line exceeds ${mostLineBytes} bytes`);
      if (end < chunk.length) rest.push(Buffer.from(chunk.subarray(end)));
    }
    if (restBytes > 0) yield Buffer.concat([...rest, Buffer.from('\n')]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Waits while the client does not read. Rejects when it has disconnected. */
async function write(output: Output, data: string | Buffer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (data.length > 0 && !output.write(data)) await once(output, 'drain', { signal });
}

/** `AbortError` if the client has disconnected, `TimeoutError` if the limit has passed. */
function nameOf(reason: unknown): string {
  return reason instanceof Error ? reason.name : '';
}
