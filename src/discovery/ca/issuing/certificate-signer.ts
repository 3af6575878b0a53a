/** Has requests verified and certificates signed by threads, so that neither pushes nor probes wait for it. */
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FairQueue } from '../../../model/collections/fair-queue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import { type SigningLimits, signingKey, signingShares } from './signing-shares.ts';
import type {
  LeafOrder,
  SignerOrder,
  SigningAnswer,
  SigningOrder,
  SigningOutcome,
  ThreadOutcome,
  VerifiedRequest,
  VerifyOrder,
} from './signing-work.ts';

/** Whose share of the queue a request takes. */
interface Caller {
  /** When the caller's current certificate ends, Unix time in milliseconds; 0: it has none. */
  readonly endsAt: number;
  /** Its connection. */
  readonly client: string;
}

export interface SigningRequest extends LeafOrder, Caller {}

export interface VerifyRequest extends VerifyOrder, Caller {}

/** There is no room; worth another try after so long. */
type Busy = { readonly tryAgainAfterMs: number };

export type SigningResult = SigningOutcome | Busy;

interface Job {
  readonly order: LeafOrder | VerifyOrder;
  readonly endsAt: number;
  readonly settle: (result: ThreadOutcome | Busy) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly jobs: Map<number, Job>;
}

/** Beside this file, or beside the bundle that it was put into. */
const helperModule = new URL(`./signing-helper${extname(import.meta.filename)}`, import.meta.url);

export const signingLimits: SigningLimits = { maxWaiting: 4_000, maxOfConnection: 16 };
/** In a thread's hands at once: it never waits for the next, and what is more urgent waits for these only. */
const mostOfThread = 2;
/** A thread signs some hundreds a second; whoever is refused comes back when this much of the queue is gone. */
const perSecondAndThread = 200;
const mostThreads = 2;
/** A processor is left to pushes, where there are two. */
const threads = Math.max(1, Math.min(mostThreads, availableParallelism() - 1));

export interface CertificateSignerOptions {
  readonly limits?: SigningLimits;
  /** Told of a thread that broke; what it had in hand has failed, and another is begun. */
  readonly broken?: (error: Error) => void;
}

export class CertificateSigner {
  readonly #queue: FairQueue<Job>;
  readonly #broken: (error: Error) => void;
  readonly #threads: Thread[] = [];
  #material: AuthorityMaterial | undefined;
  #count = 0;
  #isClosed = false;

  constructor({ limits = signingLimits, broken = () => {} }: CertificateSignerOptions = {}) {
    this.#queue = new FairQueue<Job>(signingShares(limits));
    this.#broken = broken;
  }

  /** From now on everything is signed by this one, what waits included. */
  use(material: AuthorityMaterial): void {
    this.#material = material;
    for (const { worker } of this.#threads) worker.postMessage(signerOrder(material));
  }

  /** For metrics. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** @param signal the client cancelled the request: what has not begun is not done */
  sign({ endsAt, client, ...order }: SigningRequest, signal?: AbortSignal): Promise<SigningResult> {
    return this.#queued<SigningOutcome>(order, { endsAt, client }, signal);
  }

  /**
   * Verifies a request that another signer will sign.
   *
   * @param signal the client cancelled the request: what has not begun is not done
   */
  verify({ endsAt, client, ...order }: VerifyRequest, signal?: AbortSignal): Promise<VerifiedRequest | Busy> {
    return this.#queued<VerifiedRequest>(order, { endsAt, client }, signal);
  }

  #queued<Outcome extends ThreadOutcome>(
    order: LeafOrder | VerifyOrder,
    { endsAt, client }: Caller,
    signal: AbortSignal | undefined,
  ): Promise<Outcome | Busy> {
    const { promise, resolve } = Promise.withResolvers<ThreadOutcome | Busy>();
    // A thread responds to each kind of order with its kind of outcome.
    const result = promise as Promise<Outcome | Busy>;
    const job: Job = { order, endsAt, settle: resolve };
    if (this.#isClosed || signal?.aborted === true) {
      resolve({ failed: 'the request was cancelled, or the control plane is shutting down' });
      return result;
    }
    const leave = (): void => {
      this.#queue.remove(job);
      resolve({ failed: 'the client cancelled the request' });
    };
    signal?.addEventListener('abort', leave, { once: true });
    this.#queue.add(job, signingKey(order.uri, client))?.settle({ tryAgainAfterMs: this.#delayMs() });
    this.#hand();
    return result.finally(() => signal?.removeEventListener('abort', leave));
  }

  close(): void {
    this.#isClosed = true;
    for (let waiting = this.#queue.next(); waiting !== undefined; waiting = this.#queue.next()) {
      waiting.settle({ failed: 'the control plane is shutting down' });
    }
    for (const thread of this.#threads.splice(0)) {
      failAll(thread, 'the control plane is shutting down');
      void thread.worker.terminate();
    }
  }

  #hand(): void {
    while (this.#queue.size > 0) {
      const thread = this.#freeThread();
      if (thread === undefined) return;
      const job = this.#queue.next()!;
      const id = ++this.#count;
      thread.jobs.set(id, job);
      thread.worker.postMessage({ id, ...job.order } satisfies SigningOrder);
    }
  }

  /** The one with the least in hand; another is begun while all have something. */
  #freeThread(): Thread | undefined {
    const least = this.#threads.toSorted((a, b) => a.jobs.size - b.jobs.size)[0];
    if (least?.jobs.size === 0) return least;
    if (this.#threads.length < threads) return this.#begin();
    return least !== undefined && least.jobs.size < mostOfThread ? least : undefined;
  }

  #begin(): Thread {
    const thread: Thread = { worker: new Worker(helperModule), jobs: new Map() };
    const { worker, jobs } = thread;
    this.#threads.push(thread);
    if (this.#material !== undefined) worker.postMessage(signerOrder(this.#material));
    worker.on('message', ({ id, ...outcome }: SigningAnswer) => {
      jobs.get(id)?.settle(outcome);
      jobs.delete(id);
      this.#hand();
    });
    const end = (error: Error): void => {
      const at = this.#threads.indexOf(thread);
      if (at < 0) return;
      this.#threads.splice(at, 1);
      failAll(thread, 'the signing thread failed, retry');
      this.#broken(error);
      this.#hand();
    };
    worker.on('error', end);
    worker.on('exit', (code) => end(new Error(`the thread exited with code ${code}`)));
    // Nobody waits for it at the end of the program.
    worker.unref();
    return thread;
  }

  #delayMs(): number {
    return Math.max(1_000, Math.ceil((1_000 * this.#queue.size) / perSecondAndThread));
  }
}

function failAll({ jobs }: Thread, failed: string): void {
  for (const { settle } of jobs.values()) settle({ failed });
  jobs.clear();
}

function signerOrder({ issuer: { certificate, privateKey } }: AuthorityMaterial): SignerOrder {
  return { signer: { der: certificate.der, privateKey } };
}
