/** The streams that Envoys have open, by the numbers that their actors know them by. */
import { relative, resolve } from 'node:path';
import type { ServerCall } from '../grpc/grpc-server.ts';

/**
 * The socket in the directory of generated files: for Envoy as well, whose working directory is the agent's. The shorter of two
 * names, for the kernel takes no long ones.
 */
export function xdsSocketPath(configPath: string): string {
  return socketPath(configPath, 'XDS');
}

/** The socket beside it at which Envoy's access logs are received. */
export function accessLogSocketPath(configPath: string): string {
  return socketPath(configPath, 'ALS');
}

function socketPath(configPath: string, name: string): string {
  const whole = resolve(configPath, name);
  const fromHere = `./${relative('.', whole)}`;
  return fromHere.length < whole.length ? fromHere : whole;
}

/** Envoys of hot restarts and replacements live beside each other. */
const maxEnvoys = 16;

export class XdsStreams {
  readonly #calls = new Map<number, ServerCall>();
  /** Names of Envoys by stream. */
  readonly #envoys = new Map<number, string>();
  /** By Envoy, the one whose stream was opened last at the end. */
  readonly #extensions = new Map<string, Set<string>>();
  #last = 0;
  #lastModule = 0;

  /** @param envoy name of the Envoy; empty if it has none @returns the number of the stream */
  add(call: ServerCall, envoy: string): number {
    const stream = ++this.#last;
    this.#calls.set(stream, call);
    this.#envoys.set(stream, envoy);
    call.stream.once('close', () => {
      this.#calls.delete(stream);
      this.#envoys.delete(stream);
    });
    return stream;
  }

  /** @returns a number for the fetch of a Wasm module */
  nextModule(): number {
    return ++this.#lastModule;
  }

  /**
   * Names of the extensions that the Envoy of a stream has received from this agent, also on its earlier streams. They are added and removed by
   * the streams. Of an Envoy without a name they are not known.
   */
  extensionsOf(stream: number): Set<string> {
    const envoy = this.#envoys.get(stream) ?? '';
    const extensions = this.#extensions.get(envoy) ?? new Set();
    if (envoy === '') return new Set();
    this.#extensions.delete(envoy);
    this.#extensions.set(envoy, extensions);
    const [oldest] = this.#extensions.keys();
    if (this.#extensions.size > maxEnvoys) this.#extensions.delete(oldest!);
    return extensions;
  }

  /** Undefined: it is gone. */
  get(stream: number): ServerCall | undefined {
    return this.#calls.get(stream);
  }
}
