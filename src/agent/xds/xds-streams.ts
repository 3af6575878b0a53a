/** The streams that Envoys have open, by the numbers that their actors know them by. */
import { relative, resolve } from 'node:path';
import type { ServerCall } from '../grpc/grpc-server.ts';

/**
 * The socket in the directory of generated files: for Envoy as well, whose working directory is the agent's. The shorter of two
 * names, for the kernel takes no long ones.
 */
export function xdsSocketPath(configPath: string): string {
  const whole = resolve(configPath, 'XDS');
  const fromHere = `./${relative('.', whole)}`;
  return fromHere.length < whole.length ? fromHere : whole;
}

export class XdsStreams {
  readonly #calls = new Map<number, ServerCall>();
  #last = 0;
  #lastModule = 0;

  /** @returns its number */
  add(call: ServerCall): number {
    const stream = ++this.#last;
    this.#calls.set(stream, call);
    call.stream.once('close', () => this.#calls.delete(stream));
    return stream;
  }

  /** @returns a number for the fetch of a Wasm module */
  nextModule(): number {
    return ++this.#lastModule;
  }

  /** Undefined: it is gone. */
  get(stream: number): ServerCall | undefined {
    return this.#calls.get(stream);
  }
}
