import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import type { ModuleFailed, ModuleFetched, ModuleReleased, ModuleRequired } from '../wasm-protocol.ts';
import type {
  BundleReceived,
  BundleRespond,
  CertificateReport,
  DownstreamEnd,
  HealthReport,
  StreamCode,
  StreamReport,
  UpstreamLost,
  XdsStreamOrder,
  XdsStreamReport,
} from '../xds-protocol.ts';
import { clearFailures, pauseAfter, type UpstreamCredential, type UpstreamFailures, withFailure } from './xds-pause.ts';

export interface XdsStreamInput {
  stream: number;
  protocol: 'sotw' | 'delta';
  /** Random, from 0 to 1; spreads the first backoff. */
  chance: number;
  failures: UpstreamFailures;
  /** Every Envoy of the workload has the certificate with this serial number; empty if unknown. */
  certificate: string;
  health: ProbedHealth | null;
}

export interface ProbedHealth {
  healthy: boolean;
  /** Reason if the workload is unhealthy; otherwise empty. */
  message: string;
}

interface XdsStreamContext extends XdsStreamInput {
  end: { code: StreamCode; reason: string };
  /** Roots with this hash are not acknowledged yet. */
  bundle: string;
}

/** Connecting and reading the credentials have a limit of 5 s each. */
export const dialLimitMs = 15_000;
/** A control plane to which a thousand agents reconnect serves them within a minute. */
export const responseLimitMs = 60_000;
/** The backoff is reset after the control plane has served for this time. */
const trialMs = 10_000;
/** Envoy's main thread was measured busy for 10 s. */
export const congestionLimitMs = 60_000;
/** Envoy acknowledges or rejects new roots within a second. */
export const bundleLimitMs = 30_000;
/** The client reads written messages within this time. */
export const endLimitMs = 10_000;

/** A server that rejects this client, permanently or temporarily, sends one of these codes. */
const rejectionCodes: ReadonlySet<StreamCode> = new Set([
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'UNIMPLEMENTED',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
]);

export const xdsStreamSetup = setup({
  types: {
    context: {} as XdsStreamContext,
    input: {} as XdsStreamInput,
    events: {} as XdsStreamOrder | StreamReport,
    children: {} as { downstream: 'downstream'; upstream: 'upstream' },
  },
  actors: {
    downstream: callbackEffect<DownstreamEnd, { stream: number }>('downstream'),
    upstream: callbackEffect<
      BundleRespond | CertificateReport | HealthReport | ModuleFetched | ModuleFailed,
      Pick<XdsStreamInput, 'stream' | 'protocol' | 'certificate' | 'health'> & { credential: UpstreamCredential }
    >('upstream'),
  },
  delays: {
    pause: ({ context }) => pauseAfter(context.failures, context.chance),
    connectLimit: dialLimitMs,
    responseLimit: responseLimitMs,
    trial: trialMs,
    congestionLimit: congestionLimitMs,
    bundleLimit: bundleLimitMs,
    endLimit: endLimitMs,
  },
  guards: {
    hasRecentFailure: ({ context }) => context.failures.count > 0,
    isPendingBundle: ({ context, event }) => 'hash' in event && event.hash === context.bundle,
  },
  actions: {
    recordFailure: assign({
      failures: ({ context }, params: { isRefusal: boolean; retryAfterMs: number }) =>
        withFailure(context.failures, params),
    }),
    resetFailures: assign({ failures: ({ context }) => clearFailures(context.failures) }),
    updateChance: assign({ chance: (_, params: { chance: number }) => params.chance }),
    recordEnd: assign({ end: (_, params: { code: StreamCode; reason: string }) => params }),
    recordBundle: assign({ bundle: (_, params: { hash: string }) => params.hash }),
    clearBundle: assign({ bundle: '' }),
    recordCertificate: assign({ certificate: (_, { serialNumber }: CertificateReport) => serialNumber }),
    reportCertificate: sendTo(
      'upstream',
      (_, { serialNumber }: CertificateReport): CertificateReport => ({
        type: 'certificate.report',
        serialNumber,
      }),
    ),
    recordHealth: assign({ health: (_, { healthy, message }: HealthReport) => ({ healthy, message }) }),
    reportHealth: sendTo('upstream', (_, order: HealthReport): HealthReport => order),
    requestModule: sendParent((_, order: ModuleRequired | ModuleReleased): XdsStreamReport => order),
    reportModule: sendTo('upstream', (_, report: ModuleFetched | ModuleFailed) => report),
    reportUnreachable: sendParent(
      ({ context }, params: { reason: string }): XdsStreamReport => ({
        type: 'upstream.failed',
        stream: context.stream,
        reason: params.reason,
        isRefusal: false,
        retryAfterMs: 0,
      }),
    ),
    reportLost: sendParent(
      ({ context }, { code, reason, retryAfterMs }: Omit<UpstreamLost, 'type'>): XdsStreamReport => ({
        type: 'upstream.failed',
        stream: context.stream,
        reason: `${code}: ${reason}`,
        isRefusal: rejectionCodes.has(code),
        retryAfterMs,
      }),
    ),
    reportServed: sendParent(({ context }): XdsStreamReport => ({ type: 'upstream.served', stream: context.stream })),
    reportEnded: sendParent(
      ({ context }, params: { reason: string }): XdsStreamReport => ({
        type: 'stream.ended',
        stream: context.stream,
        reason: params.reason,
      }),
    ),
    forwardBundle: sendParent(
      (_, { roots, hash, members, tainted }: Omit<BundleReceived, 'type'>): XdsStreamReport => ({
        type: 'trust-bundle.received',
        roots,
        hash,
        members,
        tainted,
      }),
    ),
    endDownstream: sendTo('downstream', ({ context }): DownstreamEnd => ({ type: 'downstream.end', ...context.end })),
    acknowledgeBundle: sendTo(
      'upstream',
      ({ context }): BundleRespond => ({ type: 'bundle.respond', hash: context.bundle, refusal: '' }),
    ),
    rejectBundle: sendTo(
      'upstream',
      ({ context }, params: { reason: string }): BundleRespond => ({
        type: 'bundle.respond',
        hash: context.bundle,
        refusal: params.reason,
      }),
    ),
  },
});
