/** Which service accounts may have Secrets, by the word of the API server (spec/discovery.md §8.7, SubjectAccessReview). */
import type { AccessAnswer } from '../../../machines/discovery/secrets/access-review.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { subjectAccessReviews } from '../kubernetes/api-resource.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { SecretReader, SecretReaders } from '../push/mesh-resources.ts';

/**
 * Each is asked about once a minute: strangers with many accounts must not keep the API server busy. Where there are more, those of
 * a namespace that has few come before those of one that has many: somebody who may make accounts in one namespace keeps nobody of
 * another from being asked about.
 */
const mostAccounts = 1_000;
const answerMs = 5_000;

export class SecretAccess implements SecretReaders {
  readonly #server: Pick<ApiServer, 'request'>;
  readonly #log: Pick<Logger, 'warn'>;
  /** How many proxies of an account ask for Secrets, by namespace and account. */
  readonly #proxies = new Map<string, Map<string, number>>();
  #count = 0;
  /** Those that are asked about. */
  #wanted: ReadonlySet<string> = new Set();
  readonly #allowed = new Set<string>();
  /** Those of which the API server has said whether they may. */
  readonly #answered = new Set<string>();
  readonly #watchers = new Set<(accounts: string[]) => void>();

  constructor({ server, log }: { server: Pick<ApiServer, 'request'>; log: Pick<Logger, 'warn'> }) {
    this.#server = server;
    this.#log = log;
  }

  enter(account: string): SecretReader {
    const namespace = namespaceOf(account);
    const accounts = this.#proxies.get(namespace) ?? new Map<string, number>();
    this.#proxies.set(namespace, accounts);
    const before = accounts.get(account) ?? 0;
    accounts.set(account, before + 1);
    if (before === 0) {
      this.#count++;
      if (this.#count === mostAccounts + 1) {
        this.#log.warn('secretAccess.limitExceeded', { maxAccounts: mostAccounts });
      }
      this.#tell();
    }
    const [allowed, answered] = [this.#allowed, this.#answered];
    return {
      get isDecided() {
        return answered.has(account);
      },
      get isAllowed() {
        return allowed.has(account);
      },
      leave: () => this.#leave(account),
    };
  }

  /** Tells whom to ask about, now and whenever they are others. @returns ends it */
  watch(changed: (accounts: string[]) => void): () => void {
    this.#watchers.add(changed);
    if (this.#wanted.size > 0) changed([...this.#wanted]);
    return () => void this.#watchers.delete(changed);
  }

  /** What the API server has said of an account is in force. */
  adopt(account: string, allowed: boolean): void {
    if (this.#wanted.has(account)) this.#answered.add(account);
    if (allowed && this.#wanted.has(account)) this.#allowed.add(account);
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

  #tell(): void {
    this.#wanted = new Set(fairly([...this.#proxies.values()].slice(0, mostAccounts)));
    // Of whom nobody is asked any more, what was said once does not hold for ever.
    for (const accounts of [this.#allowed, this.#answered])
      for (const account of accounts) if (!this.#wanted.has(account)) accounts.delete(account);
    for (const changed of this.#watchers) changed([...this.#wanted]);
  }

  #leave(account: string): void {
    const namespace = namespaceOf(account);
    const accounts = this.#proxies.get(namespace);
    const left = (accounts?.get(account) ?? 0) - 1;
    if (accounts === undefined || left < 0) return;
    if (left > 0) {
      accounts.set(account, left);
      return;
    }
    accounts.delete(account);
    if (accounts.size === 0) this.#proxies.delete(namespace);
    this.#count--;
    this.#tell();
  }
}

function namespaceOf(account: string): string {
  return account.slice(0, account.indexOf('/'));
}

/** Of each namespace its first, then of each its second, until there are enough. */
function fairly(namespaces: readonly ReadonlyMap<string, unknown>[]): string[] {
  let rest = namespaces.map((accounts) => accounts.keys());
  const taken: string[] = [];
  while (rest.length > 0 && taken.length < mostAccounts) {
    rest = rest.filter((accounts) => {
      const { done, value } = accounts.next();
      if (done !== true && taken.length < mostAccounts) taken.push(value);
      return done !== true;
    });
  }
  return taken;
}
