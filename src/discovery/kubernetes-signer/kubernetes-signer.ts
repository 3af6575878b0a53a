/** Has certificates signed by a signer of the cluster (certificates.k8s.io): a bounded number at a time, a bounded number that wait. */
import { randomUUID } from 'node:crypto';
import { fromPromise } from 'xstate';
import {
  type RequestReading,
  type RequestStep,
  type SigningRequestOutput,
  signingRequestMachine,
} from '../../../machines/discovery/authority/signing-request.machine.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { FairTasks } from '../../model/collections/fair-tasks.ts';
import { startRoot } from '../../runtime/actors/actor-system.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { CertificateOrder, IssuedCertificate, Registrar, SignerAnswer, Whose } from '../authority/registrar.ts';
import { type SigningLimits, signingKey } from '../authority/signing-shares.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { certificateSigningRequests } from '../kubernetes/api-resource.ts';
import type { ApiRequest, ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { judged } from './judge-issued.ts';

export interface KubernetesSignerOptions {
  readonly server: Pick<ApiServer, 'request'>;
  /** K8S_SIGNER, as `example.com/mesh`. */
  readonly signerName: string;
  /** Requests are approved here; else somebody else does. */
  readonly approves: boolean;
  /** That what is signed must lead to one of. */
  readonly roots: () => readonly Certificate[];
  readonly now: () => Date;
  readonly limitMs?: number;
  readonly limits?: SigningLimits;
  readonly recorder?: Recorder;
}

const requestLimitMs = 10_000;
const answerMs = 5_000;
/** Each is some five requests: the API server has more to do. */
const maxRunning = 16;
/** Leaves room for other namespaces: a request may take its whole limit of time. */
const maxRunningOfNamespace = 12;
const signingLimits: SigningLimits = { maxWaiting: 1_000, maxOfConnection: 16 };
/** Of those under way some are done in a second. */
const perSecond = 10;
/** Kubernetes signs for no less. */
const shortestSeconds = 600;
/** The object is trusted no further than a certificate of this many characters. */
const mostCharacters = 128 * 1024;
const longestReason = 300;

export class KubernetesSigner implements Registrar {
  readonly #options: KubernetesSignerOptions;
  readonly #tasks: FairTasks;
  #count = 0;

  constructor(options: KubernetesSignerOptions) {
    this.#options = options;
    const { maxWaiting, maxOfConnection } = options.limits ?? signingLimits;
    this.#tasks = new FairTasks({
      ...{ maxRunning, maxRunningOfKey: maxRunningOfNamespace, maxWaiting },
      maxWaitingOfKey: [undefined, undefined, maxOfConnection],
    });
  }

  /** For metrics. */
  get waiting(): number {
    return this.#tasks.waiting;
  }

  /** @param signal the caller is gone: what has not begun is not done */
  sign(order: CertificateOrder, { endsAt, client }: Whose, signal?: AbortSignal): Promise<SignerAnswer> {
    const identity = [...order.names.uris, ...order.names.dns].join();
    return this.#tasks.do<SignerAnswer>(
      {
        ...{ key: signingKey(identity, client), rank: endsAt },
        run: (settle) => this.#run(order, settle),
        reject: (waiting) => ({ tryAgainAfterMs: Math.max(1_000, Math.ceil((1_000 * waiting) / perSecond)) }),
        cancelled: () => ({ failed: 'the caller is gone' }),
      },
      signal,
    );
  }

  async #run(order: CertificateOrder, settle: (answer: SignerAnswer) => void): Promise<void> {
    const { approves, limitMs = requestLimitMs, recorder } = this.#options;
    const request = new RequestObject(this.#options, order);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const answer = (result: SigningRequestOutput): void => {
      if (result.outcome === 'issued') settle({ issued: request.issued! });
      else settle(result.outcome === 'refused' ? { refused: result.reason } : { failed: result.reason });
    };
    const machine = signingRequestMachine.provide({
      actors: {
        createRequest: fromPromise<RequestStep, undefined>(({ signal }) => request.create(signal)),
        approveRequest: fromPromise<RequestStep, undefined>(({ signal }) => request.approve(signal)),
        readRequest: fromPromise<RequestReading, undefined>(({ signal }) => request.read(signal)),
        removeRequest: fromPromise<void, undefined>(({ signal }) => request.remove(signal)),
      },
      actions: { settle: (_, result) => answer(result) },
    });
    const actor = startRoot(machine, {
      ...{ id: `signing-request-${++this.#count}`, input: { approves, limitMs } },
      ...(recorder !== undefined && { recorder }),
      onError: (error) => {
        settle({ failed: messageOf(error) });
        end();
      },
    });
    actor.subscribe({ complete: end });
    if (actor.getSnapshot().status !== 'active') end();
    await ended;
  }
}

/** The object of one request. */
class RequestObject {
  readonly #options: KubernetesSignerOptions;
  readonly #order: CertificateOrder;
  readonly #name = `chartpilot-${randomUUID()}`;
  #isMade = false;
  #object: KubernetesObject | undefined;
  issued: IssuedCertificate | undefined;

  constructor(options: KubernetesSignerOptions, order: CertificateOrder) {
    this.#options = options;
    this.#order = order;
  }

  create(signal: AbortSignal): Promise<RequestStep> {
    const { signerName } = this.#options;
    const { request, isForClients, key, lifetimeMs } = this.#order;
    const encipherment = key.asymmetricKeyType === 'rsa' ? ['key encipherment'] : [];
    const body = {
      ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
      metadata: { name: this.#name },
      spec: {
        ...{ request: Buffer.from(request).toString('base64'), signerName },
        usages: ['digital signature', ...encipherment, 'server auth', ...(isForClients ? ['client auth'] : [])],
        expirationSeconds: Math.max(shortestSeconds, Math.ceil(lifetimeMs / 1_000)),
      },
    };
    // Where its answer is lost it may be there.
    this.#isMade = true;
    return this.#step('cannot be made', async () => {
      this.#object = await this.#ask({ method: 'POST', resource, body }, signal);
    });
  }

  approve(signal: AbortSignal): Promise<RequestStep> {
    return this.#step('cannot be approved', async () => {
      try {
        await this.#approve(signal);
      } catch (error) {
        if (statusOf(error) !== 409) throw error;
        // Somebody else has written it since it was made, as those do that judge requests.
        const found = await this.#ask({ method: 'GET', resource, name: this.#name }, signal);
        // Whoever may make requests could have put one of his own in its place, for another identity.
        if (found.metadata.uid !== this.#object?.metadata.uid) throw new Error('it is another one by now');
        this.#object = found;
        await this.#approve(signal);
      }
    });
  }

  async #approve(signal: AbortSignal): Promise<void> {
    const present = conditionsOf(this.#object?.status);
    // Approved already, or not to be approved: what becomes of it is read.
    if (present.some(({ type }) => decisions.includes(type))) return;
    const condition = {
      ...{ type: 'Approved', status: 'True', reason: 'ChartpilotApproved' },
      message: 'of a caller that has proven who it is',
    };
    const body = { ...this.#object, status: { conditions: [...present, condition] } };
    await this.#ask({ method: 'PUT', resource, name: this.#name, subresource: 'approval', body }, signal);
  }

  async read(signal: AbortSignal): Promise<RequestReading> {
    const { roots, now, signerName } = this.#options;
    let status: unknown;
    try {
      ({ status } = await this.#ask({ method: 'GET', resource, name: this.#name }, signal));
    } catch (error) {
      return { outcome: 'unknown', reason: messageOf(error) };
    }
    const { certificate, conditions } = isObject(status) ? status : {};
    const bad = conditionsOf({ conditions }).find(({ type }) => type === 'Denied' || type === 'Failed');
    if (bad !== undefined) {
      const word = bad.type === 'Denied' ? 'was denied' : 'failed';
      const why = [bad.reason, bad.message].filter((text) => typeof text === 'string' && text !== '').join(': ');
      return { outcome: 'refused', reason: `the request to ${signerName} ${word}: ${why.slice(0, longestReason)}` };
    }
    if (typeof certificate !== 'string' || certificate === '') return { outcome: 'pending' };
    if (certificate.length > mostCharacters) return { outcome: 'refused', reason: `${signerName} has signed too much` };
    const pem = Buffer.from(certificate, 'base64').toString();
    const answer = judged(pem, this.#order, roots(), now());
    if ('problem' in answer) return { outcome: 'refused', reason: `${signerName}: ${answer.problem}` };
    this.issued = answer;
    return { outcome: 'issued' };
  }

  async remove(signal: AbortSignal): Promise<void> {
    if (!this.#isMade) return;
    await this.#ask({ method: 'DELETE', resource, name: this.#name }, signal).catch(() => {});
  }

  async #step(what: string, deed: () => Promise<void>): Promise<RequestStep> {
    try {
      await deed();
      return { outcome: 'done' };
    } catch (error) {
      return { outcome: 'failed', reason: `the request to ${this.#options.signerName} ${what}: ${messageOf(error)}` };
    }
  }

  #ask(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject> {
    return this.#options.server.request({ ...request, timeoutMs: answerMs }, signal);
  }
}

const resource = certificateSigningRequests;
const decisions: readonly unknown[] = ['Approved', 'Denied', 'Failed'];

function conditionsOf(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  return isObject(status) && Array.isArray(status.conditions) ? status.conditions.filter(isObject) : [];
}
