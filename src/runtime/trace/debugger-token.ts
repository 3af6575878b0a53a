/** A token proves that a caller on this host may read files of the program's user. */
import { closeSync, constants, fstatSync, openSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSystemError, messageOf } from '../errors.ts';
import { readRegularFile } from '../files/regular-file.ts';
import { defaultConfigPath, isRunDirName, sharedRunDir } from '../files/run-dir.ts';
import { ownerOfPeer, type PeerOwner } from '../socket-owner.ts';

const maxTokenBytes = 64;
const tokenFormat = /^[\w-]{43}$/;
const rootUid = 0;
/** The kernel reports the owner of a connection only after the program has accepted it. */
const acceptLimitMsDefault = 5_000;
const acceptPollMs = 10;

export function tokenFile(runDir: string, port: number): string {
  return join(runDir, `debugger-${port}.token`);
}

export interface TokenSearch {
  /** If absent, each directory that {@link chooseRunDir} may have returned in the program with its default `configPath`. */
  readonly runDir?: string;
  /** Uid of the program (default: that of this process). */
  readonly owner?: number;
}

export interface FoundToken {
  readonly token?: string;
  readonly rejected: readonly string[];
}

/**
 * Accepts only a regular file of the program's user, in a directory that belongs to that user or to root, because other users can write files and
 * links of this name.
 */
export function findDebuggerToken(port: number, { runDir, owner = currentUid() }: TokenSearch = {}): FoundToken {
  const rejectedFiles: string[] = [];
  const tokenFiles = candidateDirectories(runDir, owner).flatMap((directory) => {
    try {
      return [readToken(directory, port, owner)];
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) rejectedFiles.push(`${tokenFile(directory, port)}: ${messageOf(error)}`);
      return [];
    }
  });
  // A killed program leaves its file behind.
  const newestFile = tokenFiles.sort((a, b) => b.mtimeMs - a.mtimeMs)[0];
  return { ...(newestFile && { token: newestFile.token }), rejected: rejectedFiles };
}

export function readDebuggerToken(port: number, search?: TokenSearch): string | undefined {
  return findDebuggerToken(port, search).token;
}

export interface ConnectOptions extends Pick<TokenSearch, 'runDir'> {
  /** Default 5 s. No token is used before the program has accepted the connection. */
  readonly acceptLimitMs?: number;
}

export interface ProgramConnection {
  readonly socket: Socket;
  readonly token?: string;
  /** Why no token is used although there may be one. */
  readonly rejected: readonly string[];
}

/**
 * Uses the token of the user that has accepted this connection, because another program may listen at the port by now.
 * @throws Error of the connection
 */
export async function connectToProgram(
  address: { readonly host: string; readonly port: number },
  { runDir, acceptLimitMs = acceptLimitMsDefault }: ConnectOptions = {},
): Promise<ProgramConnection> {
  const socket = await connectTo(address);
  const owner = await waitForPeerOwner(socket, acceptLimitMs);
  if (typeof owner === 'object') {
    const search = { owner: owner.uid, ...(runDir !== undefined && { runDir }) };
    return { socket, ...findDebuggerToken(address.port, search) };
  }
  const reason =
    owner === 'no table'
      ? 'this system has no /proc/net/tcp, so the user of the program is unknown'
      : `no process has accepted the connection within ${acceptLimitMs} ms`;
  return { socket, rejected: [reason] };
}

function connectTo(address: { readonly host: string; readonly port: number }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address });
    socket.once('connect', () => {
      socket.off('error', reject);
      // The caller adds its own listener; the error may occur before or after that.
      socket.on('error', () => {});
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

async function waitForPeerOwner(socket: Socket, limitMs: number): Promise<PeerOwner> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const owner = ownerOfPeer(socket);
    if (owner !== 'no process' || performance.now() > deadline || socket.destroyed) return owner;
    await sleep(acceptPollMs);
  }
}

function currentUid(): number {
  return process.geteuid?.() ?? rootUid;
}

function candidateDirectories(runDir: string | undefined, owner: number): string[] {
  if (runDir !== undefined) return [existingPath(runDir)];
  const parents = [tmpdir(), resolve(defaultConfigPath)];
  return [sharedRunDir, ...parents.flatMap((parent) => runDirsBelow(parent, owner))];
}

function runDirsBelow(parent: string, owner: number): string[] {
  try {
    const names = readdirSync(parent).filter((name) => isRunDirName(owner, name));
    return names.map((name) => join(parent, name));
  } catch {
    return [];
  }
}

/** A configured directory may be a link. */
function existingPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The open directory cannot be replaced at its path between the two checks. */
function readToken(directory: string, port: number, owner: number): { token: string; mtimeMs: number } {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const { uid } = fstatSync(fd);
    if (uid !== owner && uid !== rootUid)
      throw new Error(`owner of the directory must be uid ${owner} or root, got uid ${uid}`);
    const file = readRegularFile(tokenFile(pathOf(fd) ?? directory, port), { maxBytes: maxTokenBytes, owner });
    const token = file.content.toString('latin1').trim();
    if (!tokenFormat.test(token)) throw new Error('must contain a token');
    return { token, mtimeMs: file.mtimeMs };
  } finally {
    closeSync(fd);
  }
}

/** @returns `undefined` if /proc has no open files (not Linux) */
function pathOf(fd: number): string | undefined {
  const path = `/proc/self/fd/${fd}`;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : undefined;
}
