/** One request and its answer on a stream of HTTP/2: every way in which it can end is told apart. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { messageOf } from '../../../runtime/errors.ts';
import { msOfTurn, nextFreeTurn } from '../../../runtime/turns.ts';
import { ApiError, failureOfStatus, invalid, type Status } from '../api-failure.ts';
import { isRecord } from '../store/trim.ts';
import { aborted } from './http2-connection.ts';

export type AnswerHeaders = IncomingHttpHeaders & IncomingHttpStatusHeader;

export interface ExchangeLimits {
  /** Until the answer begins. */
  readonly answerMs: number;
  /** Until it has ended. */
  readonly wholeMs: number;
  /** Between two pieces of what was begun: {@link AnswerReader.isMidway}. */
  readonly idleMs: number;
}

/** Takes the body of an answer that is no error. What it throws ends the exchange. */
export interface AnswerReader {
  /** Headers of an answer that is no error, before its body. */
  headers?(headers: AnswerHeaders): void;
  data(chunk: Buffer): void;
  /** More must come soon. */
  readonly isMidway: boolean;
  /** The body of an error is a text for people, not a Status object of Kubernetes. */
  readonly hasTextErrors?: boolean;
}

/** Work in one turn of the event loop, in milliseconds, after which everything else has its turn: streams share it. */
const maxReadMs = 5;

/** As much of an error's body is read. */
const maxErrorBytes = 64 * 1024;

/**
 * @returns once the answer has ended as it should: `whole`, or `limit` when the server did not end it in time and the reader was not
 * midway
 * @throws ApiError
 */
export function exchange(
  stream: ClientHttp2Stream,
  reader: AnswerReader,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<'whole' | 'limit'> {
  return new Promise((resolve, reject) => {
    let errorBody: { readonly headers: AnswerHeaders; readonly chunks: Buffer[]; bytes: number } | undefined;
    let ended = false;
    const timers = new Set<NodeJS.Timeout>();
    let idle: NodeJS.Timeout | undefined;
    let isAnswered = false;
    let isSettled = false;

    const settle = (): boolean => {
      if (isSettled) return false;
      isSettled = true;
      for (const timer of timers) clearTimeout(timer);
      clearTimeout(idle);
      signal.removeEventListener('abort', onAbort);
      return true;
    };
    const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL);
    const fail = (error: unknown): void => {
      if (!settle()) return;
      cancel();
      reject(error instanceof ApiError ? error : invalid(`invalid response: ${messageOf(error)}`));
    };
    const late = (what: string, ms: number): void =>
      fail(new ApiError({ kind: 'timeout', message: `${what} within ${ms} ms` }));
    const onAbort = (): void => fail(aborted());
    const after = (ms: number, then: () => void): NodeJS.Timeout => {
      const timer = setTimeout(then, ms);
      timers.add(timer);
      return timer;
    };

    const answer = after(limits.answerMs, () => late('no response', limits.answerMs));
    after(limits.wholeMs, () => {
      if (errorBody !== undefined || reader.isMidway || !isAnswered)
        return late('response not complete', limits.wholeMs);
      if (!settle()) return;
      cancel();
      resolve('limit');
    });
    signal.addEventListener('abort', onAbort);
    /** Did not fit into the turn in which it came. */
    let waiting: Buffer | undefined;
    const read = (chunk: Buffer): boolean => {
      try {
        reader.data(chunk);
        return true;
      } catch (error) {
        fail(error);
        return false;
      }
    };
    const readWaiting = (): void => {
      const chunk = waiting;
      waiting = undefined;
      if (chunk !== undefined && !isSettled) read(chunk);
    };
    const wait = (chunk: Buffer): void => {
      // A chunk is not ours once its event is past. While the stream is paused, none comes.
      waiting = waiting === undefined ? Buffer.from(chunk) : Buffer.concat([waiting, chunk]);
      stream.pause();
      void nextFreeTurn().then(() => {
        readWaiting();
        stream.resume();
      });
    };
    let broke = false;
    stream.on('error', () => {
      broke = true;
    });
    stream.once('response', (headers: AnswerHeaders) => {
      clearTimeout(answer);
      isAnswered = true;
      const code = headers[':status'] ?? 0;
      if (code >= 300 && code < 400)
        return fail(invalid(`unexpected redirect (HTTP status ${code}); redirects of an API server are not followed`));
      if (code < 200 || code >= 300) {
        errorBody = { headers, chunks: [], bytes: 0 };
        return;
      }
      const type = headers['content-type'] ?? '';
      if (!/^application\/json(;|$)/.test(type))
        fail(invalid(`response has content type ${quoted(type)}, expected application/json`));
      if (headers['content-encoding'] !== undefined) fail(invalid('response is compressed, which was not requested'));
      if (!isSettled) reader.headers?.(headers);
    });
    stream.on('data', (chunk: Buffer) => {
      if (isSettled) return;
      clearTimeout(idle);
      if (errorBody !== undefined) {
        errorBody.bytes += chunk.length;
        if (errorBody.bytes <= maxErrorBytes) errorBody.chunks.push(Buffer.from(chunk));
        else ended = true;
      } else {
        // A large object was parsed, of this stream or of another one. What has arrived already waits for a later turn.
        if (msOfTurn() > maxReadMs) wait(chunk);
        else if (!read(chunk)) return;
      }
      if (errorBody !== undefined && ended) return fail(new ApiError(failureOf(errorBody, reader)));
      // The reader may have ended it.
      if (!isSettled && (errorBody !== undefined || reader.isMidway)) {
        idle = setTimeout(() => late('response stalled, no data', limits.idleMs), limits.idleMs);
      }
    });
    stream.once('end', () => {
      ended = true;
    });
    stream.once('close', () => {
      readWaiting();
      if (isSettled) return;
      const code = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
      if (code === constants.NGHTTP2_REFUSED_STREAM && !isAnswered) {
        return fail(
          new ApiError({
            kind: 'going away',
            message: 'the server refused the stream before it processed the request',
          }),
        );
      }
      if (!ended || broke || code !== constants.NGHTTP2_NO_ERROR) {
        return fail(
          new ApiError({
            kind: 'closed',
            message: `the connection closed before the end of the response (HTTP/2 code ${code})`,
          }),
        );
      }
      if (errorBody !== undefined) return fail(new ApiError(failureOf(errorBody, reader)));
      if (reader.isMidway) return fail(new ApiError({ kind: 'closed', message: 'the response ended early' }));
      if (settle()) resolve('whole');
    });
    if (signal.aborted) onAbort();
  });
}

function failureOf(
  { headers, chunks }: { readonly headers: AnswerHeaders; readonly chunks: readonly Buffer[] },
  { hasTextErrors = false }: AnswerReader,
): ReturnType<typeof failureOfStatus> {
  const text = Buffer.concat(chunks).toString('utf8');
  const status = hasTextErrors ? { message: text.trim() } : statusIn(text);
  return failureOfStatus(status, headers[':status'], headers['retry-after']);
}

/** A load balancer's page says nothing that we could read. */
function statusIn(text: string): Status {
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) && body.kind === 'Status' ? body : {};
  } catch {
    return {};
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
