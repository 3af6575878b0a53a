import { relative, resolve } from 'node:path';
import type { ServerCall } from '../grpc/grpc-server.ts';

/** The path is relative to the working directory if that is shorter, because the kernel limits its length. */
export function xdsSocketPath(configPath: string): string {
  return socketPath(configPath, 'XDS');
}

export function accessLogSocketPath(configPath: string): string {
  return socketPath(configPath, 'ALS');
}

function socketPath(configPath: string, name: string): string {
  const absolutePath = resolve(configPath, name);
  const relativePath = `./${relative('.', absolutePath)}`;
  return relativePath.length < absolutePath.length ? relativePath : absolutePath;
}

/** Several Envoys exist during hot restarts and replacements. */
const maxEnvoys = 16;

export class XdsStreams {
  readonly #calls = new Map<number, ServerCall>();
  readonly #envoys = new Map<number, string>();
  /** Keys are Envoys, in the order of the most recently opened stream. */
  readonly #extensions = new Map<string, Set<string>>();
  #lastStream = 0;
  #lastModule = 0;

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

  /** Includes extensions of earlier streams of the Envoy. Empty for an Envoy without a name. */
  extensionsOf(stream: number): Set<string> {
    const envoy = this.#envoys.get(stream) ?? '';
    const extensions = this.#extensions.get(envoy) ?? new Set();
    if (envoy === '') return new Set();
    this.#extensions.delete(envoy);
    this.#extensions.set(envoy, extensions);
    const [oldestKey] = this.#extensions.keys();
    if (this.#extensions.size > maxEnvoys) this.#extensions.delete(oldestKey!);
    return extensions;
  }

  get(stream: number): ServerCall | undefined {
    return this.#calls.get(stream);
  }
}
