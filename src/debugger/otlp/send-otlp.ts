import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { visibleLine } from '../../runtime/visible-text.ts';

export interface SendOptions {
  /** `name=value,…`, the format of OTEL_EXPORTER_OTLP_HEADERS. */
  readonly headers?: string;
  /** Includes the response. */
  readonly timeoutMs?: number;
  readonly pauseMs?: number;
}

const maxAttempts = 3;
const maxPauseMs = 5_000;
/** A response only contains the number of rejected spans and a message. */
const maxResponseBytes = 64 * 1024;
/** The protocol defines these as retryable. */
const retryableStatuses = new Set([429, 502, 503, 504]);

/**
 * Redirects are not followed.
 *
 * @returns the receiver's rejection as text; `undefined` if it accepted everything
 * @throws ChartpilotError REQUEST_FAILED
 */
export async function sendOtlp(url: URL, request: object, options: SendOptions = {}): Promise<string | undefined> {
  const { timeoutMs = 10_000, pauseMs = 500 } = options;
  const body = JSON.stringify(request);
  const { target, login } = splitLogin(url);
  for (let attempt = 1; ; attempt++) {
    let reason: string;
    let nextPauseMs = pauseMs * 2 ** (attempt - 1);
    try {
      const response = await fetch(target, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...login, ...parseHeaders(options.headers ?? '') },
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await textOf(response);
      if (response.ok) return parseRejection(text);
      reason = `responded with status ${response.status}${text.trim() === '' ? '' : `: ${visibleLine(text.trim().slice(0, 300))}`}`;
      if (!retryableStatuses.has(response.status)) throw sendError(url, reason);
      const requestedPauseMs = Number(response.headers.get('retry-after')) * 1_000;
      if (requestedPauseMs > 0) nextPauseMs = requestedPauseMs;
    } catch (error) {
      if (error instanceof ChartpilotError) throw error;
      reason = reasonOf(error, timeoutMs);
    }
    if (attempt === maxAttempts) throw sendError(url, `${reason} (${maxAttempts} attempts)`);
    await sleep(Math.min(maxPauseMs, nextPauseMs));
  }
}

/** Moves name and password from the address to a header, because fetch rejects such addresses. */
function splitLogin(url: URL): { target: URL; login: Record<string, string> } {
  const { username, password } = url;
  if (username === '' && password === '') return { target: url, login: {} };
  const target = new URL(url);
  target.username = '';
  target.password = '';
  const login = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64');
  return { target, login: { authorization: `Basic ${login}` } };
}

async function textOf({ body }: Response): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  // Leaving the loop early closes the connection.
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    text += decoder.decode(chunk, { stream: true });
    if (bytes > maxResponseBytes) break;
  }
  return text.slice(0, maxResponseBytes);
}

function parseRejection(text: string): string | undefined {
  let partialSuccess: { rejectedSpans?: unknown; errorMessage?: unknown } | undefined;
  try {
    partialSuccess =
      (JSON.parse(text) as { partialSuccess?: typeof partialSuccess } | null)?.partialSuccess ?? undefined;
  } catch {
    return undefined;
  }
  const rejectedCount = Number(partialSuccess?.rejectedSpans ?? 0);
  if (!(rejectedCount > 0)) return undefined;
  return `the collector rejected ${rejectedCount} spans${typeof partialSuccess?.errorMessage === 'string' ? `: ${visibleLine(partialSuccess.errorMessage.slice(0, 300))}` : ''}`;
}

function parseHeaders(headerList: string): Record<string, string> {
  const pairs = headerList.split(',').filter((pair) => pair.includes('='));
  return Object.fromEntries(
    pairs.map((pair) => {
      const separatorIndex = pair.indexOf('=');
      return [pair.slice(0, separatorIndex).trim(), decoded(pair.slice(separatorIndex + 1).trim())];
    }),
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no response within ${timeoutMs} ms`;
  const { cause } = (error ?? {}) as { cause?: unknown };
  return messageOf(cause ?? error);
}

/** Omits parts of the address that may contain a key. */
function sendError({ origin, pathname }: URL, reason: string): ChartpilotError {
  return new ChartpilotError('REQUEST_FAILED', `${origin}${pathname}: ${reason}`, {
    hint: 'use the OTLP/HTTP port of a collector, usually 4318 with path /v1/traces',
    fields: { path: `${origin}${pathname}` },
  });
}
