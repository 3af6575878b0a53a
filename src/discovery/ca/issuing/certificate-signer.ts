/** Signs on worker threads, to avoid delaying pushes and probes. */
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FairQueue } from '../../../model/collections/fair-queue.ts';
import type { AuthorityMaterial } from '../authority-material.ts';
import { type SigningLimits, signingKey, signingShares } from './signing-shares.ts';
import type {
  LeafOrder,
  SignerOrder,
  SigningOrder,
  SigningOutcome,
  ThreadOutcome,
  ThreadReply,
  VerifiedRequest,
  VerifyOrder,
} from './signing-work.ts';

interface Caller {
  /** See SigningCaller in registrar.ts. */
  readonly endsAt: number;
  readonly client: string;
}

export interface SigningRequest extends LeafOrder, Caller {}

export interface VerifyRequest extends VerifyOrder, Caller {}

type BusyResult = { readonly tryAgainAfterMs: number };

export type SigningResult = SigningOutcome | BusyResult;

interface SigningJob {
  readonly order: LeafOrder | VerifyOrder;
  readonly endsAt: number;
  readonly settle: (result: ThreadOutcome | BusyResult) => void;
}

interface SignerThread {
  readonly worker: Worker;
  readonly jobs: Map<number, SigningJob>;
}

/** The module is next to this file or to the bundle that contains it. */
const threadModule = new URL(`./signing-helper${extname(import.meta.filename)}`, import.meta.url);

export const signingLimits: SigningLimits = { maxWaiting: 4_000, maxOfConnection: 16 };
/** Two jobs keep a thread busy, and an urgent request waits for at most two. */
const maxJobsPerThread = 2;
/** Assumed rate, for retry delays. */
const signaturesPerThreadAndSecond = 200;
const maxThreads = 2;
/** Leaves one processor to pushes. */
const threads = Math.max(1, Math.min(maxThreads, availableParallelism() - 1));

export interface CertificateSignerOptions {
  readonly limits?: SigningLimits;
  /** Called when a thread crashes. Its requests fail, and a new thread starts. */
  readonly onThreadFailure?: (error: Error) => void;
}

export class CertificateSigner {
  readonly #queue: FairQueue<SigningJob>;
  readonly #onThreadFailure: (error: Error) => void;
  readonly #threads: SignerThread[] = [];
  #material: AuthorityMaterial | undefined;
  #count = 0;
  #isClosed = false;

  constructor({ limits = signingLimits, onThreadFailure = () => {} }: CertificateSignerOptions = {}) {
    this.#queue = new FairQueue<SigningJob>(signingShares(limits));
    this.#onThreadFailure = onThreadFailure;
  }

  useAuthority(material: AuthorityMaterial): void {
    this.#material = material;
    for (const { worker } of this.#threads) worker.postMessage(signerOrder(material));
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  sign({ endsAt, client, ...order }: SigningRequest, signal?: AbortSignal): Promise<SigningResult> {
    return this.#queueOrder<SigningOutcome>(order, { endsAt, client }, signal);
  }

  verify({ endsAt, client, ...order }: VerifyRequest, signal?: AbortSignal): Promise<VerifiedRequest | BusyResult> {
    return this.#queueOrder<VerifiedRequest>(order, { endsAt, client }, signal);
  }

  #queueOrder<Outcome extends ThreadOutcome>(
    order: LeafOrder | VerifyOrder,
    { endsAt, client }: Caller,
    signal: AbortSignal | undefined,
  ): Promise<Outcome | BusyResult> {
    const { promise, resolve } = Promise.withResolvers<ThreadOutcome | BusyResult>();
    const result = promise as Promise<Outcome | BusyResult>;
    const job: SigningJob = { order, endsAt, settle: resolve };
    if (this.#isClosed || signal?.aborted === true) {
      resolve({ failed: 'the request was cancelled, or the control plane is shutting down' });
      return result;
    }
    const dequeue = (): void => {
      this.#queue.remove(job);
      resolve({ failed: 'the client cancelled the request' });
    };
    signal?.addEventListener('abort', dequeue, { once: true });
    this.#queue.add(job, signingKey(order.uri, client))?.settle({ tryAgainAfterMs: this.#delayMs() });
    this.#dispatchJobs();
    return result.finally(() => signal?.removeEventListener('abort', dequeue));
  }

  close(): void {
    this.#isClosed = true;
    for (let waitingJob = this.#queue.takeNext(); waitingJob !== undefined; waitingJob = this.#queue.takeNext()) {
      waitingJob.settle({ failed: 'the control plane is shutting down' });
    }
    for (const thread of this.#threads.splice(0)) {
      failAllJobs(thread, 'the control plane is shutting down');
      void thread.worker.terminate();
    }
  }

  #dispatchJobs(): void {
    while (this.#queue.size > 0) {
      const thread = this.#availableThread();
      if (thread === undefined) return;
      const job = this.#queue.takeNext()!;
      const id = ++this.#count;
      thread.jobs.set(id, job);
      thread.worker.postMessage({ id, ...job.order } satisfies SigningOrder);
    }
  }

  /** If all threads are busy, starts another one. */
  #availableThread(): SignerThread | undefined {
    const idlestThread = this.#threads.toSorted((a, b) => a.jobs.size - b.jobs.size)[0];
    if (idlestThread?.jobs.size === 0) return idlestThread;
    if (this.#threads.length < threads) return this.#startThread();
    return idlestThread !== undefined && idlestThread.jobs.size < maxJobsPerThread ? idlestThread : undefined;
  }

  #startThread(): SignerThread {
    const thread: SignerThread = { worker: new Worker(threadModule), jobs: new Map() };
    const { worker, jobs } = thread;
    this.#threads.push(thread);
    if (this.#material !== undefined) worker.postMessage(signerOrder(this.#material));
    worker.on('message', ({ id, ...signingOutcome }: ThreadReply) => {
      jobs.get(id)?.settle(signingOutcome);
      jobs.delete(id);
      this.#dispatchJobs();
    });
    const failThread = (error: Error): void => {
      const threadIndex = this.#threads.indexOf(thread);
      if (threadIndex < 0) return;
      this.#threads.splice(threadIndex, 1);
      failAllJobs(thread, 'the signing thread failed, retry');
      this.#onThreadFailure(error);
      this.#dispatchJobs();
    };
    worker.on('error', failThread);
    worker.on('exit', (code) => failThread(new Error(`the thread exited with code ${code}`)));
    worker.unref();
    return thread;
  }

  #delayMs(): number {
    return Math.max(1_000, Math.ceil((1_000 * this.#queue.size) / signaturesPerThreadAndSecond));
  }
}

function failAllJobs({ jobs }: SignerThread, failureText: string): void {
  for (const { settle } of jobs.values()) settle({ failed: failureText });
  jobs.clear();
}

function signerOrder({ issuer: { certificate, privateKey } }: AuthorityMaterial): SignerOrder {
  return { signer: { der: certificate.der, privateKey } };
}
