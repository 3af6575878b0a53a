/** How often a client may bother its HTTP/2 session with what costs it nothing: pings, settings, streams. */
import { constants } from 'node:http2';

/** What is used of node's ServerHttp2Session. */
export interface PacedSession {
  on(event: 'ping' | 'remoteSettings' | 'stream', listener: () => void): unknown;
  goaway(code: number): void;
  destroy(): void;
  readonly destroyed?: boolean;
  settings?(settings: { maxConcurrentStreams: number }): void;
}

/** In each of these periods. A client that measures its connection pings at each read; no client is near these. */
const periodMs = 10_000;
const most = { ping: 1_000, remoteSettings: 100, stream: 5_000 } as const;

const paced = new WeakSet<PacedSession>();
const ended = new WeakSet<PacedSession>();

/** Ends a session that is too busy, with the code that says so. Counts from the first call for a session. */
export function keepPace(
  session: PacedSession,
  now: () => number = () => performance.now(),
  tooBusy: () => void = () => {},
): void {
  if (paced.has(session)) return;
  paced.add(session);
  for (const event of Object.keys(most) as (keyof typeof most)[]) {
    let begin = now();
    let count = 0;
    session.on(event, () => {
      const time = now();
      if (time - begin >= periodMs) {
        begin = time;
        count = 0;
      }
      if (++count !== most[event] + 1) return;
      tooBusy();
      endBusy(session);
    });
  }
}

/** Ends a session with the code for those who are too busy. */
export function endBusy(session: PacedSession): void {
  if (ended.has(session) || session.destroyed === true) return;
  ended.add(session);
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // What was written leaves first.
  setImmediate(() => session.destroy());
}

/** Whether it was ended, or is being ended, because it was too busy: nothing is done for it any more. */
export function isEnded(session: PacedSession): boolean {
  return ended.has(session) || session.destroyed === true;
}

/** Streams that a session may have at the same time before anybody has said by it who is there. */
export const firstStreams = 100;

/**
 * Lets a session have more streams at the same time as nodes say by it who they are: twice as many as there are nodes, and
 * as many as the server's limit at the most. A client that needs more waits for this, as HTTP/2 has it.
 */
export class StreamAllowance {
  readonly #session: PacedSession;
  readonly #most: number;
  #allowed: number;

  constructor(session: PacedSession, most: number) {
    this.#session = session;
    this.#most = most;
    this.#allowed = Math.min(firstStreams, most);
  }

  /** @param nodes that are there by this session */
  grow(nodes: number): void {
    if (nodes * 2 <= this.#allowed || this.#allowed >= this.#most) return;
    this.#allowed = Math.min(this.#allowed * 2, this.#most);
    if (!isEnded(this.#session)) this.#session.settings?.({ maxConcurrentStreams: this.#allowed });
  }
}
