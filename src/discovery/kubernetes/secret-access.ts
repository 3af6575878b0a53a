/** Which service accounts may have Secrets, by the word of the API server (spec/discovery.md §8.7, SubjectAccessReview). */
import type { AccessAnswer } from '../../../machines/discovery/kubernetes/access-review.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { SecretReader, SecretReaders } from '../push/mesh-resources.ts';
import { subjectAccessReviews } from './api-resource.ts';
import type { ApiServer } from './api-server.ts';

/** Each is asked about once a minute: strangers with many accounts must not keep the API server busy. */
const mostAccounts = 1_000;
const answerMs = 5_000;

export class SecretAccess implements SecretReaders {
  readonly #server: Pick<ApiServer, 'request'>;
  readonly #warn: (message: string) => void;
  /** How many proxies of an account ask for Secrets. */
  readonly #proxies = new Map<string, number>();
  readonly #allowed = new Set<string>();
  readonly #watchers = new Set<(accounts: string[]) => void>();

  constructor({ server, warn }: { server: Pick<ApiServer, 'request'>; warn: (message: string) => void }) {
    this.#server = server;
    this.#warn = warn;
  }

  enter(account: string): SecretReader {
    const before = this.#proxies.get(account) ?? 0;
    this.#proxies.set(account, before + 1);
    if (before === 0) this.#tell(account);
    const allowed = this.#allowed;
    return {
      get isAllowed() {
        return allowed.has(account);
      },
      leave: () => this.#leave(account),
    };
  }

  /** Tells whom to ask about, now and whenever they are others. @returns ends it */
  watch(changed: (accounts: string[]) => void): () => void {
    this.#watchers.add(changed);
    if (this.#proxies.size > 0) changed(this.#wanted);
    return () => void this.#watchers.delete(changed);
  }

  /** What the API server has said of an account is in force. */
  adopt(account: string, allowed: boolean): void {
    if (allowed && this.#proxies.has(account)) this.#allowed.add(account);
    else this.#allowed.delete(account);
  }

  /** Whether the account may list the Secrets of its namespace. What goes wrong is an answer. */
  async review(account: string, signal: AbortSignal): Promise<AccessAnswer> {
    const [namespace, name] = account.split('/') as [string, string];
    const spec = {
      user: `system:serviceaccount:${namespace}:${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      resourceAttributes: { namespace, verb: 'list', version: 'v1', resource: 'secrets' },
    };
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    try {
      const order = { method: 'POST', resource: subjectAccessReviews, body, timeoutMs: answerMs } as const;
      const { status } = await this.#server.request(order, signal);
      const { allowed, denied } = isObject(status) ? status : {};
      return { outcome: 'answered', allowed: allowed === true && denied !== true };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  get #wanted(): string[] {
    return [...this.#proxies.keys()].slice(0, mostAccounts);
  }

  #tell(account: string): void {
    if (this.#proxies.size === mostAccounts + 1) {
      this.#warn(
        `proxies of more than ${mostAccounts} service accounts ask for Secrets: ${account} and those that come after it get none`,
      );
    }
    for (const changed of this.#watchers) changed(this.#wanted);
  }

  #leave(account: string): void {
    const left = (this.#proxies.get(account) ?? 0) - 1;
    if (left > 0) {
      this.#proxies.set(account, left);
      return;
    }
    this.#proxies.delete(account);
    this.#allowed.delete(account);
    for (const changed of this.#watchers) changed(this.#wanted);
  }
}
