/** `GET /debug/trace` of a running program, on whichever of its ports: who asks is looked at, then streamed to. */
import type { ServerResponse } from 'node:http';
import { messageOf } from '../errors.ts';
import type { Logger } from '../output/log.ts';
import { type Caller, DebuggerAccess, type DebuggerMode, type Refusal } from './debugger-access.ts';
import type { TraceRing } from './trace-ring.ts';
import { TraceStream } from './trace-stream.ts';

export const tracePath = '/debug/trace';

/** An answer that goes on after its request: from now on the connection is nobody else's business. */
export interface StreamAnswer {
  readonly stream: (response: ServerResponse) => void;
}

export interface TraceEndpointOptions {
  readonly ring: TraceRing;
  readonly mode: Exclude<DebuggerMode, 'off'>;
  /** Directory of the token files. */
  readonly runDir: string;
  readonly log: Logger;
}

export class TraceEndpoint {
  readonly #access: DebuggerAccess;
  readonly #stream: TraceStream;
  readonly #log: Logger;

  constructor({ ring, mode, runDir, log }: TraceEndpointOptions) {
    this.#access = new DebuggerAccess({ mode, runDir });
    this.#stream = new TraceStream(ring);
    this.#log = log;
  }

  /** A port that answers with {@link answer} is open now. */
  opened(port: number): void {
    try {
      this.#access.announce(port);
      this.#log.info(`the debugger may attach: chartpilot visualize --attach 127.0.0.1:${port}`);
    } catch (error) {
      // The program does its work all the same.
      const what =
        'the debugger cannot attach: its token could not be written; name another --runDir, or --debugger open';
      this.#log.warn(what, { reason: messageOf(error) });
    }
  }

  /** What a request is answered. */
  answer(caller: Caller, query: URLSearchParams): Refusal | StreamAnswer {
    const refusal = this.#access.refusalOf(caller);
    if (refusal !== undefined) {
      this.#log.debug('a reader of the trace was refused', { status: refusal.status, peer: caller.peer.remoteAddress });
      return refusal;
    }
    if (!this.#stream.hasRoom) return { status: 503, body: 'as many debuggers are attached as may be; detach one\n' };
    return { stream: (response) => this.#stream.attach(response, { follow: query.get('follow') !== 'false' }) };
  }

  /** The program is over: whoever is attached gets the rest, and nobody finds the token any more. */
  async end(): Promise<void> {
    this.#access.withdraw();
    await this.#stream.end();
  }
}
