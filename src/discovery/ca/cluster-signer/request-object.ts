import { randomUUID } from 'node:crypto';
import type { RequestReading, RequestStep } from '../../../../machines/discovery/ca/signing-request.machine.ts';
import type { Certificate } from '../../../identity/certificate.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { statusOf } from '../../kubernetes/api-failure.ts';
import { certificateSigningRequests } from '../../kubernetes/api-resource.ts';
import type { ApiRequest, ApiServer, KubernetesObject } from '../../kubernetes/api-server.ts';
import type { CertificateOrder, IssuedChain } from '../issuing/registrar.ts';
import { checkIssued } from './check-issued.ts';

export interface RequestOptions {
  readonly server: Pick<ApiServer, 'request'>;
  readonly signerName: string;
  /** The issued chain must end at one of these. */
  readonly roots: () => readonly Certificate[];
  readonly now: () => Date;
}

const responseTimeoutMs = 5_000;
/** Minimum duration that Kubernetes accepts. */
const minExpirationSeconds = 600;
const maxCertificateCharacters = 128 * 1024;
const maxReasonLength = 300;

export class RequestObject {
  readonly #options: RequestOptions;
  readonly #order: CertificateOrder;
  readonly #name = `chartpilot-${randomUUID()}`;
  #isCreated = false;
  #object: KubernetesObject | undefined;
  issued: IssuedChain | undefined;

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
        expirationSeconds: Math.max(minExpirationSeconds, Math.ceil(lifetimeMs / 1_000)),
      },
    };
    // Set before the request: if the response is lost, the object may exist.
    this.#isCreated = true;
    return this.#step('cannot be created', async () => {
      this.#object = await this.#request({ method: 'POST', resource, body }, signal);
    });
  }

  approve(signal: AbortSignal): Promise<RequestStep> {
    return this.#step('cannot be approved', async () => {
      try {
        await this.#approve(signal);
      } catch (error) {
        if (statusOf(error) !== 409) throw error;
        // Another client, such as an approver, has changed the object.
        const requestObject = await this.#request({ method: 'GET', resource, name: this.#name }, signal);
        // Another client could have replaced the object with one for another identity.
        if (requestObject.metadata.uid !== this.#object?.metadata.uid)
          throw new Error('it was replaced by another one of the same name');
        this.#object = requestObject;
        await this.#approve(signal);
      }
    });
  }

  async #approve(signal: AbortSignal): Promise<void> {
    const presentConditions = conditionsOf(this.#object?.status);
    if (presentConditions.some(({ type }) => decisions.includes(type))) return;
    const condition = {
      ...{ type: 'Approved', status: 'True', reason: 'ChartpilotApproved' },
      message: 'requested by an authenticated workload',
    };
    const body = { ...this.#object, status: { conditions: [...presentConditions, condition] } };
    await this.#request({ method: 'PUT', resource, name: this.#name, subresource: 'approval', body }, signal);
  }

  async read(signal: AbortSignal): Promise<RequestReading> {
    const { roots, now, signerName } = this.#options;
    let status: unknown;
    try {
      ({ status } = await this.#request({ method: 'GET', resource, name: this.#name }, signal));
    } catch (error) {
      return { outcome: 'unknown', reason: messageOf(error) };
    }
    const { certificate, conditions } = isObject(status) ? status : {};
    const failedCondition = conditionsOf({ conditions }).find(({ type }) => type === 'Denied' || type === 'Failed');
    if (failedCondition !== undefined) {
      const verb = failedCondition.type === 'Denied' ? 'was denied' : 'failed';
      const reason = [failedCondition.reason, failedCondition.message]
        .filter((text) => typeof text === 'string' && text !== '')
        .join(': ');
      return {
        outcome: 'refused',
        reason: `the CertificateSigningRequest to ${signerName} ${verb}: ${reason.slice(0, maxReasonLength)}`,
      };
    }
    if (typeof certificate !== 'string' || certificate === '') return { outcome: 'pending' };
    if (certificate.length > maxCertificateCharacters)
      return { outcome: 'refused', reason: `${signerName} issued more than ${maxCertificateCharacters} characters` };
    const pem = Buffer.from(certificate, 'base64').toString();
    const result = checkIssued(pem, this.#order, roots(), now());
    if ('problem' in result) return { outcome: 'refused', reason: `${signerName}: ${result.problem}` };
    this.issued = result;
    return { outcome: 'issued' };
  }

  async remove(signal: AbortSignal): Promise<void> {
    if (!this.#isCreated) return;
    await this.#request({ method: 'DELETE', resource, name: this.#name }, signal).catch(() => {});
  }

  async #step(problem: string, task: () => Promise<void>): Promise<RequestStep> {
    try {
      await task();
      return { outcome: 'done' };
    } catch (error) {
      return {
        outcome: 'failed',
        reason: `the CertificateSigningRequest to ${this.#options.signerName} ${problem}: ${messageOf(error)}`,
      };
    }
  }

  #request(request: ApiRequest, signal: AbortSignal): Promise<KubernetesObject> {
    return this.#options.server.request({ ...request, timeoutMs: responseTimeoutMs }, signal);
  }
}

const resource = certificateSigningRequests;
const decisions: readonly unknown[] = ['Approved', 'Denied', 'Failed'];

function conditionsOf(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  return isObject(status) && Array.isArray(status.conditions) ? status.conditions.filter(isObject) : [];
}
