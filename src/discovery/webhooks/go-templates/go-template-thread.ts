/**
 * Executes Go templates in a thread, with the WebAssembly of the optional package `chartpilot-go-templates`. A template is text of users: it has
 * limits of time, memory and output, and sees neither files nor the environment. A thread that exceeds a limit is replaced.
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
  /** Of one execution. */
  readonly renderMs: number;
  /** Until a new thread is ready. */
  readonly startMs: number;
  /** Of all WebAssembly memory of the thread, of which the program itself takes 40. */
  readonly maxMebibytes: number;
  readonly maxOutputBytes: number;
  /** Executions that wait; each review has at most as many as its pod names templates. */
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

/** What the thread begins with. */
export interface GoTemplateWork {
  readonly module: WebAssembly.Module;
}

/** From the thread: `ready` once, and then the response to each request. */
export type GoTemplateMessage = { readonly ready: true } | { readonly output: string } | { readonly error: string };

/** The WebAssembly of the package. @returns `undefined`: it is not installed */
export function installedGoTemplates(root = packageRoot()): string | undefined {
  try {
    return createRequire(join(root, 'package.json')).resolve(`${goTemplatesPackage}/go-templates.wasm`);
  } catch {
    return undefined;
  }
}

/** Beside this file, or beside the bundle that it was put into. */
const helperModule = new URL(`./go-template-helper${extname(import.meta.filename)}`, import.meta.url);

interface Job {
  readonly call: GoTemplateCall;
  readonly settle: (result: Decoded<string>) => void;
}

export class GoTemplateThread implements GoTemplateRenderer {
  readonly #file: string;
  readonly #limits: GoTemplateLimits;
  readonly #jobs: Job[] = [];
  #module: Promise<WebAssembly.Module> | undefined;
  #worker: Worker | undefined;
  #isBusy = false;

  /** @param file the WebAssembly ({@link installedGoTemplates}); it is read when the first template is executed */
  constructor(file: string, limits: Partial<GoTemplateLimits> = {}) {
    this.#file = file;
    this.#limits = { ...goTemplateLimits, ...limits };
  }

  render(call: GoTemplateCall): Promise<Decoded<string>> {
    const { maxWaiting } = this.#limits;
    if (this.#jobs.length >= maxWaiting)
      return Promise.resolve(failed(call, `was not executed: ${maxWaiting} others wait; try again`));
    const { promise, resolve } = Promise.withResolvers<Decoded<string>>();
    this.#jobs.push({ call, settle: resolve });
    void this.#work();
    return promise;
  }

  /** Executions that wait get no result. */
  async close(): Promise<void> {
    for (const { call, settle } of this.#jobs.splice(0))
      settle(failed(call, 'was not executed: the program is shutting down'));
    await this.#end();
  }

  async #work(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const { call, settle } = job;
      try {
        settle(await this.#execute(call));
      } catch (error) {
        await this.#end();
        settle(failed(call, messageOf(error)));
      }
    }
    this.#isBusy = false;
  }

  /** @throws Error for a thread that must not go on */
  async #execute(call: GoTemplateCall): Promise<Decoded<string>> {
    const { renderMs, maxOutputBytes } = this.#limits;
    this.#worker ??= await this.#begin();
    const request = { ...call, environment: {}, maxOutput: maxOutputBytes };
    this.#worker.postMessage(JSON.stringify(request));
    const message = await this.#next(this.#worker, renderMs, `did not end within ${renderMs} ms`);
    if ('output' in message) return E.right(message.output);
    return failed(call, 'error' in message ? message.error : 'has no output');
  }

  async #begin(): Promise<Worker> {
    const { startMs } = this.#limits;
    this.#module ??= this.#compiled();
    const module = await this.#module.catch((error: unknown) => {
      this.#module = undefined;
      throw new Error(`cannot be executed: ${this.#file}: ${messageOf(error)}`);
    });
    const work: GoTemplateWork = { module };
    const worker = new Worker(helperModule, {
      ...{ workerData: work, env: {} },
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    worker.unref();
    this.#worker = worker;
    await this.#next(worker, startMs, `cannot be executed: its thread was not ready within ${startMs} ms`);
    return worker;
  }

  async #compiled(): Promise<WebAssembly.Module> {
    return compile(withMemoryLimit(await readFile(this.#file), this.#limits.maxMebibytes));
  }

  #next(worker: Worker, limitMs: number, late: string): Promise<GoTemplateMessage> {
    const { maxMebibytes } = this.#limits;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => end(() => reject(new Error(late))), limitMs);
      const taken = (message: GoTemplateMessage): void => end(() => resolve(message));
      // Go and V8 have several errors for what is too large; none of them names the limit.
      const ended = (how: string): void =>
        end(() => reject(new Error(`ended its thread, which has ${maxMebibytes} MiB of memory: ${how}`)));
      const broken = (error: unknown): void => ended(messageOf(error));
      const exited = (code: number): void => ended(`exit code ${code}`);
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        worker.off('message', taken).off('error', broken).off('exit', exited);
        settle();
      };
      worker.on('message', taken).on('error', broken).on('exit', exited);
    });
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.on('error', () => {});
    await worker?.terminate();
  }
}

function failed({ name }: GoTemplateCall, message: string): Decoded<never> {
  return fail(`templates.${name}`, violation.malformed(message));
}
