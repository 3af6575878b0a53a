/** Effects of the chart `wasm-module`: the cache, and HTTP. */
import { fromPromise } from 'xstate';
import { type FetchOutcome, wasmModuleMachine } from '../../../machines/agent/wasm/wasm-module.machine.ts';
import type { WasmModule } from '../../../machines/agent/wasm-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Fetch } from '../../runtime/fences/guarded-fetch.ts';
import type { ModuleCache } from './module-cache.ts';

export interface WasmModules {
  readonly cache: ModuleCache;
  /** HTTP GET that does not connect to blocked addresses. */
  readonly fetch: Fetch;
}

export const maxModuleRedirects = 5;
const schemes: ReadonlySet<string> = new Set(['http:', 'https:']);

export function wasmModuleWithEffects(modules: WasmModules) {
  return wasmModuleMachine.provide({
    actors: {
      fetchModule: fromPromise<FetchOutcome, WasmModule>(async ({ input, signal }) => {
        try {
          return { file: await obtainModule(modules, input, signal) };
        } catch (error) {
          return { reason: messageOf(error) };
        }
      }),
    },
  });
}

/** @returns the path of the cached module @throws Error if it cannot be fetched */
async function obtainModule({ cache, fetch }: WasmModules, module: WasmModule, signal: AbortSignal): Promise<string> {
  const cached = await cache.lookup(module);
  if (cached !== undefined) return cached;
  const protocol = URL.parse(module.url)?.protocol;
  if (protocol === undefined || !schemes.has(protocol)) throw new Error('URL must use http or https');
  const { ok, status, body } = await fetch(module.url, { signal, headers: {} });
  if (!ok || body === null) throw new Error(`status must be 200, got ${status}`);
  return cache.store(module, body);
}
