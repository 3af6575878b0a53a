/**
 * A gRPC server on a Unix socket that only this user can open. If several programs use a path in turn, each listens on its own name `PATH.PID`, and
 * the owner atomically replaces the path with a link to its socket.
 */
import { once } from 'node:events';
import { linkSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { type RateLimit, RateLimiter } from '../../runtime/fences/allowance.ts';
import { type GrpcCode, trailersOf } from '../../runtime/grpc/call-status.ts';
import type { Ownership } from '../../runtime/ownership.ts';

/** Handles a call of one method. Must not throw. */
export type GrpcMethod = (call: ServerCall) => void;

export interface GrpcServerLimits {
  /** Further connections are closed. */
  readonly connections: number;
  readonly streams: number;
  /** Rate per connection; a new call costs the server more than the client. */
  readonly callRate: RateLimit;
  /** Total rate, because a client can open more connections. */
  readonly totalCallRate: RateLimit;
  /** Bytes per call that a client may send before the server reads them. */
  readonly windowBytes: number;
  /** Maximum time for a client to read the last bytes of a call. */
  readonly lingerMs: number;
}

const defaultServerLimits: GrpcServerLimits = {
  connections: 64,
  streams: 16,
  callRate: { burst: 100, perSecond: 10 },
  totalCallRate: { burst: 1_000, perSecond: 100 },
  windowBytes: 1024 * 1024,
  lingerMs: 5_000,
};

export interface GrpcServerOptions {
  /** Keys are paths such as `/package.Service/Method`. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  readonly limits?: Partial<GrpcServerLimits>;
  /** Set if another program may listen at the path before or after this one. */
  readonly ownership?: Ownership;
}

/** Linux limit of a socket path including the terminating NUL (unix(7)). */
const maxPathBytes = 108;
const neighbourLimitMs = 1_000;
/** A connection with more invalid frames, or more excess streams, is closed. */
const maxInvalidFrames = 100;
const maxHeaderBytes = 64 * 1024;

export class ServerCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly #lingerMs: number;
  #trailers = trailersOf('UNKNOWN', 'call aborted by the server');
  #isEnded = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, lingerMs: number) {
    this.stream = stream;
    this.headers = headers;
    this.#lingerMs = lingerMs;
    stream.on('wantTrailers', () => {
      stream.sendTrailers(this.#trailers);
      this.#resetStream();
    });
  }

  get isEnded(): boolean {
    return this.#isEnded || this.stream.destroyed;
  }

  /** @returns false if the caller must wait for `drain` */
  write(frames: Uint8Array): boolean {
    if (this.#isEnded || this.stream.closed || this.stream.destroyed) return true;
    this.#respond();
    return this.stream.write(frames);
  }

  /** Sends the status after all written bytes, if the client reads them. */
  end(code: GrpcCode, details = ''): void {
    if (this.#isEnded || this.stream.destroyed) return;
    this.#isEnded = true;
    if (this.stream.closed) {
      // The client has reset the call, and Node would wait without limit for the written bytes to be sent.
      this.stream.destroy();
      return;
    }
    this.#trailers = trailersOf(code, details);
    if (!this.stream.headersSent) {
      this.stream.respond({ ...responseHeaders, ...this.#trailers }, { endStream: true });
      this.#resetStream();
    } else this.stream.end();
    const limit = setTimeout(() => this.stream.destroy(), this.#lingerMs);
    this.stream.once('close', () => clearTimeout(limit));
    this.stream.resume();
  }

  /** Resets the stream after the status was sent, so that the client stops sending. */
  #resetStream(): void {
    setImmediate(() => this.stream.close(constants.NGHTTP2_NO_ERROR));
  }

  #respond(): void {
    if (!this.stream.headersSent) this.stream.respond(responseHeaders, { waitForTrailers: true });
  }
}

const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' };

export class GrpcSocketServer {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #path: string;
  readonly #ownership: Ownership | undefined;
  #forgetOwnership: (() => void) | undefined;

  private constructor(path: string, { methods, limits, ownership }: GrpcServerOptions) {
    const { connections, streams, callRate, totalCallRate, windowBytes, lingerMs } = {
      ...defaultServerLimits,
      ...limits,
    };
    this.#path = path;
    this.#ownership = ownership;
    this.#server = createServer({
      maxSessionInvalidFrames: maxInvalidFrames,
      maxSessionRejectedStreams: maxInvalidFrames,
      settings: { initialWindowSize: windowBytes, maxConcurrentStreams: streams, maxHeaderListSize: maxHeaderBytes },
    });
    this.#server.maxConnections = connections;
    this.#server.on('sessionError', () => {});
    const allowances = new WeakMap<object, RateLimiter>();
    const totalAllowance = new RateLimiter(totalCallRate);
    const mayStartCall = (session: object | undefined): boolean =>
      session !== undefined && allowances.get(session)?.tryTake() !== false && totalAllowance.tryTake();
    this.#server.on('session', (session) => {
      allowances.set(session, new RateLimiter(callRate));
      this.#sessions.add(session);
      session.on('error', () => {});
      session.once('close', () => this.#sessions.delete(session));
    });
    this.#server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      const call = new ServerCall(stream, headers, lingerMs);
      const method = methods.get(String(headers[':path']));
      if (!String(headers['content-type']).startsWith('application/grpc')) {
        stream.respond({ ':status': 415 }, { endStream: true });
      } else if (!mayStartCall(stream.session)) {
        call.end('RESOURCE_EXHAUSTED', 'too many calls per second');
      } else if (method === undefined) call.end('UNIMPLEMENTED', `unknown method ${String(headers[':path'])}`);
      else method(call);
    });
  }

  /**
   * Replaces a stale socket; listens beside the current one until this program owns the path.
   *
   * @throws ChartpilotError PORT_IN_USE, LISTEN_FAILED
   */
  static async listen(path: string, options: GrpcServerOptions): Promise<GrpcSocketServer> {
    const ownPath = ownNameOf(path, options.ownership);
    if (Buffer.byteLength(ownPath) >= maxPathBytes) {
      const hint = 'Choose a shorter --configPath.';
      throw new ChartpilotError(
        'LISTEN_FAILED',
        `socket path must have at most ${maxPathBytes - 1} bytes, got ${Buffer.byteLength(ownPath)}: ${ownPath}`,
        { hint, fields: { path: ownPath, expected: `at most ${maxPathBytes - 1} bytes` } },
      );
    }
    if (options.ownership?.isOurs !== false) await removeStaleSocket(path);
    if (options.ownership !== undefined) await removeOwnNames(path);
    const newServer = new GrpcSocketServer(path, options);
    try {
      await newServer.#listen(ownPath);
      newServer.#forgetOwnership = options.ownership?.onAcquired(() => linkSocket(ownPath, path));
    } catch (error) {
      newServer.close();
      throw new ChartpilotError('LISTEN_FAILED', `socket ${path}: ${messageOf(error)}`, {
        cause: error,
        fields: { path },
      });
    }
    return newServer;
  }

  async #listen(ownPath: string): Promise<void> {
    // listen() creates the socket synchronously with this umask, so other users can never open it.
    const previousUmask = process.umask(0o177);
    try {
      this.#server.listen(ownPath);
    } finally {
      process.umask(previousUmask);
    }
    await once(this.#server, 'listening');
    this.#server.on('error', () => {});
  }

  /** Removes the socket unless another program has replaced it. */
  close(): void {
    this.#forgetOwnership?.();
    const ownPath = ownNameOf(this.#path, this.#ownership);
    if (this.#ownership?.isOurs === true && isSamePath(ownPath, this.#path)) rmSync(this.#path, { force: true });
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
  }
}

function ownNameOf(path: string, ownership: Ownership | undefined): string {
  return ownership === undefined ? path : `${path}.${process.pid}`;
}

function linkSocket(ownPath: string, path: string): void {
  const temporaryPath = `${ownPath}.next`;
  rmSync(temporaryPath, { force: true });
  linkSync(ownPath, temporaryPath);
  renameSync(temporaryPath, path);
  rmSync(temporaryPath, { force: true });
}

function isSamePath(path: string, other: string): boolean {
  try {
    const [a, b] = [lstatSync(path), lstatSync(other)];
    return a.ino === b.ino && a.dev === b.dev;
  } catch {
    return false;
  }
}

/** Removes `PATH.PID` sockets of killed programs. */
async function removeOwnNames(path: string): Promise<void> {
  const [directory, name] = [dirname(path), basename(path)];
  const leftoverFiles = readdirSync(directory).filter(
    (other) => other.startsWith(`${name}.`) && /^\d+(\.next)?$/.test(other.slice(name.length + 1)),
  );
  for (const other of leftoverFiles) {
    const ownPath = join(directory, other);
    if (!(await isSocketServed(ownPath))) rmSync(ownPath, { force: true });
  }
}

async function removeStaleSocket(path: string): Promise<void> {
  try {
    if (!lstatSync(path).isSocket()) {
      throw new ChartpilotError('LISTEN_FAILED', `${path} exists and is not a socket`, {
        hint: 'Remove it.',
        fields: { path, expected: 'a socket' },
      });
    }
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return;
    throw error;
  }
  if (await isSocketServed(path)) {
    const hint = 'Another agent uses it: start each agent with its own --configPath.';
    throw new ChartpilotError('PORT_IN_USE', `socket ${path}`, { hint, fields: { path } });
  }
  rmSync(path, { force: true });
}

/** Whether a program listens, including one that is too busy to accept connections. */
export async function isSocketServed(path: string): Promise<boolean> {
  const socket = connect(path);
  socket.on('error', () => {});
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(neighbourLimitMs) });
    return true;
  } catch (error) {
    return isSystemError(error, 'EAGAIN') || (error instanceof Error && error.name === 'AbortError');
  } finally {
    socket.destroy();
  }
}
