/**
 * Certificates, keys and roots of this workload, in memory and nowhere else. Charts know them by their versions: what is secret
 * passes through no event and no trace.
 */
import { createHash } from 'node:crypto';
import type { RootParts } from '../../../machines/agent/secrets-protocol.ts';
import type { RevocationList } from '../../identity/revocation-list.ts';
import type { KeyPair } from '../../runtime/grpc/key-pair.ts';
import { certificateSecret, rootsSecret } from './sds-messages.ts';

export interface KeptSecret {
  /** The secret's resource, encoded as Envoy gets it. */
  readonly resource: Uint8Array;
  /** Key and chain, where the secret is a certificate. */
  readonly pair?: KeyPair;
  /** The roots in PEM, where the secret is roots. */
  readonly roots?: string;
  /** Checked revocation lists of the roots, where the secret has any. */
  readonly lists?: readonly RevocationList[];
}

/** Versions of a secret: in force, waiting for its roots, just obtained, and one that nobody has let go yet. */
const mostVersions = 4;

export class SecretVault {
  readonly #secrets = new Map<string, Map<string, KeptSecret>>();
  /** Sets of roots, each kind by itself: however many of one are told, those of the other stay. */
  readonly #sets = { authorities: new Map<string, readonly string[]>(), bundle: new Map<string, readonly string[]>() };

  /** @returns its version */
  keepCertificate(name: string, pair: KeyPair): string {
    const version = versionOf(pair.chain);
    this.#keep(name, version, { resource: certificateSecret(name, pair), pair });
    return version;
  }

  /** @returns its version */
  keepRoots(name: string, roots: string, lists: readonly RevocationList[] = []): string {
    const revoked = lists.map(({ pem }) => pem).join('');
    const version = versionOf(`${roots}${revoked}`);
    const resource = rootsSecret(name, roots, revoked);
    this.#keep(name, version, { resource, roots, ...(lists.length > 0 && { lists }) });
    return version;
  }

  get(name: string, version: string): KeptSecret | undefined {
    return this.#secrets.get(name)?.get(version);
  }

  /** What was obtained last, in force or waiting for its roots: a control plane knows what it has signed. */
  newestPair(name: string): KeyPair | undefined {
    return [...(this.#secrets.get(name)?.values() ?? [])].at(-1)?.pair;
  }

  /** The newest certificate of every name that has one. */
  *newestPairs(): Generator<[name: string, pair: KeyPair]> {
    for (const name of this.#secrets.keys()) {
      const pair = this.newestPair(name);
      if (pair !== undefined) yield [name, pair];
    }
  }

  /** The revocation lists of the newest roots of this name; none if it has none. */
  newestLists(name: string): readonly RevocationList[] {
    return [...(this.#secrets.get(name)?.values() ?? [])].at(-1)?.lists ?? [];
  }

  /** Of every name whose roots have revocation lists. */
  *allNewestLists(): Generator<[name: string, lists: readonly RevocationList[]]> {
    for (const name of this.#secrets.keys()) {
      const lists = this.newestLists(name);
      if (lists.length > 0) yield [name, lists];
    }
  }

  /** Nobody asks for this secret any more. */
  forget(name: string): void {
    this.#secrets.delete(name);
  }

  /** Roots that ROOTCA may be made of, in PEM, one each. */
  keepSet(kind: keyof RootParts, hash: string, roots: readonly string[]): void {
    keepNewest(this.#sets[kind], hash, roots);
  }

  /** None where the hash is empty. */
  set(kind: keyof RootParts, hash: string): readonly string[] {
    return this.#sets[kind].get(hash) ?? [];
  }

  #keep(name: string, version: string, secret: KeptSecret): void {
    const versions = this.#secrets.get(name) ?? new Map<string, KeptSecret>();
    this.#secrets.set(name, versions);
    keepNewest(versions, version, secret);
  }
}

function keepNewest<Value>(values: Map<string, Value>, key: string, value: Value): void {
  values.delete(key);
  values.set(key, value);
  for (const oldest of values.keys()) {
    if (values.size <= mostVersions) return;
    values.delete(oldest);
  }
}

/** Version of a secret, made of what others may see: no key is in it. */
function versionOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
