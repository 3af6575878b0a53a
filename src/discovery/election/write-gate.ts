/**
 * The one gate that what an elected replica writes goes through. A write begins only within the term, which is looked at in the turn in
 * which its bytes go out, and it names the version that the object was read at: what is under way when a process is stopped, and
 * comes late, changes nothing that another leader has touched (spec/kubernetes.md §2).
 */
import { ApiError } from '../kubernetes/api-failure.ts';
import { apiVersionOf, type Resource } from '../kubernetes/api-resource.ts';
import type { ApiRequest, ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { elapsedMs, type Moment } from './leader-term.ts';

interface WrittenObject {
  readonly resource: Resource;
  /** Namespace of the object; absent for one that is in none. */
  readonly namespace?: string;
  readonly name: string;
}

/** What is to be written. None of them can be sent without what it was made from. */
export type WriteOrder =
  /** The object is made: `AlreadyExists` (409) where somebody has made one since. */
  | (WrittenObject & { readonly verb: 'create'; readonly object: Readonly<Record<string, unknown>> })
  /** `version`: of the object as it was read; `Conflict` (409) where it is another one since. `object`: the whole of it. */
  | (WrittenObject & {
      readonly verb: 'update';
      readonly version: string;
      readonly object: Readonly<Record<string, unknown>>;
      readonly subresource?: 'status';
    })
  /** The object is changed as by `update`; `fields` is a merge patch (RFC 7386). */
  | (WrittenObject & {
      readonly verb: 'patch';
      readonly version: string;
      readonly fields: Readonly<Record<string, unknown>>;
      readonly subresource?: 'status';
    })
  /**
   * Server-side apply of the whole object by {@link applier}. `version`: as in `update`, and fields of other managers are taken over. Absent: there was
   * no such object; a field that another manager has set since is a `Conflict` (409).
   */
  | (WrittenObject & {
      readonly verb: 'apply';
      readonly version?: string;
      readonly object: Readonly<Record<string, unknown>>;
    })
  | (WrittenObject & { readonly verb: 'delete'; readonly version: string });

/** Field manager of objects that are applied. */
export const applier = 'chartpilot-gateways';

export interface WriteGateOptions {
  readonly server: Pick<ApiServer, 'request'>;
  readonly now: () => Moment;
  /**
   * Until a write is answered; the server is told it as well. Shorter than what lies between the end of a term and the end of its Lease, so that
   * nothing takes effect when another may lead.
   */
  readonly writeMs: number;
}

interface Term {
  readonly ended: AbortController;
  sent: Moment;
  termMs: number;
}

export class WriteGate {
  readonly #options: WriteGateOptions;
  #term: Term | undefined;
  #underWay = 0;
  readonly #idle: (() => void)[] = [];
  /** Writes that were not sent, or given up, for they were outside the term. */
  refused = 0;

  constructor(options: WriteGateOptions) {
    this.#options = options;
  }

  /** A term began, or goes on: a claim or renewal of the Lease that was sent then was taken. */
  extend(sent: Moment, termMs: number): void {
    if (this.#term === undefined) this.#term = { ended: new AbortController(), sent, termMs };
    else Object.assign(this.#term, { sent, termMs });
  }

  /** Nothing begins any more. What was sent already is awaited, unless it is to be given up: its bytes may still take effect. */
  close({ giveUp }: { readonly giveUp: boolean }): void {
    const term = this.#term;
    this.#term = undefined;
    if (giveUp) term?.ended.abort();
  }

  /** A write would begin now. Whether one that is asked for will be sent is found out when it is. */
  get isOpen(): boolean {
    return this.#isWithin(this.#term);
  }

  /** Settles once nothing is under way. */
  async idle(): Promise<void> {
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * @returns the object as it is now
   * @throws ApiError; `aborted`: it was not sent, or nobody waits for its answer, for the term has ended
   */
  async write(order: WriteOrder): Promise<KubernetesObject> {
    const term = this.#term;
    if (term === undefined || !this.#isWithin(term)) throw this.#refuse();
    this.#underWay++;
    try {
      // A write must be of this term: one that waited for a connection until the next term was made of what was known before.
      const permit = (): boolean => this.#term === term && this.#isWithin(term);
      const request = { ...requestOf(order), permit, timeoutMs: this.#options.writeMs };
      return await this.#options.server.request(request, term.ended.signal);
    } catch (error) {
      if (error instanceof ApiError && error.failure.kind === 'aborted') this.refused++;
      throw error;
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  #isWithin(term: Term | undefined): boolean {
    return term !== undefined && elapsedMs(term.sent, this.#options.now()) < term.termMs;
  }

  #refuse(): ApiError {
    this.refused++;
    return new ApiError({ kind: 'aborted', message: 'this replica is not the leader' });
  }
}

export function requestOf(order: WriteOrder): ApiRequest {
  const { verb, resource, namespace, name } = order;
  const where = { resource, ...(namespace !== undefined && { namespace }) };
  const metadata = (of: Readonly<Record<string, unknown>>, own: object): object => ({
    ...(typeof of.metadata === 'object' && of.metadata),
    ...own,
  });
  const typed = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  switch (verb) {
    case 'create': {
      const { object } = order;
      const named = metadata(object, { name, ...(namespace !== undefined && { namespace }) });
      return { method: 'POST', ...where, body: { ...object, ...typed, metadata: named } };
    }
    case 'update': {
      const { object, version, subresource } = order;
      const named = metadata(object, {
        ...{ name, resourceVersion: known(version) },
        ...(namespace !== undefined && { namespace }),
      });
      const body = { ...object, ...typed, metadata: named };
      return { method: 'PUT', ...where, name, body, ...(subresource !== undefined && { subresource }) };
    }
    case 'patch': {
      const { fields, version, subresource } = order;
      const body = { ...fields, metadata: metadata(fields, { resourceVersion: known(version) }) };
      return {
        method: 'PATCH',
        patch: 'merge',
        ...where,
        name,
        body,
        ...(subresource !== undefined && { subresource }),
      };
    }
    case 'apply': {
      const { object, version } = order;
      const read = version === undefined ? {} : { resourceVersion: known(version) };
      const body = { ...object, ...typed, metadata: metadata(object, read) };
      const query = { fieldManager: applier, force: `${version !== undefined}` };
      return { method: 'PATCH', patch: 'apply', ...where, name, body, query };
    }
    case 'delete': {
      const preconditions = { resourceVersion: known(order.version) };
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
      return { method: 'DELETE', ...where, name, body };
    }
  }
}

/** The version, which must be known: a write without one would be for whatever is there. */
function known(version: string): string {
  if (version === '')
    throw new ApiError({ kind: 'invalid', message: 'a write must have the resourceVersion that was read' });
  return version;
}
