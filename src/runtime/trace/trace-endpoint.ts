/** `GET /debug/trace` of a running program, on any of its ports. */
import type { ServerResponse } from 'node:http';
import type { Logger } from '../output/log.ts';
import type { AccessRefusal, Caller, DebuggerAccess, DebuggerMode } from './debugger-access.ts';
import type { TraceRing } from './trace-ring.ts';
import { HttpTraceStream } from './trace-stream.ts';

export const tracePath = '/debug/trace';

/** A response that continues after its request; `stream` owns the connection from then on. */
export interface StreamResponse {
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
  readonly #stream: HttpTraceStream;
  readonly #log: Logger;

  constructor({ ring, mode, access, log }: TraceEndpointOptions) {
    this.#access = access;
    this.#needsToken = mode === 'on';
    this.#stream = new HttpTraceStream(ring);
    this.#log = log;
  }

  /** Must be called when a port that responds with {@link respond} is open. */
  onPortOpened(port: number): void {
    if (this.#needsToken && !this.#access.hasTokenFile(port)) return;
    this.#log.info('debugger.available', { command: `chartpilot visualize --attach 127.0.0.1:${port}` });
  }

  respond(caller: Caller, query: URLSearchParams): AccessRefusal | StreamResponse {
    const refusal = this.#access.refusalOf(caller, { needsToken: this.#needsToken });
    if (refusal !== undefined) {
      this.#log.debug('debugger.rejected', { status: refusal.status, peer: caller.peer.remoteAddress });
      return refusal;
    }
    if (!this.#stream.hasFreeSlot) return { status: 503, body: 'too many debuggers are attached: detach one\n' };
    return { stream: (response) => this.#stream.attach(response, { follow: query.get('follow') !== 'false' }) };
  }

  /** Must be called at the end of the program; attached debuggers receive the remaining records. */
  async end(): Promise<void> {
    await this.#stream.end();
  }
}
