import { relative, resolve } from 'node:path';
import type { ServerCall } from '../grpc/grpc-server.ts';

/**
 * Path of the xDS socket in the directory of generated files, or relative to the working directory if that is shorter, because the kernel limits its
 * length.
 */
export function xdsSocketPath(configPath: string): string {
  return socketPath(configPath, 'XDS');
}

/** Path of the access log socket, in the same directory. */
export function accessLogSocketPath(configPath: string): string {
  return socketPath(configPath, 'ALS');
}

function socketPath(configPath: string, name: string): string {
  const absolutePath = resolve(configPath, name);
  const fromHere = `./${relative('.', absolutePath)}`;
  return fromHere.length < absolutePath.length ? fromHere : absolutePath;
}

/** Several Envoys exist during hot restarts and replacements. */
const maxEnvoys = 16;

export class XdsStreams {
  readonly #calls = new Map<number, ServerCall>();
  /** Names of Envoys by stream. */
  readonly #envoys = new Map<number, string>();
  /** Key: Envoy, in the order of the most recently opened stream. */
  readonly #extensions = new Map<string, Set<string>>();
  #lastStream = 0;
  #lastModule = 0;

  /**
   * @param envoy name of the Envoy; empty without one
   * @returns number of the stream
   */
  add(call: ServerCall, envoy: string): number {
    const stream = ++this.#lastStream;
    this.#calls.set(stream, call);
    this.#envoys.set(stream, envoy);
    call.stream.once('close', () => {
      this.#calls.delete(stream);
      this.#envoys.delete(stream);
    });
    return stream;
  }

  nextModule(): number {
    return ++this.#lastModule;
  }

  /** Extensions that the Envoy of a stream has received from this agent, also on earlier streams. Empty for an Envoy without a name. */
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

  /** `undefined` after its end. */
  get(stream: number): ServerCall | undefined {
    return this.#calls.get(stream);
  }
}
