/**
 * Uses the WebAssembly of the optional package `chartpilot-go-templates`. Templates are written by users, so they are limited in time, memory and
 * output, and have no access to files or environment.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import * as E from 'fp-ts/lib/Either.js';
import {
  type GoTemplateCall,
  type GoTemplateRenderer,
  goTemplatesPackage,
} from '../../../injection/template/go-template.ts';
import { type Decoded, fail } from '../../../model/fields/decode.ts';
import * as violation from '../../../model/fields/violation.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import { compile, withMemoryLimit } from './web-assembly.ts';

export interface GoTemplateLimits {
  readonly renderMs: number;
  readonly startMs: number;
  /** The program itself uses 40 MiB. */
  readonly maxMebibytes: number;
  readonly maxOutputBytes: number;
  /** A review needs at most one execution per template of its pod. */
  readonly maxWaiting: number;
}

/** An API server waits 10 s for a webhook. */
export const goTemplateLimits: GoTemplateLimits = {
  renderMs: 3_000,
  startMs: 30_000,
  maxMebibytes: 256,
  maxOutputBytes: 1024 * 1024,
  maxWaiting: 64,
};

export interface GoTemplateWork {
  readonly module: WebAssembly.Module;
}

/** First `ready`, then a response to each request. */
export type GoTemplateMessage = { readonly ready: true } | { readonly output: string } | { readonly error: string };

/** @returns `undefined` if the package is not installed */
export function installedGoTemplates(root = packageRoot()): string | undefined {
  try {
    return createRequire(join(root, 'package.json')).resolve(`${goTemplatesPackage}/go-templates.wasm`);
  } catch {
    return undefined;
  }
}

/** Next to this file, or to the bundle that contains it. */
const threadModule = new URL(`./go-template-helper${extname(import.meta.filename)}`, import.meta.url);

interface TemplateJob {
  readonly call: GoTemplateCall;
  readonly settle: (result: Decoded<string>) => void;
}

export class GoTemplateThread implements GoTemplateRenderer {
  readonly #file: string;
  readonly #limits: GoTemplateLimits;
  readonly #jobs: TemplateJob[] = [];
  #module: Promise<WebAssembly.Module> | undefined;
  #worker: Worker | undefined;
  #isBusy = false;

  /** @param file the WebAssembly ({@link installedGoTemplates}), read at the first execution */
  constructor(file: string, limits: Partial<GoTemplateLimits> = {}) {
    this.#file = file;
    this.#limits = { ...goTemplateLimits, ...limits };
  }

  render(call: GoTemplateCall): Promise<Decoded<string>> {
    const { maxWaiting } = this.#limits;
    if (this.#jobs.length >= maxWaiting)
      return Promise.resolve(failedCall(call, `was not executed: ${maxWaiting} others wait; try again`));
    const { promise, resolve } = Promise.withResolvers<Decoded<string>>();
    this.#jobs.push({ call, settle: resolve });
    void this.#runJobs();
    return promise;
  }

  async close(): Promise<void> {
    for (const { call, settle } of this.#jobs.splice(0))
      settle(failedCall(call, 'was not executed: the program is shutting down'));
    await this.#endThread();
  }

  async #runJobs(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const { call, settle } = job;
      try {
        settle(await this.#execute(call));
      } catch (error) {
        await this.#endThread();
        settle(failedCall(call, messageOf(error)));
      }
    }
    this.#isBusy = false;
  }

  /** @throws Error if the thread must be replaced */
  async #execute(call: GoTemplateCall): Promise<Decoded<string>> {
    const { renderMs, maxOutputBytes } = this.#limits;
    this.#worker ??= await this.#startWorker();
    const request = { ...call, environment: {}, maxOutput: maxOutputBytes };
    this.#worker.postMessage(JSON.stringify(request));
    const message = await this.#nextMessage(this.#worker, renderMs, `did not end within ${renderMs} ms`);
    if ('output' in message) return E.right(message.output);
    return failedCall(call, 'error' in message ? message.error : 'has no output');
  }

  async #startWorker(): Promise<Worker> {
    const { startMs } = this.#limits;
    this.#module ??= this.#compileModule();
    const module = await this.#module.catch((error: unknown) => {
      this.#module = undefined;
      throw new Error(`cannot be executed: ${this.#file}: ${messageOf(error)}`);
    });
    const threadInput: GoTemplateWork = { module };
    const worker = new Worker(threadModule, {
      ...{ workerData: threadInput, env: {} },
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    worker.unref();
    this.#worker = worker;
    await this.#nextMessage(worker, startMs, `cannot be executed: its thread was not ready within ${startMs} ms`);
    return worker;
  }

  async #compileModule(): Promise<WebAssembly.Module> {
    return compile(withMemoryLimit(await readFile(this.#file), this.#limits.maxMebibytes));
  }

  #nextMessage(worker: Worker, limitMs: number, timeoutMessage: string): Promise<GoTemplateMessage> {
    const { maxMebibytes } = this.#limits;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => finishCall(() => reject(new Error(timeoutMessage))), limitMs);
      const onMessage = (message: GoTemplateMessage): void => finishCall(() => resolve(message));
      // Go and V8 have several error messages for exceeded memory, none of which mentions the limit.
      const onEnded = (description: string): void =>
        finishCall(() =>
          reject(new Error(`ended its thread, which has ${maxMebibytes} MiB of memory: ${description}`)),
        );
      const onError = (error: unknown): void => onEnded(messageOf(error));
      const onExit = (code: number): void => onEnded(`exit code ${code}`);
      const finishCall = (settleCall: () => void): void => {
        clearTimeout(timer);
        worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        settleCall();
      };
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    });
  }

  async #endThread(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.on('error', () => {});
    await worker?.terminate();
  }
}

function failedCall({ name }: GoTemplateCall, message: string): Decoded<never> {
  return fail(`templates.${name}`, violation.malformedValue(message));
}
