/** `GET /debug/trace` of a running program, on whichever of its ports: who asks is looked at, then streamed to. */
import type { ServerResponse } from 'node:http';
import type { Logger } from '../output/log.ts';
import type { Caller, DebuggerAccess, DebuggerMode, Refusal } from './debugger-access.ts';
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
  readonly access: DebuggerAccess;
  readonly log: Logger;
}

export class TraceEndpoint {
  readonly #access: DebuggerAccess;
  readonly #needsToken: boolean;
  readonly #stream: TraceStream;
  readonly #log: Logger;

  constructor({ ring, mode, access, log }: TraceEndpointOptions) {
    this.#access = access;
    this.#needsToken = mode === 'on';
    this.#stream = new TraceStream(ring);
    this.#log = log;
  }

  /** A port that responds with {@link answer} is open, and its access knows it. */
  opened(port: number): void {
    if (this.#needsToken && !this.#access.isAnnounced(port)) return;
    this.#log.info('debugger.available', { command: `chartpilot visualize --attach 127.0.0.1:${port}` });
  }

  /** What a request is answered. */
  answer(caller: Caller, query: URLSearchParams): Refusal | StreamAnswer {
    const refusal = this.#access.refusalOf(caller, { needsToken: this.#needsToken });
    if (refusal !== undefined) {
      this.#log.debug('debugger.rejected', { status: refusal.status, peer: caller.peer.remoteAddress });
      return refusal;
    }
    if (!this.#stream.hasRoom) return { status: 503, body: 'too many debuggers are attached: detach one\n' };
    return { stream: (response) => this.#stream.attach(response, { follow: query.get('follow') !== 'false' }) };
  }

  /** The program ends: attached debuggers get the rest. */
  async end(): Promise<void> {
    await this.#stream.end();
  }
}
