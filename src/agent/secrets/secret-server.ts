/**
 * Answers Envoy's `StreamSecrets` at a Unix socket (spec/agent.md §7.1; envoy/service/secret/v3/sds.proto). It serves what it is
 * told to, and tells who wants what, and what they say of it.
 */

import { dirname } from 'node:path';
import { fromCallback } from 'xstate';
import type { SdsOrder, SdsReport } from '../../../machines/agent/secrets-protocol.ts';
import { secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import { Allowance, type Pace } from '../../runtime/fences/allowance.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { GrpcSocketServer, type ServerCall } from '../grpc/grpc-server.ts';
import { readSecretRequest, SecretRequestError, secretResponse } from './sds-messages.ts';
import type { SecretVault } from './secret-vault.ts';

const service = '/envoy.service.secret.v3.SecretDiscoveryService';
/** Says that an agent of ours is here. */
export const agentMethod = '/chartpilot.agent.v1.Secrets/WhoServes';

/** An Envoy has a stream for each secret of each listener and cluster. */
const mostOfEnvoy = 2_000;
/** In a hot restart there are two Envoys at once. */
const mostStreams = 2 * mostOfEnvoy;
/**
 * Streams that a connection may begin, and all of them together: an Envoy begins its 2,000 at once, so does the next one of a hot restart, and
 * one in the place of that which died at once: three times 2,000. After these another one may begin its 2,000 in ten seconds. An agent that was
 * started anew has all of it again, when its Envoys come back. A stream costs what a name does, and 200 of these are a tenth of a second.
 */
const usuallyBegun = {
  ofOne: { most: mostOfEnvoy, perSecond: 100 },
  inWhole: { most: 3 * mostOfEnvoy, perSecond: 200 },
};
/**
 * Names that clients may come to want, or want no more, on streams that want something already, or beyond the first name of a stream's first
 * request: at once, and each second. An Envoy's stream is for one name for ever, so Envoys use nothing of it; each change is an actor begun or
 * ended, and two thousand of them are a second without anything else.
 */
const usualChanges = { most: 200, perSecond: 20 };
/** The first message has the node's metadata in it. */
const mostRequestBytes = 1024 * 1024;

export interface SecretServerMeans {
  readonly vault: SecretVault;
  /** Another agent may have the socket before or after this one. */
  readonly ownership?: Ownership;
  readonly log: Logger;
  /** What clients may ask for, for tests that ask for more. */
  readonly changes?: Pace;
  /** Streams that a connection may begin, and all of them together. */
  readonly begun?: Pace;
}

export function serveSecrets(means: SecretServerMeans) {
  return fromCallback<SdsOrder, { socket: string }>(({ input, receive, sendBack }) => {
    const server = new SecretServer(means, (event) => sendBack(event));
    receive((order) => {
      if (order.type === 'sds.open') void server.open(input.socket);
      else if (order.type === 'sds.serve') server.serve(order.name, order.version);
      else if (order.type === 'sds.withdraw') server.withdraw(order.name);
      else server.refuse(order.name, order.reason);
    });
    return () => server.close();
  });
}

/** Who wants a secret, and what they get. */
interface Subject {
  readonly streams: Set<SecretStream>;
  /** What everybody gets; undefined: it is not there. */
  version: string | undefined;
  /** What was told last that everybody has taken. */
  toldTaken: string | undefined;
  /** The secret could not be had when somebody asked for it. */
  isRefused: boolean;
}

export class SecretServer {
  readonly #means: SecretServerMeans;
  readonly #tell: (event: SdsReport) => void;
  readonly #subjects = new Map<string, Subject>();
  readonly #changes: Allowance;
  #streams = 0;
  #socket: GrpcSocketServer | undefined;
  #isClosed = false;

  constructor(means: SecretServerMeans, tell: (event: SdsReport) => void) {
    this.#means = means;
    this.#tell = tell;
    this.#changes = new Allowance(means.changes ?? usualChanges);
  }

  async open(path: string): Promise<void> {
    try {
      this.#socket?.close();
      makeFolder(dirname(path), 0o700);
      const unimplemented = (call: ServerCall): void => call.end('UNIMPLEMENTED', 'use StreamSecrets');
      const { ownership } = this.#means;
      const socket = await GrpcSocketServer.listen(path, {
        ...(ownership && { ownership }),
        methods: new Map([
          [`${service}/StreamSecrets`, (call) => this.#begin(call)],
          [`${service}/DeltaSecrets`, unimplemented],
          [`${service}/FetchSecrets`, unimplemented],
          [
            agentMethod,
            (call) => {
              call.write(frameOf(new Uint8Array()));
              call.end('OK');
            },
          ],
        ]),
        limits: {
          streams: mostOfEnvoy,
          begun: this.#means.begun ?? usuallyBegun.ofOne,
          begunInWhole: this.#means.begun ?? usuallyBegun.inWhole,
        },
      });
      if (this.#isClosed) socket.close();
      else {
        this.#socket = socket;
        this.#tell({ type: 'sds.listening' });
      }
    } catch (error) {
      if (!this.#isClosed) this.#tell({ type: 'sds.failed', reason: explainInOneLine(error) });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
  }

  serve(name: string, version: string): void {
    const subject = this.#subject(name);
    subject.isRefused = false;
    if (subject.version !== version) subject.toldTaken = undefined;
    subject.version = version;
    for (const stream of subject.streams) stream.send(name, version);
    this.#tellTaken(name, subject);
  }

  withdraw(name: string): void {
    this.#subject(name).version = undefined;
  }

  refuse(name: string, reason: string): void {
    const subject = this.#subjects.get(name);
    if (subject === undefined) return;
    subject.isRefused = true;
    for (const stream of [...subject.streams]) stream.refuse(name, reason);
  }

  #begin(call: ServerCall): void {
    if (this.#streams >= mostStreams) {
      call.end('RESOURCE_EXHAUSTED', `stream limit of ${mostStreams} reached`);
      return;
    }
    this.#streams++;
    const stream = new SecretStream(call, {
      mayChange: (names) => this.#changes.take(names),
      read: (name, version) => this.#means.vault.get(name, version)?.resource,
      wanted: (name) => this.#want(name, stream),
      left: (name) => this.#leave(name, stream),
      taken: (name) => this.#tellTaken(name, this.#subject(name)),
      refused: (name, version, reason) => {
        this.#tell({ type: 'sds.rejected', name, version, reason });
      },
    });
    call.stream.once('close', () => {
      this.#streams--;
      stream.over();
    });
  }

  #subject(name: string): Subject {
    const known = this.#subjects.get(name);
    if (known !== undefined) return known;
    const made: Subject = { streams: new Set(), version: undefined, toldTaken: undefined, isRefused: false };
    this.#subjects.set(name, made);
    return made;
  }

  #want(name: string, stream: SecretStream): void {
    const subject = this.#subject(name);
    const isFirst = subject.streams.size === 0;
    subject.streams.add(stream);
    if (subject.version !== undefined) stream.send(name, subject.version);
    // What could not be had a while ago may be there by now.
    if (isFirst || subject.isRefused) this.#tell({ type: 'sds.subscribed', name });
  }

  #leave(name: string, stream: SecretStream): void {
    const subject = this.#subjects.get(name);
    if (subject === undefined || !subject.streams.delete(stream)) return;
    if (subject.streams.size > 0) {
      // Perhaps it was the one that hung.
      this.#tellTaken(name, subject);
      return;
    }
    subject.toldTaken = undefined;
    if (isFile(name) || subject.version === undefined) {
      this.#subjects.delete(name);
      if (isFile(name)) this.#means.vault.forget(name);
    }
    this.#tell({ type: 'sds.unsubscribed', name });
  }

  #tellTaken(name: string, subject: Subject): void {
    const { version, streams } = subject;
    if (version === undefined || streams.size === 0 || subject.toldTaken === version) return;
    for (const stream of streams) if (stream.takenOf(name) !== version) return;
    subject.toldTaken = version;
    this.#tell({ type: 'sds.acknowledged', name, version });
  }
}

/** The others are this workload's own: they stay, whoever asks. */
function isFile(name: string): boolean {
  return name.startsWith('file-');
}

interface StreamPeer {
  /** Whether it may come to want, or to want no more, so many names. */
  readonly mayChange: (names: number) => boolean;
  readonly read: (name: string, version: string) => Uint8Array | undefined;
  readonly wanted: (name: string) => void;
  readonly left: (name: string) => void;
  readonly taken: (name: string) => void;
  readonly refused: (name: string, version: string, reason: string) => void;
}

/** What a stream knows of one secret. */
interface Delivery {
  sent: string | undefined;
  /** Nonce of the last response with the secret. */
  nonce: string;
  taken: string | undefined;
  /** There is no secret of this name. */
  isRefused: boolean;
}

/** One stream of an Envoy. However slowly it reads, one response waits for it: later versions take the place of earlier ones. */
class SecretStream {
  readonly #call: ServerCall;
  readonly #peer: StreamPeer;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #due = new Map<string, string>();
  #nonce = 0;
  #isBlocked = false;
  #hasWanted = false;

  constructor(call: ServerCall, peer: StreamPeer) {
    this.#call = call;
    this.#peer = peer;
    const reader = new FrameReader({ wholeBytes: mostRequestBytes, maxBytes: mostRequestBytes });
    call.stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk, ({ bytes }) => this.#take(bytes.subarray(frameHeadBytes)));
      } catch (error) {
        if (error instanceof GrpcError) call.end(error.code, error.details);
        else if (error instanceof SecretRequestError) call.end('INVALID_ARGUMENT', error.message);
        else throw error;
      }
    });
    call.stream.once('end', () => call.end('OK'));
    call.stream.on('drain', () => {
      this.#isBlocked = false;
      this.#flush();
    });
  }

  /** The stream is closed. */
  over(): void {
    for (const name of [...this.#deliveries.keys()]) this.#leave(name);
  }

  takenOf(name: string): string | undefined {
    return this.#deliveries.get(name)?.taken;
  }

  send(name: string, version: string): void {
    if (this.#deliveries.get(name)?.sent === version) this.#due.delete(name);
    else this.#due.set(name, version);
    this.#flush();
  }

  /** Who wants nothing else hears of it; the others get what there is. */
  refuse(name: string, reason: string): void {
    const delivery = this.#deliveries.get(name);
    if (delivery !== undefined) delivery.isRefused = true;
    if ([...this.#deliveries.values()].every(({ isRefused }) => isRefused))
      this.#call.end('NOT_FOUND', `${name}: ${reason}`);
  }

  #take(bytes: Uint8Array): void {
    // What else the client has to say is read, and answered by nobody.
    if (this.#call.isEnded) return;
    const { names, typeUrl, nonce, error } = readSecretRequest(bytes);
    if (typeUrl !== '' && typeUrl !== secretType) {
      this.#call.end('INVALID_ARGUMENT', `type_url must be ${secretType}`);
      return;
    }
    const answered = nonce === '' ? undefined : [...this.#deliveries].find(([, delivery]) => delivery.nonce === nonce);
    // An answer to what was replaced since: the next one says what counts.
    if (answered === undefined && !this.#isOfNow(nonce)) return;
    if (answered !== undefined) this.#answered(...answered, error);
    // Where a request is an answer, only new names lead to a response: else each would bring the next (istio#20951).
    const wanted = new Set(names);
    const left = [...this.#deliveries.keys()].filter((name) => !wanted.has(name));
    const added = [...wanted].filter((name) => !this.#deliveries.has(name));
    // The first name was paid for when the stream began.
    const isPaidFor = !this.#hasWanted && added.length > 0;
    this.#hasWanted = true;
    const changes = left.length + added.length - (isPaidFor ? 1 : 0);
    if (changes > 0 && !this.#peer.mayChange(changes)) {
      this.#call.end('RESOURCE_EXHAUSTED', 'subscriptions change too often');
      return;
    }
    for (const name of left) this.#leave(name);
    for (const name of added) {
      this.#deliveries.set(name, { sent: undefined, nonce: '', taken: undefined, isRefused: false });
    }
    for (const name of added) this.#peer.wanted(name);
  }

  /** Who wants other secrets than a moment ago names the last response once more; before the first one there is none to name. */
  #isOfNow(nonce: string): boolean {
    return nonce === '' || this.#nonce === 0 || nonce === `${this.#nonce}`;
  }

  #answered(name: string, delivery: Delivery, error: string | undefined): void {
    delivery.nonce = '';
    if (delivery.sent === undefined) return;
    if (error !== undefined) {
      this.#peer.refused(name, delivery.sent, error);
      return;
    }
    delivery.taken = delivery.sent;
    this.#peer.taken(name);
  }

  #leave(name: string): void {
    this.#due.delete(name);
    this.#deliveries.delete(name);
    this.#peer.left(name);
  }

  #flush(): void {
    for (const [name, version] of this.#due) {
      if (this.#isBlocked) return;
      this.#due.delete(name);
      const delivery = this.#deliveries.get(name);
      const secret = this.#peer.read(name, version);
      if (delivery === undefined || secret === undefined) continue;
      delivery.sent = version;
      delivery.isRefused = false;
      // What was taken was sent before: when it is sent once more, it is taken once more.
      delivery.taken = undefined;
      delivery.nonce = `${++this.#nonce}`;
      this.#isBlocked = !this.#call.write(frameOf(secretResponse(version, delivery.nonce, secret)));
    }
  }
}
