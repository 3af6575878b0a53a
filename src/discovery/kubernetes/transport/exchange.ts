import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { messageOf } from '../../../runtime/errors.ts';
import { msOfTurn, nextFreeTurn } from '../../../runtime/turns.ts';
import { ApiError, failureOfStatus, invalidResponse, type StatusBody } from '../api-failure.ts';
import { isRecord } from '../store/trim.ts';
import { abortedError } from './http2-connection.ts';

export type ResponseHeaders = IncomingHttpHeaders & IncomingHttpStatusHeader;

export interface ExchangeLimits {
  readonly responseMs: number;
  readonly totalMs: number;
  /** Maximum time between two chunks while {@link ResponseReader.isBodyIncomplete}. */
  readonly idleMs: number;
}

export interface ResponseReader {
  headers?(headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  /** If true, more data must arrive soon. */
  readonly isBodyIncomplete: boolean;
  readonly hasTextErrors?: boolean;
}

/** Time for reading per iteration of the event loop, for all streams together. */
const maxReadMs = 5;

const maxErrorBytes = 64 * 1024;

/**
 * @returns `whole` when the response has ended, or `limit` if the time limit expired between two complete objects
 * @throws ApiError, also if the limit expired within an object
 */
export function exchange(
  stream: ClientHttp2Stream,
  reader: ResponseReader,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<'whole' | 'limit'> {
  return new Promise((resolve, reject) => {
    let errorBody: { readonly headers: ResponseHeaders; readonly chunks: Buffer[]; bytes: number } | undefined;
    let hasEnded = false;
    const timers = new Set<NodeJS.Timeout>();
    let idleTimer: NodeJS.Timeout | undefined;
    let hasResponded = false;
    let isResponseSettled = false;

    const markSettled = (): boolean => {
      if (isResponseSettled) return false;
      isResponseSettled = true;
      for (const timer of timers) clearTimeout(timer);
      clearTimeout(idleTimer);
      signal.removeEventListener('abort', onAbort);
      return true;
    };
    const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL);
    const fail = (error: unknown): void => {
      if (!markSettled()) return;
      cancel();
      reject(error instanceof ApiError ? error : invalidResponse(`invalid response: ${messageOf(error)}`));
    };
    const failTimeout = (problem: string, ms: number): void =>
      fail(new ApiError({ kind: 'timeout', message: `${problem} within ${ms} ms` }));
    const onAbort = (): void => fail(abortedError());
    const startTimer = (ms: number, callback: () => void): NodeJS.Timeout => {
      const timer = setTimeout(callback, ms);
      timers.add(timer);
      return timer;
    };

    const responseTimer = startTimer(limits.responseMs, () => failTimeout('no response', limits.responseMs));
    startTimer(limits.totalMs, () => {
      if (errorBody !== undefined || reader.isBodyIncomplete || !hasResponded)
        return failTimeout('response not complete', limits.totalMs);
      if (!markSettled()) return;
      cancel();
      resolve('limit');
    });
    signal.addEventListener('abort', onAbort);
    let delayedChunk: Buffer | undefined;
    const readChunk = (chunk: Buffer): boolean => {
      try {
        reader.data(chunk);
        return true;
      } catch (error) {
        fail(error);
        return false;
      }
    };
    const readDelayed = (): void => {
      const chunk = delayedChunk;
      delayedChunk = undefined;
      if (chunk !== undefined && !isResponseSettled) readChunk(chunk);
    };
    const delayChunk = (chunk: Buffer): void => {
      // Copies the chunk, because its memory may be reused after its event. No further chunk arrives while the stream is paused.
      delayedChunk = delayedChunk === undefined ? Buffer.from(chunk) : Buffer.concat([delayedChunk, chunk]);
      stream.pause();
      void nextFreeTurn().then(() => {
        readDelayed();
        stream.resume();
      });
    };
    let hasStreamError = false;
    stream.on('error', () => {
      hasStreamError = true;
    });
    stream.once('response', (headers: ResponseHeaders) => {
      clearTimeout(responseTimer);
      hasResponded = true;
      const code = headers[':status'] ?? 0;
      if (code >= 300 && code < 400)
        return fail(
          invalidResponse(`unexpected redirect (HTTP status ${code}); redirects of an API server are not followed`),
        );
      if (code < 200 || code >= 300) {
        errorBody = { headers, chunks: [], bytes: 0 };
        return;
      }
      const type = headers['content-type'] ?? '';
      if (!/^application\/json(;|$)/.test(type))
        fail(invalidResponse(`response has content type ${quoteText(type)}, expected application/json`));
      if (headers['content-encoding'] !== undefined)
        fail(invalidResponse('response is compressed, which was not requested'));
      if (!isResponseSettled) reader.headers?.(headers);
    });
    stream.on('data', (chunk: Buffer) => {
      if (isResponseSettled) return;
      clearTimeout(idleTimer);
      if (errorBody !== undefined) {
        errorBody.bytes += chunk.length;
        if (errorBody.bytes <= maxErrorBytes) errorBody.chunks.push(Buffer.from(chunk));
        else hasEnded = true;
      } else {
        // After a large object of any stream was parsed, further chunks are delayed to a later iteration of the event loop.
        if (msOfTurn() > maxReadMs) delayChunk(chunk);
        else if (!readChunk(chunk)) return;
      }
      if (errorBody !== undefined && hasEnded) return fail(new ApiError(failureOf(errorBody, reader)));
      // The reader may have ended the exchange.
      if (!isResponseSettled && (errorBody !== undefined || reader.isBodyIncomplete)) {
        idleTimer = setTimeout(() => failTimeout('response stalled, no data', limits.idleMs), limits.idleMs);
      }
    });
    stream.once('end', () => {
      hasEnded = true;
    });
    stream.once('close', () => {
      readDelayed();
      if (isResponseSettled) return;
      const code = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
      if (code === constants.NGHTTP2_REFUSED_STREAM && !hasResponded) {
        return fail(
          new ApiError({
            kind: 'going away',
            message: 'the server refused the stream before it processed the request',
          }),
        );
      }
      if (!hasEnded || hasStreamError || code !== constants.NGHTTP2_NO_ERROR) {
        return fail(
          new ApiError({
            kind: 'closed',
            message: `the connection closed before the end of the response (HTTP/2 code ${code})`,
          }),
        );
      }
      if (errorBody !== undefined) return fail(new ApiError(failureOf(errorBody, reader)));
      if (reader.isBodyIncomplete) return fail(new ApiError({ kind: 'closed', message: 'the response ended early' }));
      if (markSettled()) resolve('whole');
    });
    if (signal.aborted) onAbort();
  });
}

function failureOf(
  { headers, chunks }: { readonly headers: ResponseHeaders; readonly chunks: readonly Buffer[] },
  { hasTextErrors = false }: ResponseReader,
): ReturnType<typeof failureOfStatus> {
  const text = Buffer.concat(chunks).toString('utf8');
  const status = hasTextErrors ? { message: text.trim() } : statusIn(text);
  return failureOfStatus(status, headers[':status'], headers['retry-after']);
}

/** A load balancer's error page is not a Status. */
function statusIn(text: string): StatusBody {
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) && body.kind === 'Status' ? body : {};
  } catch {
    return {};
  }
}

function quoteText(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
