import type { SigningRequestOutput } from '../../../../machines/discovery/ca/signing-request.machine.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { FairTasks } from '../../../model/collections/fair-tasks.ts';
import { startRoot } from '../../../runtime/actors/actor-system.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import type { CertificateOrder, Registrar, SignerResult, SigningCaller } from '../issuing/registrar.ts';
import { type SigningLimits, signingKey } from '../issuing/signing-shares.ts';
import { signingRequestWithEffects } from '../signing-request.effects.ts';
import { RequestObject } from './request-object.ts';

export interface KubernetesSignerOptions {
  readonly server: Pick<ApiServer, 'request'>;
  /** K8S_SIGNER, such as `example.com/mesh`. */
  readonly signerName: string;
  readonly approvesRequests: boolean;
  /** Issued certificates must chain to one of these. */
  readonly roots: () => readonly Certificate[];
  readonly now: () => Date;
  readonly limitMs?: number;
  readonly limits?: SigningLimits;
  readonly recorder?: Recorder;
}

const requestLimitMs = 10_000;
/** Concurrent requests, each with about five calls to the API server. */
const maxConcurrentRequests = 16;
/** Below {@link maxConcurrentRequests}, so that slow requests of one namespace leave capacity for others. */
const maxRunningOfNamespace = 12;
const signingLimits: SigningLimits = { maxWaiting: 1_000, maxOfConnection: 16 };
/** Assumed rate, for retry delays. */
const certificatesPerSecond = 10;

export class KubernetesSigner implements Registrar {
  readonly #options: KubernetesSignerOptions;
  readonly #tasks: FairTasks;
  #count = 0;

  constructor(options: KubernetesSignerOptions) {
    this.#options = options;
    const { maxWaiting, maxOfConnection } = options.limits ?? signingLimits;
    this.#tasks = new FairTasks({
      ...{ maxRunning: maxConcurrentRequests, maxRunningOfKey: maxRunningOfNamespace, maxWaiting },
      maxWaitingOfKey: [undefined, undefined, maxOfConnection],
    });
  }

  get waitingCount(): number {
    return this.#tasks.waitingCount;
  }

  sign(order: CertificateOrder, { endsAt, client }: SigningCaller, signal?: AbortSignal): Promise<SignerResult> {
    const identity = [...order.names.uris, ...order.names.dns].join();
    return this.#tasks.schedule<SignerResult>(
      {
        ...{ key: signingKey(identity, client), rank: endsAt },
        run: (settle) => this.#run(order, settle),
        reject: (waitingCount) => ({
          tryAgainAfterMs: Math.max(1_000, Math.ceil((1_000 * waitingCount) / certificatesPerSecond)),
        }),
        cancelled: () => ({ failed: 'the client cancelled the request' }),
      },
      signal,
    );
  }

  async #run(order: CertificateOrder, onResult: (result: SignerResult) => void): Promise<void> {
    const { approvesRequests, limitMs = requestLimitMs, recorder } = this.#options;
    const request = new RequestObject(this.#options, order);
    const { promise: requestEnded, resolve: resolveRequestEnded } = Promise.withResolvers<void>();
    const finishRequest = (result: SigningRequestOutput): void => {
      if (result.outcome === 'issued') onResult({ issued: request.issued! });
      else onResult(result.outcome === 'refused' ? { refused: result.reason } : { failed: result.reason });
    };
    const machine = signingRequestWithEffects(request, finishRequest);
    const actor = startRoot(machine, {
      ...{ id: `signing-request-${++this.#count}`, input: { approves: approvesRequests, limitMs } },
      ...(recorder !== undefined && { recorder }),
      onError: (error) => {
        onResult({ failed: messageOf(error) });
        resolveRequestEnded();
      },
    });
    actor.subscribe({ complete: resolveRequestEnded });
    if (actor.getSnapshot().status !== 'active') resolveRequestEnded();
    await requestEnded;
  }
}
