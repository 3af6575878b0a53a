import type { AccessResult } from '../../../machines/discovery/secrets/access-review.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { subjectAccessReviews } from '../kubernetes/api-resource.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { SecretReader, SecretReaders } from '../push/mesh-resources.ts';

/** Each account is reviewed once a minute. Beyond the limit, namespaces with few accounts take precedence. */
const maxAccounts = 1_000;
const responseMs = 5_000;

export class SecretAccess implements SecretReaders {
  readonly #server: Pick<ApiServer, 'request'>;
  readonly #log: Pick<Logger, 'warn'>;
  /** Proxies that request Secrets, by namespace and account. */
  readonly #proxies = new Map<string, Map<string, number>>();
  #count = 0;
  #accountsToReview: ReadonlySet<string> = new Set();
  readonly #allowedAccounts = new Set<string>();
  readonly #reviewedAccounts = new Set<string>();
  readonly #watchers = new Set<(accounts: string[]) => void>();

  constructor({ server, log }: { server: Pick<ApiServer, 'request'>; log: Pick<Logger, 'warn'> }) {
    this.#server = server;
    this.#log = log;
  }

  addProxy(account: string): SecretReader {
    const namespace = namespaceOf(account);
    const accounts = this.#proxies.get(namespace) ?? new Map<string, number>();
    this.#proxies.set(namespace, accounts);
    const previous = accounts.get(account) ?? 0;
    accounts.set(account, previous + 1);
    if (previous === 0) {
      this.#count++;
      if (this.#count === maxAccounts + 1) {
        this.#log.warn('secretAccess.limitExceeded', { maxAccounts });
      }
      this.#updateToReview();
    }
    const [allowedAccounts, reviewedAccounts] = [this.#allowedAccounts, this.#reviewedAccounts];
    return {
      get isDecided() {
        return reviewedAccounts.has(account);
      },
      get isAllowed() {
        return allowedAccounts.has(account);
      },
      stopReading: () => this.#removeProxy(account),
    };
  }

  /** Reports the accounts immediately and when they change. */
  watch(onChanged: (accounts: string[]) => void): () => void {
    this.#watchers.add(onChanged);
    if (this.#accountsToReview.size > 0) onChanged([...this.#accountsToReview]);
    return () => void this.#watchers.delete(onChanged);
  }

  setAllowed(account: string, isAllowed: boolean): void {
    if (this.#accountsToReview.has(account)) this.#reviewedAccounts.add(account);
    if (isAllowed && this.#accountsToReview.has(account)) this.#allowedAccounts.add(account);
    else this.#allowedAccounts.delete(account);
  }

  /** The account must be permitted to list Secrets in its namespace. Never rejects: failures are results. */
  async review(account: string, signal: AbortSignal): Promise<AccessResult> {
    const [namespace, name] = account.split('/') as [string, string];
    const spec = {
      user: `system:serviceaccount:${namespace}:${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      resourceAttributes: { namespace, verb: 'list', version: 'v1', resource: 'secrets' },
    };
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    try {
      const reviewRequest = { method: 'POST', resource: subjectAccessReviews, body, timeoutMs: responseMs } as const;
      const { status } = await this.#server.request(reviewRequest, signal);
      const { allowed, denied } = isObject(status) ? status : {};
      return { outcome: 'answered', allowed: allowed === true && denied !== true };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  #updateToReview(): void {
    this.#accountsToReview = new Set(selectFairly([...this.#proxies.values()].slice(0, maxAccounts)));
    for (const accounts of [this.#allowedAccounts, this.#reviewedAccounts])
      for (const account of accounts) if (!this.#accountsToReview.has(account)) accounts.delete(account);
    for (const notifyWatcher of this.#watchers) notifyWatcher([...this.#accountsToReview]);
  }

  #removeProxy(account: string): void {
    const namespace = namespaceOf(account);
    const accounts = this.#proxies.get(namespace);
    const remainingProxies = (accounts?.get(account) ?? 0) - 1;
    if (accounts === undefined || remainingProxies < 0) return;
    if (remainingProxies > 0) {
      accounts.set(account, remainingProxies);
      return;
    }
    accounts.delete(account);
    if (accounts.size === 0) this.#proxies.delete(namespace);
    this.#count--;
    this.#updateToReview();
  }
}

function namespaceOf(account: string): string {
  return account.slice(0, account.indexOf('/'));
}

/** Selects the first account of each namespace, then the second, and so on, up to the limit. */
function selectFairly(namespaces: readonly ReadonlyMap<string, unknown>[]): string[] {
  let remainingAccounts = namespaces.map((accounts) => accounts.keys());
  const takenAccounts: string[] = [];
  while (remainingAccounts.length > 0 && takenAccounts.length < maxAccounts) {
    remainingAccounts = remainingAccounts.filter((accounts) => {
      const { done, value } = accounts.next();
      if (done !== true && takenAccounts.length < maxAccounts) takenAccounts.push(value);
      return done !== true;
    });
  }
  return takenAccounts;
}
