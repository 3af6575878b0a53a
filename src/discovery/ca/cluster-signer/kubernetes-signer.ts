/** Has certificates signed by a signer of the cluster (certificates.k8s.io): a bounded number at a time, a bounded number that wait. */
import type { SigningRequestOutput } from '../../../../machines/discovery/ca/signing-request.machine.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { FairTasks } from '../../../model/collections/fair-tasks.ts';
import { startRoot } from '../../../runtime/actors/actor-system.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import type { CertificateOrder, Registrar, SignerAnswer, Whose } from '../issuing/registrar.ts';
import { type SigningLimits, signingKey } from '../issuing/signing-shares.ts';
import { signingRequestWithEffects } from '../signing-request.effects.ts';
import { RequestObject } from './request-object.ts';

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
/** Each is some five requests: the API server has more to do. */
const maxRunning = 16;
/** Leaves room for other namespaces: a request may take its whole limit of time. */
const maxRunningOfNamespace = 12;
const signingLimits: SigningLimits = { maxWaiting: 1_000, maxOfConnection: 16 };
/** Of those under way some are done in a second. */
const perSecond = 10;

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

  /** @param signal the client cancelled the request: what has not begun is not done */
  sign(order: CertificateOrder, { endsAt, client }: Whose, signal?: AbortSignal): Promise<SignerAnswer> {
    const identity = [...order.names.uris, ...order.names.dns].join();
    return this.#tasks.do<SignerAnswer>(
      {
        ...{ key: signingKey(identity, client), rank: endsAt },
        run: (settle) => this.#run(order, settle),
        reject: (waiting) => ({ tryAgainAfterMs: Math.max(1_000, Math.ceil((1_000 * waiting) / perSecond)) }),
        cancelled: () => ({ failed: 'the client cancelled the request' }),
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
    const machine = signingRequestWithEffects(request, answer);
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
