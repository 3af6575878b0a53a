/**
 * The ledger's lines in a file: one is added for each certificate and each word, so that a control plane that is killed knows
 * after its start who is out there. Made anew at each start and when it has grown.
 */
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { readBoundedText } from '../config/bounded-file.ts';
import { isGone } from '../config/directory-walk.ts';
import type { LedgerLine, WorkloadLedger } from './workload-ledger.ts';

const mostBytes = 64 * 1024 * 1024;
/** Rewritten when this much was added. */
const rewrittenAfter = 8 * 1024 * 1024;

export class LedgerLog {
  readonly #file: string;
  #added = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Brings a ledger to where it was. A line that was cut off by a kill is passed over.
   *
   * @returns how many lines could not be read
   */
  readInto(ledger: WorkloadLedger, now: number): number {
    let unreadable = 0;
    let text = '';
    try {
      text = readBoundedText(this.#file, mostBytes);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    for (const line of text.split('\n')) {
      if (line === '') continue;
      try {
        ledger.apply(lineIn(JSON.parse(line)));
      } catch {
        unreadable++;
      }
    }
    this.#rewrite(ledger, now);
    return unreadable;
  }

  add(line: LedgerLine, ledger: WorkloadLedger, now: number): void {
    const text = `${JSON.stringify(line)}\n`;
    appendFileSync(this.#file, text, { mode: 0o600 });
    this.#added += text.length;
    if (this.#added > rewrittenAfter) this.#rewrite(ledger, now);
  }

  #rewrite(ledger: WorkloadLedger, now: number): void {
    const beside = `${this.#file}.new`;
    makeFolder(dirname(this.#file), 0o700);
    rmSync(beside, { force: true });
    const lines = [...ledger.lines(now)].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(beside, lines.join(''), { mode: 0o600 });
    renameSync(beside, this.#file);
    this.#added = 0;
  }
}

function lineIn(value: unknown): LedgerLine {
  const { issued, arrived, trusted } = value as { readonly [kind in 'issued' | 'arrived' | 'trusted']?: Fields };
  const { identity, node } = issued ?? arrived ?? trusted ?? {};
  if (typeof identity !== 'string' || typeof node !== 'string') throw new Error('names no workload');
  if (trusted !== undefined) {
    const { roots } = trusted;
    if (!Array.isArray(roots) || !roots.every((id) => typeof id === 'string')) throw new Error('names no roots');
    return { trusted: { identity, node, roots } };
  }
  // Written by a version that counted a certificate when it was signed, an issued one has none.
  const { authority, serialNumber = '', endsAt } = issued ?? arrived!;
  if (typeof serialNumber !== 'string') throw new Error('names no certificate');
  if (arrived !== undefined) return { arrived: { identity, node, serialNumber } };
  if (typeof authority !== 'string' || typeof endsAt !== 'number') throw new Error('names no authority');
  return { issued: { identity, node, authority, serialNumber, endsAt } };
}

type Fields = Readonly<Record<string, unknown>>;
