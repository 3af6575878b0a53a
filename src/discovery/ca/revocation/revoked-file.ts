/**
 * A file in the authority's directory contains revoked tokens (by ID) and certificates (by serial number), one per line. Changes apply immediately.
 */

import { statSync } from 'node:fs';
import { messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { isMissingPath } from '../../config/files/directory-walk.ts';

export interface RevokedCredentials {
  readonly tokens: ReadonlySet<string>;
  /** The serial numbers are in the notation of {@link serialText}. */
  readonly certificates: ReadonlySet<string>;
  readonly modifiedAt: Date;
}

const maxBytes = 16 * 1024 * 1024;
const noCredentials: RevokedCredentials = { tokens: new Set(), certificates: new Set(), modifiedAt: new Date(0) };

export class RevokedFile {
  readonly file: string;
  readonly #log: Pick<Logger, 'warn'>;
  #revokedIds = noCredentials;
  /** `undefined` before the first reading. */
  #fileStamp: string | undefined;
  #failure = '';

  /** @param file empty if revocation is disabled */
  constructor(file: string, log: Pick<Logger, 'warn'>) {
    this.file = file;
    this.#log = log;
  }

  /** Keeps the previous content if the file is unreadable. */
  get current(): RevokedCredentials {
    if (this.file === '') return noCredentials;
    try {
      const currentStamp = stampOf(this.file);
      if (currentStamp === this.#fileStamp) return this.#revokedIds;
      this.#revokedIds = currentStamp === undefined ? noCredentials : this.#readRevokedFile();
      this.#fileStamp = currentStamp;
      this.#failure = '';
    } catch (error) {
      // The next authentication reads the file again, but the same error is reported only once.
      const failure = messageOf(error);
      if (failure !== this.#failure) {
        this.#log.warn('revocations.unreadable', { file: this.file, reason: failure });
      }
      this.#failure = failure;
    }
    return this.#revokedIds;
  }

  isTokenRevoked(id: string): boolean {
    return this.current.tokens.has(id);
  }

  isCertificateRevoked(serialNumber: string): boolean {
    return this.current.certificates.has(serialText(serialNumber));
  }

  #readRevokedFile(): RevokedCredentials {
    const tokens = new Set<string>();
    const certificates = new Set<string>();
    let unreadCount = 0;
    for (const line of readBoundedText(this.file, maxBytes).split(/\r?\n/)) {
      const [, kind, id] = /^\s*(token|certificate)\s+(\S+)\s*(?:#.*)?$/.exec(line) ?? [];
      if (kind === 'token') tokens.add(id!);
      else if (kind === 'certificate' && /^[0-9A-Fa-f:]+$/.test(id!)) certificates.add(serialText(id!));
      else if (!/^\s*(?:#.*)?$/.test(line)) unreadCount++;
    }
    if (unreadCount > 0) {
      this.#log.warn('revocations.linesInvalid', { file: this.file, lines: unreadCount });
      // An invalid line must not restore access, so earlier revocations are kept.
      for (const id of this.#revokedIds.tokens) tokens.add(id);
      for (const id of this.#revokedIds.certificates) certificates.add(id);
    }
    return { tokens, certificates, modifiedAt: statSync(this.file).mtime };
  }
}

/** Normalizes notations such as `0a:1B` and `A1B`. */
export function serialText(serialNumber: string): string {
  return serialNumber
    .replaceAll(':', '')
    .toUpperCase()
    .replace(/^0+(?=.)/, '');
}

function stampOf(file: string): string | undefined {
  try {
    // `ctime` detects `chmod` too.
    const { ino, size, ctimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${ctimeNs}`;
  } catch (error) {
    if (isMissingPath(error)) return undefined;
    throw error;
  }
}
