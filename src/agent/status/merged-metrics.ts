/** Streams metrics line by line, with limits of time and size for each part. A part that fails is omitted and counted. */
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createGzip, constants as zlib } from 'node:zlib';
import { messageOf } from '../../runtime/errors.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { Turns } from '../../runtime/turns.ts';
import { AddressCounts } from './address-counts.ts';
import type { AgentMetrics } from './agent-metrics.ts';
import { type ExpositionFormat, validLines } from './exposition-lines.ts';
import { RepeatLimit } from './repeat-limit.ts';

export interface MetricsTarget {
  readonly port: number;
  readonly path: string;
}

export interface MergedMetricsEnvironment {
  readonly metrics: AgentMetrics;
  readonly localhost: string;
  readonly adminPort: () => number | undefined;
  readonly targets: readonly MetricsTarget[];
  readonly log: Logger;
}

/** Size limits: 10 MiB for the application as in Istio; Envoy's metrics are larger in a large mesh. */
const maxPartBytes = { application: 10 * 1024 * 1024, envoy: 64 * 1024 * 1024 } as const;
const minChunkCharacters = 64 * 1024;
/** A line is buffered until it is complete. */
const maxLineBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const maxRedirects = 5;
/** Other work of the event loop, such as readiness probes of Envoy, continues after this time. */
const sliceMs = 2;
const maxScrapes = 4;
/** Waiting scrapes count too. One slow client must not block others. */
const maxScrapesPerAddress = 2;
const maxWaiting = 32;
const defaultLimitMs = 10_000;
const maxLimitMs = 60_000;
/** Fractions of the time limit: for the application's response headers, which decide the content type, and for the complete response. */
const timeLimitShares = { headers: 0.5, total: 0.9 } as const;

const tooManyScrapesText = 'too many concurrent scrapes\n';
const textFormat = 'text/plain; version=0.0.4; charset=utf-8';
const openMetricsFormat = 'application/openmetrics-text; version=0.0.1; charset=utf-8';
const endOfBody = '# EOF\n';
/** Content types that are read as text format; empty if the header is missing. */
const textTypes: ReadonlySet<string> = new Set(['', 'text/plain', 'application/octet-stream']);

type MetricsSource = 'envoy' | 'application';

type Output = NodeJS.WritableStream & { destroyed: boolean };

export class MergedMetrics {
  readonly #environment: MergedMetricsEnvironment;
  readonly #repeatLimit = new RepeatLimit();
  #runningScrapes = 0;
  readonly #scrapesByAddress = new AddressCounts();
  readonly #waitingScrapes: (() => void)[] = [];

  constructor(environment: MergedMetricsEnvironment) {
    this.#environment = environment;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'content-type': textFormat }).end();
      return;
    }
    const limitMs = this.#limitOf(request);
    const disconnectController = new AbortController();
    response.once('close', () => disconnectController.abort());
    const address = request.socket.remoteAddress ?? '';
    if (this.#scrapesByAddress.countOf(address) >= maxScrapesPerAddress) {
      response.writeHead(503).end(tooManyScrapesText);
      return;
    }
    this.#scrapesByAddress.increment(address);
    try {
      if (await this.#acquireSlot(disconnectController.signal, limitMs))
        await this.#respondInSlot(request, response, limitMs, disconnectController.signal);
      else response.writeHead(503).end(tooManyScrapesText);
    } finally {
      this.#scrapesByAddress.decrement(address);
    }
  }

  async #respondInSlot(
    request: IncomingMessage,
    response: ServerResponse,
    limitMs: number,
    disconnectSignal: AbortSignal,
  ) {
    try {
      await this.#respond(request, response, limitMs, disconnectSignal);
    } catch (error) {
      // The client has disconnected: no response is possible.
      if (!disconnectSignal.aborted) throw error;
    } finally {
      this.#runningScrapes--;
      this.#waitingScrapes.shift()?.();
    }
  }

  async #respond(request: IncomingMessage, response: ServerResponse, limitMs: number, disconnectSignal: AbortSignal) {
    const { metrics, targets, adminPort } = this.#environment;
    const deadline = performance.now() + limitMs * timeLimitShares.total;
    // AbortSignal.timeout accepts only integers.
    const timeoutAfter = (timeShare: number): AbortSignal => AbortSignal.timeout(Math.ceil(limitMs * timeShare));
    const signal = AbortSignal.any([disconnectSignal, timeoutAfter(timeLimitShares.total)]);
    const headersSignal = AbortSignal.any([signal, timeoutAfter(timeLimitShares.headers)]);
    const port = adminPort();
    const [envoy, ...applications] = await Promise.all([
      port === undefined
        ? undefined
        : this.#openPart('envoy', { port, path: '/stats/prometheus' }, request, signal, headersSignal),
      ...targets.map((target) => this.#openPart('application', target, request, signal, headersSignal)),
    ]);
    const openMetrics = applications.find((body) => body !== undefined && mediaTypeOf(body) === openMetricsType);
    metrics.countScrape();
    response.setHeader('content-type', openMetrics === undefined ? textFormat : openMetricsTypeOf(openMetrics));
    const output = outputFor(request, response);
    const isOpenMetrics = openMetrics !== undefined;
    const to = isOpenMetrics ? 'OpenMetrics' : 'text';
    const ownMetrics = await metrics.text();
    await write(output, isOpenMetrics ? validLines(ownMetrics, to, 'text').text : ownMetrics, disconnectSignal);
    await this.#writeMesh(output, disconnectSignal, isOpenMetrics);
    await this.#writePart('envoy', envoy, output, signal, isOpenMetrics ? to : undefined);
    const bodies = applications.filter((body) => body !== undefined);
    for (const [index, body] of bodies.entries()) {
      // Each target gets an equal share of the remaining time, so that a slow one does not delay the others.
      const share = (deadline - performance.now()) / (bodies.length - index);
      const targetSignal = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(share)))]);
      await this.#writePart('application', body, output, targetSignal, to);
    }
    output.end(isOpenMetrics ? endOfBody : '');
  }

  /** Other work runs between chunks. */
  async #writeMesh(output: Output, disconnectSignal: AbortSignal, isOpenMetrics: boolean): Promise<void> {
    const scrapeTurns = new Turns(sliceMs);
    let unwrittenText = '';
    const flush = async (): Promise<void> => {
      // validLines needs one character per byte.
      const bytes = Buffer.from(unwrittenText);
      unwrittenText = '';
      const text = isOpenMetrics ? validLines(bytes.toString('latin1'), 'OpenMetrics', 'text').text : undefined;
      await write(output, text === undefined ? bytes : Buffer.from(text, 'latin1'), disconnectSignal);
    };
    for (const chunk of this.#environment.metrics.meshText()) {
      unwrittenText += chunk;
      if (unwrittenText.length < minChunkCharacters) continue;
      await flush();
      await scrapeTurns.waitIfTurnEnded();
    }
    if (unwrittenText !== '') await flush();
  }

  /** `undefined` if the part failed, which is counted. */
  async #openPart(
    part: MetricsSource,
    target: MetricsTarget,
    request: IncomingMessage,
    signal: AbortSignal,
    headersSignal: AbortSignal,
  ): Promise<IncomingMessage | undefined> {
    try {
      const body = await this.#openSource(part, target, request, signal, headersSignal);
      const type = mediaTypeOf(body);
      const isText = textTypes.has(type) || (part === 'application' && type === openMetricsType);
      if (isText) return body;
      body.destroy();
      throw new Error(`content type must be text/plain or OpenMetrics, got ${type}`);
    } catch (error) {
      this.#recordFailed(part, error, headersSignal);
      return undefined;
    }
  }

  async #openSource(
    part: MetricsSource,
    target: MetricsTarget,
    request: IncomingMessage,
    signal: AbortSignal,
    headersSignal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { localhost } = this.#environment;
    const base = new URL(`http://${localhost.includes(':') ? `[${localhost}]` : localhost}:${target.port}`);
    let { path } = target;
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const body = await openBody(
        { host: localhost, port: target.port, path },
        headersFor(part, request),
        signal,
        headersSignal,
      );
      const { statusCode = 0, headers } = body;
      if (statusCode === 200) return body;
      body.destroy();
      const next =
        statusCode > 300 && statusCode < 400 ? URL.parse(headers.location ?? '', `${base.origin}${path}`) : null;
      if (next?.origin !== base.origin) throw new Error(`response status ${statusCode}`);
      path = `${next.pathname}${next.search}`;
    }
    throw new Error(`more than ${maxRedirects} redirects`);
  }

  async #writePart(
    part: MetricsSource,
    body: IncomingMessage | undefined,
    output: Output,
    signal: AbortSignal,
    to: ExpositionFormat | undefined,
  ): Promise<void> {
    if (body === undefined) return;
    // The kernel can deliver 32 blocks of 64 KiB at once: let other work run between them.
    const scrapeTurns = new Turns(sliceMs);
    const from = mediaTypeOf(body) === openMetricsType ? 'OpenMetrics' : 'text';
    try {
      for await (const lines of completeLines(body, maxPartBytes[part], signal)) {
        await scrapeTurns.waitIfTurnEnded();
        if (to === undefined) {
          await write(output, lines, signal);
          continue;
        }
        const all = lines.toString('latin1');
        const { text, dropped, hasEnded } = validLines(all, to, from);
        if (dropped > 0) this.#recordDropped(part, dropped);
        await write(output, text === all ? lines : Buffer.from(text, 'latin1'), signal);
        if (hasEnded) break;
      }
    } catch (error) {
      this.#recordFailed(part, error, signal);
    } finally {
      body.destroy();
    }
  }

  #recordDropped(countDropped: MetricsSource, count: number): void {
    const { metrics, log } = this.#environment;
    metrics.countDroppedLines(count);
    if (this.#repeatLimit.isDue(`${countDropped} lines`, '')) log.warn('metrics.linesDropped', { part: countDropped });
  }

  #recordFailed(recordFailure: MetricsSource, error: unknown, signal: AbortSignal): void {
    if (errorNameOf(signal.reason) === 'AbortError') return;
    const { metrics, log } = this.#environment;
    const reason = errorNameOf(signal.reason) === 'TimeoutError' ? 'scrape timeout exceeded' : messageOf(error);
    metrics.countScrapeFailure(recordFailure);
    if (this.#repeatLimit.isDue(recordFailure, reason))
      log.warn('metrics.scrapeFailed', { part: recordFailure, reason });
  }

  /** @returns false if too many scrapes wait, or the limit has passed */
  async #acquireSlot(disconnectSignal: AbortSignal, limitMs: number): Promise<boolean> {
    if (this.#runningScrapes < maxScrapes) {
      this.#runningScrapes++;
      return true;
    }
    if (this.#waitingScrapes.length >= maxWaiting) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const acquire = (): void => {
      this.#runningScrapes++;
      resolve(true);
    };
    const giveUp = (): void => {
      const index = this.#waitingScrapes.indexOf(acquire);
      if (index >= 0) this.#waitingScrapes.splice(index, 1);
      resolve(false);
    };
    this.#waitingScrapes.push(acquire);
    const timer = setTimeout(giveUp, limitMs);
    disconnectSignal.addEventListener('abort', giveUp, { once: true });
    const isAcquired = await promise;
    clearTimeout(timer);
    disconnectSignal.removeEventListener('abort', giveUp);
    return isAcquired;
  }

  #limitOf({ headers }: IncomingMessage): number {
    const text = headers['x-prometheus-scrape-timeout-seconds'];
    if (text === undefined) return defaultLimitMs;
    const ms = /^\d{1,9}(\.\d{1,9})?$/.test(String(text)) ? Number(text) * 1_000 : 0;
    if (ms > 0) return Math.min(ms, maxLimitMs);
    if (this.#repeatLimit.isDue('limit', '')) this.#environment.log.warn('metrics.timeoutInvalid');
    return defaultLimitMs;
  }
}

const openMetricsType = 'application/openmetrics-text';

function mediaTypeOf({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

/** The default applies if the application's content type is malformed. */
function openMetricsTypeOf({ headers }: IncomingMessage): string {
  const contentType = headers['content-type'] ?? '';
  return /^[\w/.-]+(; ?[\w-]+=[\w.-]+){0,4}$/.test(contentType) ? contentType : openMetricsFormat;
}

/** A part may send only formats that consist of lines. */
function headersFor(part: MetricsSource, { headers }: IncomingMessage): Record<string, string> {
  const formats = part === 'envoy' ? ['text/plain', 'text/*'] : ['text/plain', 'text/*', openMetricsType];
  const acceptHeader = headers.accept
    ?.split(',')
    .filter((range) => formats.includes(range.split(';', 1)[0]!.trim().toLowerCase()))
    .join(',');
  const { 'user-agent': agent, 'x-prometheus-scrape-timeout-seconds': limit } = headers;
  return {
    ...(acceptHeader !== undefined && { accept: acceptHeader || 'text/plain' }),
    ...(agent !== undefined && { 'user-agent': agent }),
    ...(limit !== undefined && { 'x-prometheus-scrape-timeout-seconds': String(limit) }),
  };
}

function openBody(
  target: { host: string; port: number; path: string },
  headers: Record<string, string>,
  signal: AbortSignal,
  headersSignal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...target, headers, agent: false, maxHeaderSize: maxHeaderBytes, signal });
    const onTimeout = (): void => void outgoing.destroy(new Error('no response in time'));
    headersSignal.addEventListener('abort', onTimeout, { once: true });
    outgoing.on('response', (response) => {
      headersSignal.removeEventListener('abort', onTimeout);
      // The reader handles errors, but there may be no reader.
      response.on('error', () => {});
      resolve(response);
    });
    rejectUpgrade(outgoing, reject);
    outgoing.on('error', reject);
    outgoing.end();
  });
}

function outputFor({ headers }: IncomingMessage, response: ServerResponse): Output {
  const acceptsGzip = String(headers['accept-encoding'] ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(;|$)/i.test(coding) && !/;\s*q=0(\.0*)?\s*$/i.test(coding));
  if (!acceptsGzip) return response;
  response.setHeader('content-encoding', 'gzip');
  const gzip = createGzip({ level: zlib.Z_BEST_SPEED });
  gzip.pipe(response);
  response.once('close', () => gzip.destroy());
  gzip.on('error', () => response.destroy());
  return gzip;
}

/** Terminates the last line of a complete body; discards an interrupted line. */
async function* completeLines(body: IncomingMessage, maxBytes: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  let buffered: Buffer[] = [];
  let remainderBytes = 0;
  let bytes = 0;
  const stop = (): void => void body.destroy(new Error('response not complete in time'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new Error(`response exceeds ${maxBytes} bytes`);
      const endIndex = chunk.lastIndexOf(10) + 1;
      if (endIndex > 0) {
        yield Buffer.concat([...buffered, chunk.subarray(0, endIndex)]);
        buffered = [];
        remainderBytes = 0;
      }
      remainderBytes += chunk.length - endIndex;
      if (remainderBytes > maxLineBytes) throw new Error(`line exceeds ${maxLineBytes} bytes`);
      if (endIndex < chunk.length) buffered.push(Buffer.from(chunk.subarray(endIndex)));
    }
    if (remainderBytes > 0) yield Buffer.concat([...buffered, Buffer.from('\n')]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function write(output: Output, data: string | Buffer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (data.length > 0 && !output.write(data)) await once(output, 'drain', { signal });
}

/** `AbortError` if the client has disconnected, `TimeoutError` if the limit has passed. */
function errorNameOf(reason: unknown): string {
  return reason instanceof Error ? reason.name : '';
}
