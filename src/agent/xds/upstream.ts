import { fromCallback } from 'xstate';
import type { ModuleFailed, ModuleFetched } from '../../../machines/agent/wasm-protocol.ts';
import type { UpstreamCredential } from '../../../machines/agent/xds/xds-pause.ts';
import type { ProbedHealth } from '../../../machines/agent/xds/xds-stream.setup.ts';
import type {
  BundleRespond,
  CertificateReport,
  HealthReport,
  StreamReport,
} from '../../../machines/agent/xds-protocol.ts';
import { healthType, nameTableType, proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import {
  defaultGrpcLimits,
  GrpcConnection,
  type GrpcConnectionLimits,
  onCallEnd,
} from '../../runtime/grpc/grpc-client.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ConnectionCredentials } from '../identity/control-plane-credentials.ts';
import type { DistributedRoots } from '../identity/distributed-roots.ts';
import type { ExtensionFetches } from '../wasm/extension-responses.ts';
import { fetchedVersionOf } from '../wasm/pull-policy.ts';
import type { WasmModules } from '../wasm/wasm-module.effects.ts';
import { type DiscoveryProtocol, methods, rootsIn } from './discovery-wire.ts';
import { type InternalSubscription, Relay, type RelayReport } from './relay.ts';
import { parseBundle } from './stored-bundle.ts';
import type { XdsActivity } from './xds-activity.ts';
import type { XdsStreams } from './xds-streams.ts';

export interface UpstreamEnvironment {
  readonly streams: XdsStreams;
  readonly discoveryAddress: string;
  readonly credentials: (credential: UpstreamCredential, stopSignal: AbortSignal) => Promise<ConnectionCredentials>;
  /** The headers contain the cluster, and those of XDS_HEADER_…. */
  readonly headers: Readonly<Record<string, string>>;
  readonly activity: XdsActivity;
  readonly log: Logger;
  /** The next agent starts with the stored roots. */
  readonly storeBundle?: (value: Uint8Array) => void;
  /** Later connections are verified by these roots too. */
  readonly receivedRoots?: DistributedRoots;
  readonly trustBundles: boolean;
  /** Rejects for invalid tables. Absent if name tables are not subscribed. */
  readonly nameTables?: (table: Uint8Array) => Promise<void>;
  readonly recordsMessages?: boolean;
  readonly limits?: GrpcConnectionLimits;
  readonly wasmModules?: WasmModules;
  readonly random?: () => number;
}

interface UpstreamInput {
  readonly stream: number;
  readonly protocol: DiscoveryProtocol;
  readonly credential: UpstreamCredential;
  readonly certificate: string;
  /** `null` if unknown. */
  readonly health: ProbedHealth | null;
}

type UpstreamOrder = BundleRespond | CertificateReport | HealthReport | ModuleFetched | ModuleFailed;

export function upstream(environment: UpstreamEnvironment) {
  return fromCallback<UpstreamOrder, UpstreamInput>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const report = (event: StreamReport): void => {
      if (!stop.signal.aborted) sendBack(event);
    };
    const upstreamStream = new UpstreamStream(environment, input, report, stop.signal);
    receive((order) => {
      if (order.type === 'certificate.report') upstreamStream.reportCertificate(order.serialNumber);
      else if (order.type === 'health.report') upstreamStream.reportHealth(order);
      else if (order.type === 'module.fetched') upstreamStream.settleModule(order.id, { file: order.file });
      else if (order.type === 'module.failed') upstreamStream.settleModule(order.id, { reason: order.reason });
      else upstreamStream.respondToBundle(order.hash, order.refusal === '' ? undefined : order.refusal);
    });
    void upstreamStream.begin();
    return () => {
      stop.abort();
      upstreamStream.end();
    };
  });
}

class UpstreamStream {
  readonly #environment: UpstreamEnvironment;
  readonly #stream: number;
  readonly #protocol: DiscoveryProtocol;
  readonly #credential: UpstreamCredential;
  readonly #report: (event: StreamReport) => void;
  readonly #stopSignal: AbortSignal;
  #certificate: string;
  #health: ProbedHealth | null;
  #connection: GrpcConnection | undefined;
  /** Fetches of this stream with a pull secret. */
  readonly #pullSecrets = new Set<number>();
  #relay: Relay | undefined;
  /** False for plaintext connections. */
  #isVerified = false;
  #bundle: { readonly hash: string; readonly acknowledge: (refusal?: string) => void } | undefined;

  constructor(
    environment: UpstreamEnvironment,
    { stream, protocol, credential, certificate, health }: UpstreamInput,
    report: (event: StreamReport) => void,
    stopSignal: AbortSignal,
  ) {
    this.#environment = environment;
    this.#stream = stream;
    this.#protocol = protocol;
    this.#credential = credential;
    this.#certificate = certificate;
    this.#health = health;
    this.#report = report;
    this.#stopSignal = stopSignal;
  }

  async begin(): Promise<void> {
    const { credentials, random = Math.random } = this.#environment;
    let credentialsText = '';
    try {
      const connectionCredentials = await credentials(this.#credential, this.#stopSignal);
      credentialsText = connectionCredentials.description;
      this.#stopSignal.throwIfAborted();
      this.#connection = await this.#dial(connectionCredentials);
      this.#isVerified = connectionCredentials.tls !== undefined;
      this.#startRelay(connectionCredentials.headers, credentialsText);
      this.#report({ type: 'upstream.opened', credential: credentialsText });
    } catch (error) {
      if (this.#stopSignal.aborted) return;
      const reason = explainInOneLine(error);
      const { activity } = this.#environment;
      activity.connectionFailures++;
      activity.trouble = reason;
      this.#report({ type: 'upstream.unreachable', reason, chance: random() });
    }
  }

  async #dial({ tls }: ConnectionCredentials): Promise<GrpcConnection> {
    const { discoveryAddress, limits = defaultGrpcLimits } = this.#environment;
    const address = parseHostAndPort(discoveryAddress);
    if (address === undefined)
      throw new GrpcError('UNAVAILABLE', `control plane address must be host:port, got "${discoveryAddress}"`);
    const connection = await GrpcConnection.open({ address, ...(tls && { tls }) }, limits, this.#stopSignal);
    if (this.#stopSignal.aborted) connection.close();
    return connection;
  }

  #startRelay(headers: Readonly<Record<string, string>>, credentialsText: string): void {
    const connection = this.#connection!;
    const call = this.#environment.streams.get(this.#stream);
    // The downstream effect reports the end of the call.
    if (call === undefined) return;
    const stream = connection.start(methods[this.#protocol], { ...this.#environment.headers, ...headers });
    onCallEnd(stream, connection, (status) => {
      this.#relay?.stop();
      const { code, details, retryAfterMs } = status ?? new GrpcError('UNAVAILABLE', 'control plane closed the stream');
      // The token's age helps to diagnose a rejection.
      const failureReason =
        code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED'
          ? `${details} (credentials: ${credentialsText})`
          : details;
      this.#reportLost(code, failureReason, retryAfterMs);
    });
    this.#relay = new Relay(call, stream, {
      protocol: this.#protocol,
      subscriptions: this.#subscriptions(),
      activity: this.#environment.activity,
      report: this.#relayReport(),
      subscribed: () => this.#sendHealth(),
      ...(this.#environment.wasmModules && { extensionFetches: this.#extensionFetches(this.#environment.wasmModules) }),
    });
    this.#relay.start();
  }

  #extensionFetches({ pullSecrets, counts }: WasmModules): ExtensionFetches {
    return {
      counts,
      received: this.#environment.streams.extensionsOf(this.#stream),
      require: (code) => {
        const { extension, url, sha256, pullSecret } = code;
        const id = this.#environment.streams.nextModule();
        if (pullSecret !== undefined) {
          pullSecrets.set(id, pullSecret);
          this.#pullSecrets.add(id);
        }
        const version = fetchedVersionOf(code);
        this.#report({ type: 'module.required', id, stream: this.#stream, extension, url, sha256, version });
        return id;
      },
      release: (id) => {
        this.#forgetPullSecret(id);
        this.#report({ type: 'module.released', id });
      },
    };
  }

  #forgetPullSecret(id: number): void {
    if (this.#pullSecrets.delete(id)) this.#environment.wasmModules?.pullSecrets.delete(id);
  }

  settleModule(id: number, moduleOutcome: { readonly file: string } | { readonly reason: string }): void {
    if ('file' in moduleOutcome) this.#forgetPullSecret(id);
    this.#relay?.settleModule(id, moduleOutcome);
  }

  #relayReport(): RelayReport {
    return {
      onResponse: () => {
        this.#environment.activity.trouble = '';
        this.#report({ type: 'upstream.responded' });
      },
      downstreamInvalid: (reason) =>
        this.#report({ type: 'downstream.invalid', reason: `invalid DiscoveryRequest from Envoy: ${reason}` }),
      upstreamInvalid: (reason) =>
        this.#reportLost('INTERNAL', `invalid DiscoveryResponse from the control plane: ${reason}`),
      onCongestionChange: (side, isCongested) =>
        this.#report({ type: `${side}.${isCongested ? 'congested' : 'relieved'}` }),
      onRejected: (typeUrl, nonce, reason) => this.#report({ type: 'resources.rejected', typeUrl, nonce, reason }),
      ...(this.#environment.recordsMessages && {
        passed: (to, typeUrl, nonce) =>
          this.#report({ type: to === 'upstream' ? 'request.forwarded' : 'response.forwarded', typeUrl, nonce }),
      }),
      onDropped: (typeUrl) => this.#environment.log.error('message.unclaimed', { 'xds.type': typeUrl }),
    };
  }

  #reportLost(code: string, reason: string, retryAfterMs = 0): void {
    const { activity } = this.#environment;
    if (!this.#stopSignal.aborted) {
      activity.upstreamEnds[code === 'CANCELLED' ? 'cancelled' : 'error']++;
      activity.trouble = `${code}: ${reason}`;
    }
    this.#report({ type: 'upstream.lost', code, reason, retryAfterMs });
  }

  #subscriptions(): InternalSubscription[] {
    const { trustBundles, nameTables } = this.#environment;
    return [
      ...(nameTables === undefined ? [] : [{ typeUrl: nameTableType, receive: takeNames(nameTables) }]),
      ...(trustBundles
        ? [{ typeUrl: proxyConfigType, receive: this.#takeBundle, nodeMetadata: () => this.#certificateMetadata() }]
        : []),
    ];
  }

  readonly #takeBundle: InternalSubscription['receive'] = (value, acknowledge) => {
    this.#bundle = undefined;
    if (rootsIn(value).length === 0) {
      acknowledge();
      return;
    }
    const bundle = parseBundle(value);
    if (bundle === undefined) {
      this.#refuseBundle(acknowledge, 'trust bundle contains no valid certificate');
      return;
    }
    if (this.#isVerified) this.#environment.receivedRoots?.update(bundle.roots);
    this.#bundle = { hash: bundle.hash, acknowledge };
    this.#environment.storeBundle?.(value);
    this.#report({ type: 'bundle.received', ...bundle });
  };

  /** A control plane that sends no roots does not support the report. */
  reportCertificate(serialNumber: string): void {
    this.#certificate = serialNumber;
    this.#relay?.repeatAcknowledgement(proxyConfigType);
  }

  /** Sent after Envoy's first request for listeners, which identifies the workload. */
  reportHealth({ healthy, message }: ProbedHealth): void {
    this.#health = { healthy, message };
    if (this.#relay?.hasSubscribed === true) this.#sendHealth();
  }

  #sendHealth(): void {
    if (this.#health === null) return;
    const { healthy, message } = this.#health;
    this.#relay?.send({ typeUrl: healthType, ...(!healthy && { refusal: message || 'workload is not ready' }) });
  }

  #certificateMetadata(): Readonly<Record<string, string>> | undefined {
    return this.#certificate === '' ? undefined : { CERTIFICATE_SERIAL_NUMBER: this.#certificate };
  }

  respondToBundle(hash: string, refusal: string | undefined): void {
    if (this.#bundle?.hash !== hash) return;
    const { acknowledge } = this.#bundle;
    if (refusal === undefined) acknowledge();
    else this.#refuseBundle(acknowledge, refusal);
  }

  #refuseBundle(acknowledge: (refusal?: string) => void, reason: string): void {
    this.#environment.log.warn('bundle.rejected', { code: 'TRUST_BUNDLE_INVALID', reason });
    acknowledge(reason);
  }

  end(): void {
    for (const id of this.#pullSecrets) this.#forgetPullSecret(id);
    this.#relay?.stop();
    this.#connection?.close();
  }
}

function takeNames(nameTables: (table: Uint8Array) => Promise<void>): InternalSubscription['receive'] {
  return (value, acknowledge) => {
    nameTables(value).then(
      () => acknowledge(),
      (error: unknown) => acknowledge(explainInOneLine(error)),
    );
  };
}
