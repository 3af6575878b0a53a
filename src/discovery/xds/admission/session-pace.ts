/** Limits frames that clients can send at low cost: pings, settings, streams. */
import { constants } from 'node:http2';

export interface PacedSession {
  on(event: 'ping' | 'remoteSettings' | 'stream', listener: () => void): unknown;
  goaway(code: number): void;
  destroy(): void;
  readonly destroyed?: boolean;
  settings?(settings: { maxConcurrentStreams: number }): void;
}

/** Period of {@link maxEvents}. Clients that ping with each read to measure bandwidth stay far below. */
const periodMs = 10_000;
const maxEvents = { ping: 1_000, remoteSettings: 100, stream: 5_000 } as const;

const pacedSessions = new WeakSet<PacedSession>();
const endedSessions = new WeakSet<PacedSession>();

/** Closes the session when it exceeds a limit. Idempotent. */
export function limitFrames(
  session: PacedSession,
  now: () => number = () => performance.now(),
  onBusy: () => void = () => {},
): void {
  if (pacedSessions.has(session)) return;
  pacedSessions.add(session);
  for (const event of Object.keys(maxEvents) as (keyof typeof maxEvents)[]) {
    let periodStart = now();
    let count = 0;
    session.on(event, () => {
      const time = now();
      if (time - periodStart >= periodMs) {
        periodStart = time;
        count = 0;
      }
      if (++count !== maxEvents[event] + 1) return;
      onBusy();
      closeBusySession(session);
    });
  }
}

export function closeBusySession(session: PacedSession): void {
  if (endedSessions.has(session) || session.destroyed === true) return;
  endedSessions.add(session);
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // Destroys the session only after written data was sent.
  setImmediate(() => session.destroy());
}

export function isEnded(session: PacedSession): boolean {
  return endedSessions.has(session) || session.destroyed === true;
}

/** Maximum number of concurrent streams of a session before its nodes are identified. */
export const initialStreams = 100;

/** Raises the stream limit of a session to twice the number of its identified nodes, up to the server's limit. */
export class StreamAllowance {
  readonly #session: PacedSession;
  readonly #maxStreams: number;
  #allowedStreams: number;

  constructor(session: PacedSession, maxStreams: number) {
    this.#session = session;
    this.#maxStreams = maxStreams;
    this.#allowedStreams = Math.min(initialStreams, maxStreams);
  }

  /** @param nodes identified nodes of this session */
  increaseLimit(nodes: number): void {
    if (nodes * 2 <= this.#allowedStreams || this.#allowedStreams >= this.#maxStreams) return;
    this.#allowedStreams = Math.min(this.#allowedStreams * 2, this.#maxStreams);
    if (!isEnded(this.#session)) this.#session.settings?.({ maxConcurrentStreams: this.#allowedStreams });
  }
}
