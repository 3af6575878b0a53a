/** The CertificateSigningRequest of one certificate. */
import { randomUUID } from 'node:crypto';
import type { RequestReading, RequestStep } from '../../../../machines/discovery/ca/signing-request.machine.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { statusOf } from '../../kubernetes/api-failure.ts';
import { certificateSigningRequests } from '../../kubernetes/api-resource.ts';
import type { ApiRequest, ApiServer, KubernetesObject } from '../../kubernetes/api-server.ts';
import type { CertificateOrder, IssuedCertificate } from '../issuing/registrar.ts';
import { judged } from './judge-issued.ts';

export interface RequestOptions {
  readonly server: Pick<ApiServer, 'request'>;
  /** K8S_SIGNER, as `example.com/mesh`. */
  readonly signerName: string;
  /** What is signed must lead to one of these. */
  readonly roots: () => readonly Certificate[];
  readonly now: () => Date;
}

const answerMs = 5_000;
/** Kubernetes signs for no less. */
const shortestSeconds = 600;
/** The object is trusted no further than a certificate of this many characters. */
const mostCharacters = 128 * 1024;
const longestReason = 300;

export class RequestObject {
  readonly #options: RequestOptions;
  readonly #order: CertificateOrder;
  readonly #name = `chartpilot-${randomUUID()}`;
  #isMade = false;
  #object: KubernetesObject | undefined;
  issued: IssuedCertificate | undefined;

  constructor(options: RequestOptions, order: CertificateOrder) {
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
    return this.#step('cannot be created', async () => {
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
        if (found.metadata.uid !== this.#object?.metadata.uid)
          throw new Error('it was replaced by another one of the same name');
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
      message: 'requested by an authenticated workload',
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
      return {
        outcome: 'refused',
        reason: `the CertificateSigningRequest to ${signerName} ${word}: ${why.slice(0, longestReason)}`,
      };
    }
    if (typeof certificate !== 'string' || certificate === '') return { outcome: 'pending' };
    if (certificate.length > mostCharacters)
      return { outcome: 'refused', reason: `${signerName} issued more than ${mostCharacters} characters` };
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
      return {
        outcome: 'failed',
        reason: `the CertificateSigningRequest to ${this.#options.signerName} ${what}: ${messageOf(error)}`,
      };
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
