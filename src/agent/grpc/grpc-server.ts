/**
 * A gRPC server on a Unix socket that nobody but this user may open: one at a path, streams with a bound. Where two programs may follow each
 * other, each socket has a name of its own, `PATH.PID`, and the path becomes another name of the owner's, in the place of the one before: there is no
 * moment in which nobody listens at the path, and none ends what is another's.
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
import { Allowance, type Pace } from '../../runtime/fences/allowance.ts';
import { type GrpcCode, trailersOf } from '../../runtime/grpc/call-status.ts';
import type { Ownership } from '../../runtime/ownership.ts';

/** Takes each call of one method; it must not throw. */
export type GrpcMethod = (call: ServerCall) => void;

export interface GrpcServerLimits {
  /** Connections at the same time: the next one is closed at once. */
  readonly connections: number;
  /** Calls of a connection at the same time. */
  readonly streams: number;
  /** Those that it may begin: each costs its server more than its client. */
  readonly begun: Pace;
  /** Those that all connections may begin together: whoever is refused by one makes another. */
  readonly begunInWhole: Pace;
  /** What a client may send of a call before it was read. */
  readonly windowBytes: number;
  /** How long the last bytes of a call may take to be read, once it was ended. */
  readonly lingerMs: number;
}

const defaultServerLimits: GrpcServerLimits = {
  connections: 64,
  streams: 16,
  begun: { most: 100, perSecond: 10 },
  begunInWhole: { most: 1_000, perSecond: 100 },
  windowBytes: 1024 * 1024,
  lingerMs: 5_000,
};

export interface GrpcServerOptions {
  /** Paths such as `/package.Service/Method`. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  readonly limits?: Partial<GrpcServerLimits>;
  /** Another program may listen at the path before or after this one. Absent: it is this one's alone. */
  readonly ownership?: Ownership;
}

/** What the kernel takes for the name of a socket, its end included (unix(7)). */
const mostPathBytes = 108;
/** How long whoever has the socket has for an answer. */
const neighbourLimitMs = 1_000;
/** Frames that break the protocol, and streams beyond the limit, before a connection is ended. */
const mostInvalid = 100;
const mostHeaderBytes = 64 * 1024;

/** One call that somebody makes. Its stream may be read, written, paused; it is ended by {@link end}. */
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
      this.#leave();
    });
  }

  /** Its status is said, or its client is gone. */
  get isEnded(): boolean {
    return this.#isEnded || this.stream.destroyed;
  }

  /** Sends frames, see `frameOf`. @returns false where the client does not read as fast: wait for `drain` */
  write(frames: Uint8Array): boolean {
    if (this.#isEnded || this.stream.closed || this.stream.destroyed) return true;
    this.#respond();
    return this.stream.write(frames);
  }

  /** What was written is still sent, as long as the client reads. */
  end(code: GrpcCode, details = ''): void {
    if (this.#isEnded || this.stream.destroyed) return;
    this.#isEnded = true;
    if (this.stream.closed) {
      // The client has reset the call: Node would wait until what was written is out, which never happens.
      this.stream.destroy();
      return;
    }
    this.#trailers = trailersOf(code, details);
    if (!this.stream.headersSent) {
      this.stream.respond({ ...answerHeaders, ...this.#trailers }, { endStream: true });
      this.#leave();
    } else this.stream.end();
    // A client that does not read its answer.
    const limit = setTimeout(() => this.stream.destroy(), this.#lingerMs);
    this.stream.once('close', () => clearTimeout(limit));
    this.stream.resume();
  }

  /** The status is on its way: a client that has more to say is told that nobody listens. */
  #leave(): void {
    setImmediate(() => this.stream.close(constants.NGHTTP2_NO_ERROR));
  }

  #respond(): void {
    if (!this.stream.headersSent) this.stream.respond(answerHeaders, { waitForTrailers: true });
  }
}

const answerHeaders = { ':status': 200, 'content-type': 'application/grpc' };

export class GrpcSocketServer {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #path: string;
  readonly #ownership: Ownership | undefined;
  #forgetOwnership: (() => void) | undefined;

  private constructor(path: string, { methods, limits, ownership }: GrpcServerOptions) {
    const { connections, streams, begun, begunInWhole, windowBytes, lingerMs } = { ...defaultServerLimits, ...limits };
    this.#path = path;
    this.#ownership = ownership;
    this.#server = createServer({
      maxSessionInvalidFrames: mostInvalid,
      maxSessionRejectedStreams: mostInvalid,
      settings: { initialWindowSize: windowBytes, maxConcurrentStreams: streams, maxHeaderListSize: mostHeaderBytes },
    });
    this.#server.maxConnections = connections;
    this.#server.on('sessionError', () => {});
    const allowances = new WeakMap<object, Allowance>();
    const inWhole = new Allowance(begunInWhole);
    const mayBegin = (session: object | undefined): boolean =>
      session !== undefined && allowances.get(session)?.take() !== false && inWhole.take();
    this.#server.on('session', (session) => {
      allowances.set(session, new Allowance(begun));
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
      } else if (!mayBegin(stream.session)) {
        call.end('RESOURCE_EXHAUSTED', 'too many calls per second');
      } else if (method === undefined) call.end('UNIMPLEMENTED', `unknown method ${String(headers[':path'])}`);
      else method(call);
    });
  }

  /**
   * Opens the socket, in place of one that nobody serves any more; where it is not ours yet, beside one that somebody does.
   *
   * @throws ChartpilotError PORT_IN_USE, LISTEN_FAILED
   */
  static async listen(path: string, options: GrpcServerOptions): Promise<GrpcSocketServer> {
    const own = ownNameOf(path, options.ownership);
    if (Buffer.byteLength(own) >= mostPathBytes) {
      const hint = 'Choose a shorter --configPath.';
      throw new ChartpilotError(
        'LISTEN_FAILED',
        `socket path must have at most ${mostPathBytes - 1} bytes, got ${Buffer.byteLength(own)}: ${own}`,
        { hint, fields: { path: own, expected: `at most ${mostPathBytes - 1} bytes` } },
      );
    }
    if (options.ownership?.isOurs !== false) await removeStale(path);
    if (options.ownership !== undefined) await removeOwnNames(path);
    const made = new GrpcSocketServer(path, options);
    try {
      await made.#listen(own);
      made.#forgetOwnership = options.ownership?.whenOurs(() => putInPlace(own, path));
    } catch (error) {
      made.close();
      throw new ChartpilotError('LISTEN_FAILED', `socket ${path}: ${messageOf(error)}`, {
        cause: error,
        fields: { path },
      });
    }
    return made;
  }

  async #listen(own: string): Promise<void> {
    // The socket is made while listen() runs, and with these bits: there is no moment in which others may open it.
    const mask = process.umask(0o177);
    try {
      this.#server.listen(own);
    } finally {
      process.umask(mask);
    }
    await once(this.#server, 'listening');
    this.#server.on('error', () => {});
  }

  /** Ends every connection; the socket is gone, but for one that another program has put in its place. */
  close(): void {
    this.#forgetOwnership?.();
    const own = ownNameOf(this.#path, this.#ownership);
    if (this.#ownership?.isOurs === true && isSame(own, this.#path)) rmSync(this.#path, { force: true });
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
  }
}

function ownNameOf(path: string, ownership: Ownership | undefined): string {
  return ownership === undefined ? path : `${path}.${process.pid}`;
}

/** Gives the socket its path, as another name. Doing so twice changes nothing, but then `rename` leaves the first of the two names. */
function putInPlace(own: string, path: string): void {
  const next = `${own}.next`;
  rmSync(next, { force: true });
  linkSync(own, next);
  renameSync(next, path);
  rmSync(next, { force: true });
}

function isSame(one: string, other: string): boolean {
  try {
    const [a, b] = [lstatSync(one), lstatSync(other)];
    return a.ino === b.ino && a.dev === b.dev;
  } catch {
    return false;
  }
}

/** Removes the own names of sockets that killed programs have left. */
async function removeOwnNames(path: string): Promise<void> {
  const [directory, name] = [dirname(path), basename(path)];
  const left = readdirSync(directory).filter(
    (other) => other.startsWith(`${name}.`) && /^\d+(\.next)?$/.test(other.slice(name.length + 1)),
  );
  for (const other of left) {
    const own = join(directory, other);
    if (!(await isServed(own))) rmSync(own, { force: true });
  }
}

async function removeStale(path: string): Promise<void> {
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
  if (await isServed(path)) {
    const hint = 'Another agent uses it: start each agent with its own --configPath.';
    throw new ChartpilotError('PORT_IN_USE', `socket ${path}`, { hint, fields: { path } });
  }
  rmSync(path, { force: true });
}

/** Whether somebody has it: one who is too busy to take a connection does. */
export async function isServed(path: string): Promise<boolean> {
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
