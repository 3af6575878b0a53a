import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isSystemError, messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import type { ConfigLimits } from '../files/config-limits.ts';
import { compareWalkOrder, configNames, isConfigName, walkDirectories } from '../files/directory-walk.ts';

export interface GivenText {
  readonly file: string;
  readonly text: string;
}

export interface GivenTexts {
  readonly texts: readonly GivenText[];
  readonly unreadable: string[];
  /** Messages about files that were not read. */
  readonly notes: readonly string[];
}

/** Maximum time to wait for a writer of a named pipe. */
export const maxPipeWaitMs = 10_000;
const pipePollMs = 20;
const chunkBytes = 64 * 1024;

/**
 * @param paths files of any name, and directories of `*.yaml`, `*.yml` and `*.json` at any depth
 * @param limits limits of the control plane. `maxBytes` applies to all files together.
 */
export async function readGivenTexts(paths: readonly string[], limits: ConfigLimits): Promise<GivenTexts> {
  const readState: TextsReadState = { limits, bytes: 0, unreadable: [], notes: [] };
  const textsByFile = new Map<string, GivenText>();
  for (const path of paths) {
    for (const inputText of await textsAt(path, readState)) {
      if (!textsByFile.has(resolve(inputText.file))) textsByFile.set(resolve(inputText.file), inputText);
    }
  }
  const { unreadable, notes } = readState;
  return { texts: [...textsByFile.values()], unreadable, notes };
}

interface TextsReadState {
  readonly limits: ConfigLimits;
  bytes: number;
  readonly unreadable: string[];
  readonly notes: string[];
}

async function textsAt(path: string, readState: TextsReadState): Promise<GivenText[]> {
  const { limits, unreadable } = readState;
  const remainingBytes = (): ByteLimit => ({
    bytes: limits.maxBytes - readState.bytes,
    setting: 'PILOT_CONFIG_MAX_BYTES',
  });
  try {
    if (!statSync(path).isDirectory()) {
      const text = await readNamedText(path, remainingBytes());
      readState.bytes += Buffer.byteLength(text);
      return [{ file: path, text }];
    }
    const { files, failures, ignoredFiles } = await walkDirectories(path, limits);
    for (const [file, error] of failures) unreadable.push(`${file}: ${messageOf(error)}`);
    if (files.length === 0) unreadable.push(`${path}: the directory has no files ${configNames}`);
    if (ignoredFiles.count > 0) readState.notes.push(ignoredNote(path, ignoredFiles));
    return files
      .map((file) => file.path)
      .filter(isConfigName)
      .sort(compareWalkOrder)
      .flatMap((file) => {
        try {
          if (statSync(file).size > remainingBytes().bytes) throw tooManyBytesError(remainingBytes());
          const text = readBoundedText(file, limits.maxFileBytes);
          readState.bytes += Buffer.byteLength(text);
          return [{ file, text }];
        } catch (error) {
          unreadable.push(`${file}: ${messageOf(error)}`);
          return [];
        }
      });
  } catch (error) {
    unreadable.push(`${path}: ${messageOf(error)}`);
    return [];
  }
}

function ignoredNote(directory: string, { count, first }: { readonly count: number; readonly first: string }): string {
  const files = count === 1 ? `${first} is` : `${first} and ${count - 1} more are`;
  return `of directory ${directory} only ${configNames} are read: ${files} not validated; rename them, or name them as arguments`;
}

export interface ByteLimit {
  readonly bytes: number;
  readonly setting: 'PILOT_CONFIG_MAX_BYTES' | 'PILOT_CONFIG_MAX_FILE_BYTES';
}

function tooManyBytesError({ bytes, setting }: ByteLimit): Error {
  return new Error(`has more than ${bytes} bytes, the rest of ${setting}: divide the file, or raise ${setting}`);
}

/** @throws Error of the file system, or if the file exceeds the limit, or if a named pipe has no writer for {@link maxPipeWaitMs} */
export async function readNamedText(path: string, limit: ByteLimit): Promise<string> {
  // Opening a pipe without a writer would block the process.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const isPipe = fstatSync(file).isFIFO();
    const chunks: Buffer[] = [];
    let length = 0;
    const deadline = performance.now() + (isPipe && !isOpenDescriptor(path) ? maxPipeWaitMs : 0);
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const bytesRead = readChunk(file, chunk);
      if (bytesRead === 'nothing yet') await setTimeout(pipePollMs);
      else if (bytesRead > 0) {
        chunks.push(chunk.subarray(0, bytesRead));
        length += bytesRead;
        if (length > limit.bytes) throw tooManyBytesError(limit);
      } else if (length > 0 || !isPipe) return Buffer.concat(chunks, length).toString('utf8');
      else if (performance.now() < deadline) await setTimeout(pipePollMs);
      else if (isOpenDescriptor(path)) return '';
      else throw new Error(`no process wrote to this named pipe within ${maxPipeWaitMs / 1_000} s`);
    }
  } finally {
    closeSync(file);
  }
}

/** The writer of an open file descriptor, such as `<(command)` in a shell, already exists. */
function isOpenDescriptor(path: string): boolean {
  return /^\/(?:dev\/fd|dev\/stdin|proc\/)/.test(path);
}

function readChunk(file: number, chunk: Buffer): number | 'nothing yet' {
  try {
    return readSync(file, chunk);
  } catch (error) {
    if (isSystemError(error, 'EAGAIN')) return 'nothing yet';
    throw error;
  }
}

export async function readStreamText(stream: AsyncIterable<Buffer>, limit: ByteLimit): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit.bytes) throw tooManyBytesError(limit);
  }
  return Buffer.concat(chunks, length).toString('utf8');
}
