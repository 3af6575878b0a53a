/**
 * A write of an elected replica begins only within the term, which is checked synchronously when the bytes are sent. Each write contains the version
 * on which it is based. So a delayed write changes nothing that another leader has written.
 */
import { ApiError } from '../kubernetes/api-failure.ts';
import { type ApiResource, apiVersionOf } from '../kubernetes/api-resource.ts';
import type { ApiRequest, ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { type ClockReading, elapsedMs } from './leader-term.ts';

interface WrittenObject {
  readonly resource: ApiResource;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

export type WriteOrder =
  /** Fails with `AlreadyExists` (409) if the object exists. */
  | (WrittenObject & { readonly verb: 'create'; readonly object: Readonly<Record<string, unknown>> })
  /** Fails with `Conflict` (409) if `version` is not the current one. */
  | (WrittenObject & {
      readonly verb: 'update';
      readonly version: string;
      readonly object: Readonly<Record<string, unknown>>;
      readonly subresource?: 'status';
    })
  /** `fields` is a merge patch (RFC 7386). Fails with `Conflict` (409) if `version` is not the current one. */
  | (WrittenObject & {
      readonly verb: 'patch';
      readonly version: string;
      readonly fields: Readonly<Record<string, unknown>>;
      readonly subresource?: 'status';
    })
  /**
   * Server-side apply by {@link fieldManager}. With `version`, takes over fields of other managers. Without, the object must not exist, and the write
   * fails with `Conflict` (409) if another manager has set a field.
   */
  | (WrittenObject & {
      readonly verb: 'apply';
      readonly version?: string;
      readonly object: Readonly<Record<string, unknown>>;
    })
  | (WrittenObject & { readonly verb: 'delete'; readonly version: string });

export const fieldManager = 'chartpilot-gateways';

export interface WriteGateOptions {
  readonly server: Pick<ApiServer, 'request'>;
  readonly now: () => ClockReading;
  /** Shorter than the time between the end of a term and the end of its Lease, so that no write is applied when another replica may lead. */
  readonly writeMs: number;
}

interface WriteTerm {
  readonly endController: AbortController;
  sentAt: ClockReading;
  termMs: number;
}

export class WriteGate {
  readonly #options: WriteGateOptions;
  #term: WriteTerm | undefined;
  #runningWrites = 0;
  readonly #idleWaiters: (() => void)[] = [];
  /** Counts writes outside the term, which were not sent or were aborted. */
  rejectedCount = 0;

  constructor(options: WriteGateOptions) {
    this.#options = options;
  }

  /** @param sentAt when the successful acquisition or renewal of the Lease was sent */
  extend(sentAt: ClockReading, termMs: number): void {
    if (this.#term === undefined) this.#term = { endController: new AbortController(), sentAt, termMs };
    else Object.assign(this.#term, { sentAt, termMs });
  }

  /** Waits for running writes, or aborts them with `giveUp`. Aborted writes may still be applied. */
  close({ giveUp }: { readonly giveUp: boolean }): void {
    const term = this.#term;
    this.#term = undefined;
    if (giveUp) term?.endController.abort();
  }

  get isOpen(): boolean {
    return this.#isWithinTerm(this.#term);
  }

  async waitUntilIdle(): Promise<void> {
    if (this.#runningWrites > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /**
   * @returns the written object
   * @throws ApiError; `aborted` if the write was not sent, or was aborted because the term ended
   */
  async write(order: WriteOrder): Promise<KubernetesObject> {
    const term = this.#term;
    if (term === undefined || !this.#isWithinTerm(term)) throw this.#reject();
    this.#runningWrites++;
    try {
      // A write that waits until the next term is not permitted, because it is based on an outdated state.
      const permit = (): boolean => this.#term === term && this.#isWithinTerm(term);
      const request = { ...requestOf(order), permit, timeoutMs: this.#options.writeMs };
      return await this.#options.server.request(request, term.endController.signal);
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'aborted') this.rejectedCount++;
      throw error;
    } finally {
      this.#runningWrites--;
      if (this.#runningWrites === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
    }
  }

  #isWithinTerm(term: WriteTerm | undefined): boolean {
    return term !== undefined && elapsedMs(term.sentAt, this.#options.now()) < term.termMs;
  }

  #reject(): ApiError {
    this.rejectedCount++;
    return new ApiError({ kind: 'aborted', message: 'this replica is not the leader' });
  }
}

export function requestOf(order: WriteOrder): ApiRequest {
  const { verb, resource, namespace, name } = order;
  const leasePath = { resource, ...(namespace !== undefined && { namespace }) };
  const metadata = (original: Readonly<Record<string, unknown>>, overrides: object): object => ({
    ...(typeof original.metadata === 'object' && original.metadata),
    ...overrides,
  });
  const typeMeta = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  switch (verb) {
    case 'create': {
      const { object } = order;
      const namedMetadata = metadata(object, { name, ...(namespace !== undefined && { namespace }) });
      return { method: 'POST', ...leasePath, body: { ...object, ...typeMeta, metadata: namedMetadata } };
    }
    case 'update': {
      const { object, version, subresource } = order;
      const namedMetadata = metadata(object, {
        ...{ name, resourceVersion: requireVersion(version) },
        ...(namespace !== undefined && { namespace }),
      });
      const body = { ...object, ...typeMeta, metadata: namedMetadata };
      return { method: 'PUT', ...leasePath, name, body, ...(subresource !== undefined && { subresource }) };
    }
    case 'patch': {
      const { fields, version, subresource } = order;
      const body = { ...fields, metadata: metadata(fields, { resourceVersion: requireVersion(version) }) };
      return {
        method: 'PATCH',
        patch: 'merge',
        ...leasePath,
        name,
        body,
        ...(subresource !== undefined && { subresource }),
      };
    }
    case 'apply': {
      const { object, version } = order;
      const versionField = version === undefined ? {} : { resourceVersion: requireVersion(version) };
      const body = { ...object, ...typeMeta, metadata: metadata(object, versionField) };
      const query = { fieldManager, force: `${version !== undefined}` };
      return { method: 'PATCH', patch: 'apply', ...leasePath, name, body, query };
    }
    case 'delete': {
      const preconditions = { resourceVersion: requireVersion(order.version) };
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
      return { method: 'DELETE', ...leasePath, name, body };
    }
  }
}

/** With an empty version, the write would apply to any state. */
function requireVersion(version: string): string {
  if (version === '')
    throw new ApiError({ kind: 'invalid', message: 'a write must have the resourceVersion that was read' });
  return version;
}
