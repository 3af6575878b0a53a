/**
 * What an operator took back: tokens by their id, certificates by their serial number, one a line of a file in the authority's
 * directory. It counts from the moment that it is written: the file is looked at when somebody shows who they are.
 */

import { statSync } from 'node:fs';
import { messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { isMissingPath } from '../../config/files/directory-walk.ts';

export interface Revoked {
  readonly tokens: ReadonlySet<string>;
  /** Serial numbers, as {@link serialText} writes them. */
  readonly certificates: ReadonlySet<string>;
  /** When it was written. */
  readonly at: Date;
}

const mostBytes = 16 * 1024 * 1024;
const nothing: Revoked = { tokens: new Set(), certificates: new Set(), at: new Date(0) };

export class RevokedFile {
  readonly file: string;
  readonly #log: Pick<Logger, 'warn'>;
  #known = nothing;
  /** Of the file that was read last; undefined: there was none. */
  #stamp: string | undefined;
  /** Why it could not be read the last time; empty where it could. */
  #failure = '';

  /** @param file empty: nothing can be taken back */
  constructor(file: string, log: Pick<Logger, 'warn'>) {
    this.file = file;
    this.#log = log;
  }

  /** As the file says now. What it cannot be read for changes nothing: whoever was taken back stays so. */
  get current(): Revoked {
    if (this.file === '') return nothing;
    try {
      const stamp = stampOf(this.file);
      if (stamp === this.#stamp) return this.#known;
      this.#known = stamp === undefined ? nothing : this.#read();
      this.#stamp = stamp;
      this.#failure = '';
    } catch (error) {
      // It is tried again with the next one who shows who they are; that it cannot be is told once.
      const failure = messageOf(error);
      if (failure !== this.#failure) {
        this.#log.warn('revocations.unreadable', { file: this.file, reason: failure });
      }
      this.#failure = failure;
    }
    return this.#known;
  }

  isTokenRevoked(id: string): boolean {
    return this.current.tokens.has(id);
  }

  isCertificateRevoked(serialNumber: string): boolean {
    return this.current.certificates.has(serialText(serialNumber));
  }

  #read(): Revoked {
    const tokens = new Set<string>();
    const certificates = new Set<string>();
    let unread = 0;
    for (const line of readBoundedText(this.file, mostBytes).split(/\r?\n/)) {
      const [, kind, id] = /^\s*(token|certificate)\s+(\S+)\s*(?:#.*)?$/.exec(line) ?? [];
      if (kind === 'token') tokens.add(id!);
      else if (kind === 'certificate' && /^[0-9A-Fa-f:]+$/.test(id!)) certificates.add(serialText(id!));
      else if (!/^\s*(?:#.*)?$/.test(line)) unread++;
    }
    if (unread > 0) {
      this.#log.warn('revocations.linesInvalid', { file: this.file, lines: unread });
      // What was meant by them is not known: nobody who was taken back before comes in by a slip of the pen.
      for (const id of this.#known.tokens) tokens.add(id);
      for (const id of this.#known.certificates) certificates.add(id);
    }
    return { tokens, certificates, at: statSync(this.file).mtime };
  }
}

/** The same for the same number, however it is written: `0a:1B`, `A1B`. */
export function serialText(serialNumber: string): string {
  return serialNumber
    .replaceAll(':', '')
    .toUpperCase()
    .replace(/^0+(?=.)/, '');
}

function stampOf(file: string): string | undefined {
  try {
    // What can be read now and could not before has changed as well: `chmod`.
    const { ino, size, ctimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${ctimeNs}`;
  } catch (error) {
    if (isMissingPath(error)) return undefined;
    throw error;
  }
}
