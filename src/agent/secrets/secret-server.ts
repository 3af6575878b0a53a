/** Serves Envoy's `StreamSecrets` on a Unix socket (envoy/service/secret/v3/sds.proto). */

import { dirname } from 'node:path';
import { fromCallback } from 'xstate';
import type { SdsOrder, SdsReport } from '../../../machines/agent/secrets-protocol.ts';
import { secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import { type RateLimit, RateLimiter } from '../../runtime/fences/allowance.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { GrpcSocketServer, type ServerCall } from '../grpc/grpc-server.ts';
import { readSecretRequest, SecretRequestError, secretResponse } from './sds-messages.ts';
import type { SecretVault } from './secret-vault.ts';

const service = '/envoy.service.secret.v3.SecretDiscoveryService';
/** Method that only an agent's server implements. */
export const agentMethod = '/chartpilot.agent.v1.Secrets/WhoServes';

/** Envoy opens a stream for each secret of each listener and cluster. */
const maxStreamsOfEnvoy = 2_000;
/** Two Envoys exist during a hot restart. */
const maxStreams = 2 * maxStreamsOfEnvoy;
/**
 * Envoy opens 2,000 streams at once, and so do its child in a hot restart and its replacement after a crash: three times 2,000, then 2,000 per 10 s.
 * 200 streams take 0.1 s.
 */
const defaultStreamRate = {
  ofOne: { burst: maxStreamsOfEnvoy, perSecond: 100 },
  inWhole: { burst: 3 * maxStreamsOfEnvoy, perSecond: 200 },
};
/** The first name of a stream is not counted. Each change starts or stops an actor; 2,000 changes take 1 s. */
const defaultChangeRate = { burst: 200, perSecond: 20 };
/** The first request contains the node metadata. */
const maxRequestBytes = 1024 * 1024;

export interface SecretServerEnvironment {
  readonly vault: SecretVault;
  readonly ownership?: Ownership;
  readonly log: Logger;
  /** Limits changes of subscriptions; tests set it. */
  readonly changes?: RateLimit;
  /** Limits new streams; tests set it. */
  readonly begun?: RateLimit;
}

export function serveSecrets(environment: SecretServerEnvironment) {
  return fromCallback<SdsOrder, { socket: string }>(({ input, receive, sendBack }) => {
    const server = new SecretServer(environment, (event) => sendBack(event));
    receive((order) => {
      if (order.type === 'sds.open') void server.open(input.socket);
      else if (order.type === 'sds.serve') server.serve(order.name, order.version);
      else if (order.type === 'sds.withdraw') server.withdraw(order.name);
      else server.refuse(order.name, order.reason);
    });
    return () => server.close();
  });
}

interface SecretState {
  readonly streams: Set<SecretStream>;
  /** `undefined` if the secret is unavailable. */
  version: string | undefined;
  /** The last version whose acknowledgement by all subscribers was reported. */
  reportedAcknowledged: string | undefined;
  isRefused: boolean;
}

export class SecretServer {
  readonly #environment: SecretServerEnvironment;
  readonly #report: (event: SdsReport) => void;
  readonly #stateByName = new Map<string, SecretState>();
  readonly #changes: RateLimiter;
  #streams = 0;
  #socket: GrpcSocketServer | undefined;
  #isClosed = false;

  constructor(environment: SecretServerEnvironment, report: (event: SdsReport) => void) {
    this.#environment = environment;
    this.#report = report;
    this.#changes = new RateLimiter(environment.changes ?? defaultChangeRate);
  }

  async open(path: string): Promise<void> {
    try {
      this.#socket?.close();
      ensureDirectory(dirname(path), 0o700);
      const rejectUnimplemented = (call: ServerCall): void => call.end('UNIMPLEMENTED', 'use StreamSecrets');
      const { ownership } = this.#environment;
      const socket = await GrpcSocketServer.listen(path, {
        ...(ownership && { ownership }),
        methods: new Map([
          [`${service}/StreamSecrets`, (call) => this.#beginStream(call)],
          [`${service}/DeltaSecrets`, rejectUnimplemented],
          [`${service}/FetchSecrets`, rejectUnimplemented],
          [
            agentMethod,
            (call) => {
              call.write(frameOf(new Uint8Array()));
              call.end('OK');
            },
          ],
        ]),
        limits: {
          streams: maxStreamsOfEnvoy,
          callRate: this.#environment.begun ?? defaultStreamRate.ofOne,
          totalCallRate: this.#environment.begun ?? defaultStreamRate.inWhole,
        },
      });
      if (this.#isClosed) socket.close();
      else {
        this.#socket = socket;
        this.#report({ type: 'sds.listening' });
      }
    } catch (error) {
      if (!this.#isClosed) this.#report({ type: 'sds.failed', reason: explainInOneLine(error) });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
  }

  serve(name: string, version: string): void {
    const subject = this.#stateOf(name);
    subject.isRefused = false;
    if (subject.version !== version) subject.reportedAcknowledged = undefined;
    subject.version = version;
    for (const stream of subject.streams) stream.send(name, version);
    this.#reportAcknowledged(name, subject);
  }

  withdraw(name: string): void {
    this.#stateOf(name).version = undefined;
  }

  refuse(name: string, reason: string): void {
    const subject = this.#stateByName.get(name);
    if (subject === undefined) return;
    subject.isRefused = true;
    for (const stream of [...subject.streams]) stream.refuse(name, reason);
  }

  #beginStream(call: ServerCall): void {
    if (this.#streams >= maxStreams) {
      call.end('RESOURCE_EXHAUSTED', `stream limit of ${maxStreams} reached`);
      return;
    }
    this.#streams++;
    const stream = new SecretStream(call, {
      mayChange: (names) => this.#changes.tryTake(names),
      read: (name, version) => this.#environment.vault.get(name, version)?.resource,
      subscribed: (name) => this.#subscribe(name, stream),
      onUnsubscribed: (name) => this.#removeSubscription(name, stream),
      onAcknowledged: (name) => this.#reportAcknowledged(name, this.#stateOf(name)),
      onRejected: (name, version, reason) => {
        this.#report({ type: 'sds.rejected', name, version, reason });
      },
    });
    call.stream.once('close', () => {
      this.#streams--;
      stream.onClosed();
    });
  }

  #stateOf(name: string): SecretState {
    const existingSubject = this.#stateByName.get(name);
    if (existingSubject !== undefined) return existingSubject;
    const newSubject: SecretState = {
      streams: new Set(),
      version: undefined,
      reportedAcknowledged: undefined,
      isRefused: false,
    };
    this.#stateByName.set(name, newSubject);
    return newSubject;
  }

  #subscribe(name: string, stream: SecretStream): void {
    const subject = this.#stateOf(name);
    const isFirst = subject.streams.size === 0;
    subject.streams.add(stream);
    if (subject.version !== undefined) stream.send(name, subject.version);
    // The secret may be available by now.
    if (isFirst || subject.isRefused) this.#report({ type: 'sds.subscribed', name });
  }

  #removeSubscription(name: string, stream: SecretStream): void {
    const subject = this.#stateByName.get(name);
    if (subject === undefined || !subject.streams.delete(stream)) return;
    if (subject.streams.size > 0) {
      // The client may have been the last one without an acknowledgement.
      this.#reportAcknowledged(name, subject);
      return;
    }
    subject.reportedAcknowledged = undefined;
    if (isFile(name) || subject.version === undefined) {
      this.#stateByName.delete(name);
      if (isFile(name)) this.#environment.vault.remove(name);
    }
    this.#report({ type: 'sds.unsubscribed', name });
  }

  #reportAcknowledged(name: string, subject: SecretState): void {
    const { version, streams } = subject;
    if (version === undefined || streams.size === 0 || subject.reportedAcknowledged === version) return;
    for (const stream of streams) if (stream.acknowledgedOf(name) !== version) return;
    subject.reportedAcknowledged = version;
    this.#report({ type: 'sds.acknowledged', name, version });
  }
}

/** Other names are the workload's own secrets, which exist without subscribers. */
function isFile(name: string): boolean {
  return name.startsWith('file-');
}

interface StreamPeer {
  /** Whether the rate permits this many subscriptions and unsubscriptions now. */
  readonly mayChange: (names: number) => boolean;
  readonly read: (name: string, version: string) => Uint8Array | undefined;
  readonly subscribed: (name: string) => void;
  readonly onUnsubscribed: (name: string) => void;
  readonly onAcknowledged: (name: string) => void;
  readonly onRejected: (name: string, version: string, reason: string) => void;
}

interface Delivery {
  sent: string | undefined;
  nonce: string;
  acknowledged: string | undefined;
  isRefused: boolean;
}

/** Queues only one response for a slow reader: later versions replace earlier ones. */
class SecretStream {
  readonly #call: ServerCall;
  readonly #peer: StreamPeer;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #dueDeliveries = new Map<string, string>();
  #nonce = 0;
  #isWriteBlocked = false;
  #hasSubscribed = false;

  constructor(call: ServerCall, peer: StreamPeer) {
    this.#call = call;
    this.#peer = peer;
    const reader = new FrameReader({ wholeBytes: maxRequestBytes, maxBytes: maxRequestBytes });
    call.stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk, ({ bytes }) => this.#handleRequest(bytes.subarray(frameHeadBytes)));
      } catch (error) {
        if (error instanceof GrpcError) call.end(error.code, error.details);
        else if (error instanceof SecretRequestError) call.end('INVALID_ARGUMENT', error.message);
        else throw error;
      }
    });
    call.stream.once('end', () => call.end('OK'));
    call.stream.on('drain', () => {
      this.#isWriteBlocked = false;
      this.#flush();
    });
  }

  onClosed(): void {
    for (const name of [...this.#deliveries.keys()]) this.#unsubscribe(name);
  }

  acknowledgedOf(name: string): string | undefined {
    return this.#deliveries.get(name)?.acknowledged;
  }

  send(name: string, version: string): void {
    if (this.#deliveries.get(name)?.sent === version) this.#dueDeliveries.delete(name);
    else this.#dueDeliveries.set(name, version);
    this.#flush();
  }

  /** Ends the stream if it has no other subscription. */
  refuse(name: string, reason: string): void {
    const delivery = this.#deliveries.get(name);
    if (delivery !== undefined) delivery.isRefused = true;
    if ([...this.#deliveries.values()].every(({ isRefused }) => isRefused))
      this.#call.end('NOT_FOUND', `${name}: ${reason}`);
  }

  #handleRequest(bytes: Uint8Array): void {
    if (this.#call.isEnded) return;
    const { names, typeUrl, nonce, error } = readSecretRequest(bytes);
    if (typeUrl !== '' && typeUrl !== secretType) {
      this.#call.end('INVALID_ARGUMENT', `type_url must be ${secretType}`);
      return;
    }
    const acknowledgedNonce =
      nonce === '' ? undefined : [...this.#deliveries].find(([, delivery]) => delivery.nonce === nonce);
    // Ignores the response to a replaced version.
    if (acknowledgedNonce === undefined && !this.#isCurrentNonce(nonce)) return;
    if (acknowledgedNonce !== undefined) this.#handleResponse(...acknowledgedNonce, error);
    // Responds to an acknowledgement only with new names: otherwise each response would cause the next one (istio#20951).
    const subscribedNames = new Set(names);
    const unsubscribedNames = [...this.#deliveries.keys()].filter((name) => !subscribedNames.has(name));
    const addedNames = [...subscribedNames].filter((name) => !this.#deliveries.has(name));
    // The first name was counted when the stream was opened.
    const isFirstNameCounted = !this.#hasSubscribed && addedNames.length > 0;
    this.#hasSubscribed = true;
    const changes = unsubscribedNames.length + addedNames.length - (isFirstNameCounted ? 1 : 0);
    if (changes > 0 && !this.#peer.mayChange(changes)) {
      this.#call.end('RESOURCE_EXHAUSTED', 'subscriptions change too often');
      return;
    }
    for (const name of unsubscribedNames) this.#unsubscribe(name);
    for (const name of addedNames) {
      this.#deliveries.set(name, { sent: undefined, nonce: '', acknowledged: undefined, isRefused: false });
    }
    for (const name of addedNames) this.#peer.subscribed(name);
  }

  /** A request before the first response has no nonce. */
  #isCurrentNonce(nonce: string): boolean {
    return nonce === '' || this.#nonce === 0 || nonce === `${this.#nonce}`;
  }

  #handleResponse(name: string, delivery: Delivery, error: string | undefined): void {
    delivery.nonce = '';
    if (delivery.sent === undefined) return;
    if (error !== undefined) {
      this.#peer.onRejected(name, delivery.sent, error);
      return;
    }
    delivery.acknowledged = delivery.sent;
    this.#peer.onAcknowledged(name);
  }

  #unsubscribe(name: string): void {
    this.#dueDeliveries.delete(name);
    this.#deliveries.delete(name);
    this.#peer.onUnsubscribed(name);
  }

  #flush(): void {
    for (const [name, version] of this.#dueDeliveries) {
      if (this.#isWriteBlocked) return;
      this.#dueDeliveries.delete(name);
      const delivery = this.#deliveries.get(name);
      const secret = this.#peer.read(name, version);
      if (delivery === undefined || secret === undefined) continue;
      delivery.sent = version;
      delivery.isRefused = false;
      // The client must acknowledge the secret again.
      delivery.acknowledged = undefined;
      delivery.nonce = `${++this.#nonce}`;
      this.#isWriteBlocked = !this.#call.write(frameOf(secretResponse(version, delivery.nonce, secret)));
    }
  }
}
