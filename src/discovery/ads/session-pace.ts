/** How often a client may bother its HTTP/2 session with what costs it nothing: pings, settings, streams. */
import { constants } from 'node:http2';

/** What is used of node's ServerHttp2Session. */
export interface PacedSession {
  on(event: 'ping' | 'remoteSettings' | 'stream', listener: () => void): unknown;
  goaway(code: number): void;
  destroy(): void;
}

/** In each of these periods. A client that measures its connection pings at each read; no client is near these. */
const periodMs = 10_000;
const most = { ping: 1_000, remoteSettings: 100, stream: 5_000 } as const;

const paced = new WeakSet<PacedSession>();

/** Ends a session that is too busy, with the code that says so. To be called for each stream; counts from the first. */
export function keepPace(session: PacedSession, now: () => number = () => performance.now()): void {
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
      if (++count === most[event] + 1) endBusy(session);
    });
  }
}

function endBusy(session: PacedSession): void {
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // What was written leaves first.
  setImmediate(() => session.destroy());
}
