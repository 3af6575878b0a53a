/** Secrets are in memory only. Charts refer to them by version, so events and traces contain no secrets. */
import { createHash } from 'node:crypto';
import type { RootParts } from '../../../machines/agent/secrets-protocol.ts';
import type { RevocationList } from '../../identity/revocation-list.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import { certificateSecret, rootsSecret } from './sds-messages.ts';

export interface StoredSecret {
  readonly resource: Uint8Array;
  readonly pair?: KeyPair;
  readonly roots?: string;
  readonly lists?: readonly RevocationList[];
}

/** A version may be current, wait for its roots, be just obtained, or still be in use. */
const maxVersions = 4;

export class SecretVault {
  readonly #secrets = new Map<string, Map<string, StoredSecret>>();
  /** Each kind has its own limit, so that one does not evict the other. */
  readonly #rootSets = {
    authorities: new Map<string, readonly string[]>(),
    bundle: new Map<string, readonly string[]>(),
  };

  keepCertificate(name: string, pair: KeyPair): string {
    const version = versionOf(pair.chain);
    this.#store(name, version, { resource: certificateSecret(name, pair), pair });
    return version;
  }

  keepRoots(name: string, roots: string, revocationLists: readonly RevocationList[] = []): string {
    const revocationPem = revocationLists.map(({ pem }) => pem).join('');
    const version = versionOf(`${roots}${revocationPem}`);
    const resource = rootsSecret(name, roots, revocationPem);
    this.#store(name, version, { resource, roots, ...(revocationLists.length > 0 && { lists: revocationLists }) });
    return version;
  }

  get(name: string, version: string): StoredSecret | undefined {
    return this.#secrets.get(name)?.get(version);
  }

  /** A certificate that waits for its roots counts too: the control plane that issued it accepts it. */
  newestPair(name: string): KeyPair | undefined {
    return [...(this.#secrets.get(name)?.values() ?? [])].at(-1)?.pair;
  }

  *newestPairs(): Generator<[name: string, pair: KeyPair]> {
    for (const name of this.#secrets.keys()) {
      const pair = this.newestPair(name);
      if (pair !== undefined) yield [name, pair];
    }
  }

  newestLists(name: string): readonly RevocationList[] {
    return [...(this.#secrets.get(name)?.values() ?? [])].at(-1)?.lists ?? [];
  }

  *allNewestLists(): Generator<[name: string, lists: readonly RevocationList[]]> {
    for (const name of this.#secrets.keys()) {
      const revocationLists = this.newestLists(name);
      if (revocationLists.length > 0) yield [name, revocationLists];
    }
  }

  remove(name: string): void {
    this.#secrets.delete(name);
  }

  /** Each root has its own PEM text. */
  keepSet(kind: keyof RootParts, hash: string, roots: readonly string[]): void {
    keepNewest(this.#rootSets[kind], hash, roots);
  }

  set(kind: keyof RootParts, hash: string): readonly string[] {
    return this.#rootSets[kind].get(hash) ?? [];
  }

  #store(name: string, version: string, secret: StoredSecret): void {
    const versions = this.#secrets.get(name) ?? new Map<string, StoredSecret>();
    this.#secrets.set(name, versions);
    keepNewest(versions, version, secret);
  }
}

function keepNewest<Value>(values: Map<string, Value>, key: string, value: Value): void {
  values.delete(key);
  values.set(key, value);
  for (const oldest of values.keys()) {
    if (values.size <= maxVersions) return;
    values.delete(oldest);
  }
}

function versionOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
