/** An append-only file with a line per certificate and report. It is compacted at start and after growth. */
import { appendFileSync, closeSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { openRegularFile } from '../../../runtime/files/bounded-file.ts';
import { ensureDirectory } from '../../../runtime/files/make-folder.ts';
import { replaceFileSync } from '../../../runtime/files/replace-file.ts';
import { isMissingPath } from '../../config/files/directory-walk.ts';
import type { LedgerLine, WorkloadLedger } from './workload-ledger.ts';

const pieceBytes = 1024 * 1024;
/** An identity has at most 2 KB, a node ID 1 KB. */
const maxLineBytes = 64 * 1024;
const compactAfterBytes = 8 * 1024 * 1024;

export class LedgerLog {
  readonly #file: string;
  #addedLines = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Skips a line that is incomplete because the process was killed.
   *
   * @returns the number of unreadable lines
   */
  loadLedger(ledger: WorkloadLedger, now: number): number {
    let unreadableLines = 0;
    try {
      for (const writtenLine of linesOf(this.#file)) {
        if (writtenLine === '') continue;
        try {
          ledger.apply(lineIn(JSON.parse(writtenLine)));
        } catch {
          unreadableLines++;
        }
      }
    } catch (error) {
      if (!isMissingPath(error)) throw error;
    }
    this.#rewrite(ledger, now);
    return unreadableLines;
  }

  add(ledgerLine: LedgerLine, ledger: WorkloadLedger, now: number): void {
    const text = `${JSON.stringify(ledgerLine)}\n`;
    appendFileSync(this.#file, text, { mode: 0o600 });
    this.#addedLines += text.length;
    if (this.#addedLines > compactAfterBytes) this.#rewrite(ledger, now);
  }

  #rewrite(ledger: WorkloadLedger, now: number): void {
    ensureDirectory(dirname(this.#file), 0o700);
    replaceFileSync(this.#file, piecesOf(ledger, now));
    this.#addedLines = 0;
  }
}

/** A single string could exceed the maximum string length. */
function* piecesOf(ledger: WorkloadLedger, now: number): Generator<string> {
  let text = '';
  for (const ledgerLine of ledger.ledgerLines(now)) {
    text += `${JSON.stringify(ledgerLine)}\n`;
    if (text.length < pieceBytes) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Reads the file in chunks, because its size grows with the number of workloads. Overlong lines are split into unreadable ones. */
function* linesOf(path: string): Generator<string> {
  const file = openRegularFile(path, path);
  try {
    const decoder = new StringDecoder('utf8');
    const chunk = Buffer.allocUnsafe(pieceBytes);
    let incompleteLine = '';
    for (let readLength = readSync(file, chunk); readLength > 0; readLength = readSync(file, chunk)) {
      const completeLines = (incompleteLine + decoder.write(chunk.subarray(0, readLength))).split('\n');
      incompleteLine = completeLines.pop()!;
      yield* completeLines;
      if (incompleteLine.length <= maxLineBytes) continue;
      yield incompleteLine;
      incompleteLine = '';
    }
    yield incompleteLine;
  } finally {
    closeSync(file);
  }
}

function lineIn(value: unknown): LedgerLine {
  const { issued, arrived, trusted } = value as { readonly [kind in 'issued' | 'arrived' | 'trusted']?: JsonObject };
  const { identity, node } = issued ?? arrived ?? trusted ?? {};
  if (typeof identity !== 'string' || typeof node !== 'string') throw new Error('has no identity or node');
  if (trusted !== undefined) {
    const { roots } = trusted;
    if (!Array.isArray(roots) || !roots.every((id) => typeof id === 'string'))
      throw new Error('roots must be a list of strings');
    return { trusted: { identity, node, roots } };
  }
  // Earlier versions wrote no serial number for issued certificates.
  const { authority, serialNumber = '', endsAt } = issued ?? arrived!;
  if (typeof serialNumber !== 'string') throw new Error('serialNumber must be a string');
  if (arrived !== undefined) return { arrived: { identity, node, serialNumber } };
  if (typeof authority !== 'string' || typeof endsAt !== 'number') throw new Error('has no authority or endsAt');
  return { issued: { identity, node, authority, serialNumber, endsAt } };
}

type JsonObject = Readonly<Record<string, unknown>>;
