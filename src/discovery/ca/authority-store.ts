import { createPrivateKey } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Journal } from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { readCertificates } from '../../identity/certificate.ts';
import { earliestExpiryOf } from '../../identity/certificate-path.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../../runtime/files/bounded-file.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { requirePrivate } from '../../runtime/files/private-file.ts';
import { replaceFileSync } from '../../runtime/files/replace-file.ts';
import { type AuthorityMaterial, buildAuthorityMaterial } from './authority-material.ts';

export interface StoredJournal extends Journal {
  /** When the stage began, Unix time in milliseconds. Earlier versions did not write it. */
  readonly since?: number;
  readonly reverted?: AuthorityId;
}

export interface AuthorityStore {
  /** The journal can refer to expired authorities. */
  readJournal(): StoredJournal | undefined;
  writeJournal(journal: StoredJournal): void;
  /** @throws ChartpilotError if the authority is damaged or expired */
  read(id: AuthorityId, now: Date): AuthorityMaterial;
  expiryOf(id: AuthorityId): Date | undefined;
  save(material: AuthorityMaterial): void;
  /** Writes a CRL file that operators distribute to workloads. */
  saveRevocationLists(pem: string): void;
  /** Deletes all authorities except these, keys before chains. */
  deleteAllExcept(ids: readonly AuthorityId[]): void;
  /** The file is for operators and never read back. */
  saveRoots(pem: string): void;
}

const stages: readonly Journal['stage'][] = ['steady', 'trusting', 'signing', 'dropping'];
const maxFileBytes = 1024 * 1024;

/** The CA exists in memory only, so clients must receive a new root after each restart of this process. */
export class MemoryStore implements AuthorityStore {
  readonly #materials = new Map<AuthorityId, AuthorityMaterial>();
  #journal: StoredJournal | undefined;

  readJournal(): StoredJournal | undefined {
    return this.#journal;
  }

  writeJournal(journal: StoredJournal): void {
    this.#journal = journal;
  }

  read(id: AuthorityId): AuthorityMaterial {
    const material = this.#materials.get(id);
    if (material === undefined)
      throw new ChartpilotError('CONFIG_INVALID', `no certificate authority with ID ${id} in memory`);
    return material;
  }

  expiryOf(id: AuthorityId): Date | undefined {
    return this.#materials.get(id)?.notAfter;
  }

  save(material: AuthorityMaterial): void {
    this.#materials.set(material.id, material);
  }

  saveRevocationLists(): void {}

  deleteAllExcept(ids: readonly AuthorityId[]): void {
    for (const id of this.#materials.keys()) if (!ids.includes(id)) this.#materials.delete(id);
  }

  saveRoots(): void {}
}

/**
 * Contains `journal.json` and, for each authority, `<id>.key` and `<id>.chain` (signing certificate to root). For operators it also contains
 * `root-cert.pem` and `ca-crl.pem`.
 */
export class DirectoryStore implements AuthorityStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  readJournal(): StoredJournal | undefined {
    const file = this.#fileOf('journal.json');
    if (!existsSync(file)) return undefined;
    try {
      return journalIn(JSON.parse(readBoundedText(file, maxFileBytes)));
    } catch (error) {
      throw this.#damagedFileError(file, messageOf(error));
    }
  }

  writeJournal(journal: StoredJournal): void {
    this.#write('journal.json', `${JSON.stringify(journal)}\n`);
  }

  read(id: AuthorityId, now: Date): AuthorityMaterial {
    const [keyFile, chainFile] = [this.#fileOf(`${id}.key`), this.#fileOf(`${id}.chain`)];
    if (existsSync(keyFile)) requirePrivate(keyFile, 'a reader of the file can sign certificates for any workload');
    try {
      const [certificate, ...otherCertificates] = readCertificates(readBoundedText(chainFile, maxFileBytes));
      const privateKey = createPrivateKey(readBoundedText(keyFile, maxFileBytes));
      if (!certificate!.x509.checkPrivateKey(privateKey))
        throw new Error(`its certificate does not match the key in ${keyFile}`);
      const roots = [otherCertificates.at(-1) ?? certificate!];
      const material = buildAuthorityMaterial({ certificate: certificate!, privateKey }, otherCertificates, roots, now);
      if (material.id !== id) throw new Error(`it has the authority ${material.id}, expected ${id}`);
      return material;
    } catch (error) {
      throw this.#damagedFileError(chainFile, messageOf(error));
    }
  }

  expiryOf(id: AuthorityId): Date | undefined {
    try {
      return earliestExpiryOf(readCertificates(readBoundedText(this.#fileOf(`${id}.chain`), maxFileBytes)));
    } catch {
      return undefined;
    }
  }

  save({ id, issuer, path }: AuthorityMaterial): void {
    this.#write(`${id}.chain`, path.map(({ pem }) => pem).join(''));
    this.#write(`${id}.key`, issuer.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string);
  }

  saveRevocationLists(pem: string): void {
    this.#write('ca-crl.pem', pem);
  }

  deleteAllExcept(ids: readonly AuthorityId[]): void {
    const namesToKeep = new Set(ids.flatMap((id) => [`${id}.key`, `${id}.chain`]));
    // A full disk or a killed process leaves `.new` files behind.
    const names = readdirSync(this.#directory).filter((name) => /^[0-9a-f]+\.(key|chain)(\.new)?$/.test(name));
    for (const name of names.sort().reverse()) if (!namesToKeep.has(name)) rmSync(this.#fileOf(name));
  }

  saveRoots(pem: string): void {
    this.#write('root-cert.pem', pem);
  }

  #fileOf(name: string): string {
    return join(this.#directory, name);
  }

  #write(name: string, content: string): void {
    ensureDirectory(this.#directory, 0o700);
    replaceFileSync(this.#fileOf(name), content, { flush: 'content and name' });
  }

  #damagedFileError(file: string, problem: string): ChartpilotError {
    return new ChartpilotError('CONFIG_INVALID', `${file} cannot be used: ${problem}`, {
      hint: `restore the file from a backup, or remove the directory ${basename(this.#directory)} to create a new root, which must then be distributed to all workloads`,
    });
  }
}

function journalIn(value: unknown): StoredJournal {
  const {
    stage,
    signer,
    other,
    tainted = null,
    since,
    reverted,
  } = (value ?? {}) as Partial<Record<keyof StoredJournal, unknown>>;
  const isId = (id: unknown): id is string => typeof id === 'string' && /^[0-9a-f]+$/.test(id);
  const journalStage = stages.find((candidate) => candidate === stage);
  if (journalStage === undefined || !isId(signer) || (other !== null && !isId(other)))
    throw new Error('it must have a stage, and the IDs of the signing and of the other authority');
  // Earlier versions did not write this field.
  const isKnownTainted = tainted === null || tainted === signer || tainted === other;
  if (!isKnownTainted) throw new Error('tainted must be one of its authorities');
  const names = { signer, other, tainted: tainted as Journal['tainted'] };
  const isTime = typeof since === 'number' && since >= 0;
  return { stage: journalStage, ...names, ...(isTime && { since }), ...(isId(reverted) && { reverted }) };
}
