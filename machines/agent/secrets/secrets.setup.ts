import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { OutputWritten } from '../grpc-bootstrap-protocol.ts';
import { peer } from '../peers.ts';
import type {
  CertificateServed,
  OutputFailed,
  OutputWrite,
  RootParts,
  SdsAcknowledged,
  SdsOrder,
  SdsRejected,
  SdsReport,
  SdsSubscribed,
  SdsUnsubscribed,
  SecretExpired,
  SecretObtained,
  SecretRefresh,
  SecretReport,
  SecretsFailed,
  SecretsReady,
  SecretsStart,
  SecretTaint,
  SecretUnavailable,
  TrustBundleReceived,
  TrustBundleServed,
} from '../secrets-protocol.ts';
import { type IdentitySettings, provesIdentity } from '../settings.ts';
import {
  type HeldSecret,
  identityName,
  isAcknowledged,
  isDistributed,
  rootsName,
  secretFilesOf,
} from './held-secrets.ts';
import { type SecretInput, type SecretSource, secretMachine } from './secret.machine.ts';

export interface SecretsInput extends IdentitySettings {
  /** Whether to obtain the expected secrets before the hand-over, because Envoys subscribe immediately. */
  obtainsFirst?: boolean;
}

export interface SecretsContext extends SecretsInput {
  held: HeldSecret[];
  started: number;
  parts: RootParts;
  /** Hash of the last certificate's root; empty without one. */
  root: string;
  /** Certificates must not have these roots. */
  tainted: readonly string[];
  /** Certificate that is served as soon as Envoy trusts its authorities; `null` without one. */
  deferredCertificate: Pick<HeldSecret, 'version' | 'serialNumber'> | null;
  /** Serial number of the last certificate that was reported as served. */
  reportedCertificate: string;
  /** Version of the control plane's last roots; empty until they are reported as served. */
  reportedBundle: string;
  failures: number;
  /** The files of OUTPUT_CERTS are written again after this time; 0 if the last write succeeded. */
  outputPauseMs: number;
}

/** `another agent` serves the secrets of another identity. */
export type ServerFound = 'nobody' | 'a server' | 'another agent';

const probeLimitMs = 3_000;
const openLimitMs = 10_000;
/** The socket is opened again after 1, 2, 4, 8 and 16 s. */
const maxOpenFailures = 5;
const firstPauseMs = 1_000;
const minOutputPauseMs = 500;
const maxOutputPauseMs = 30_000;
/** Limits the wait for the acknowledgement of roots: an unresponsive Envoy must not delay the certificates of other Envoys. */
const trustLimitMs = 10_000;
/** Limits what a control plane can make Envoy request. */
const maxSecrets = 200;

export const noRootParts: RootParts = { authorities: '', bundle: '' };

export const secretsSetup = setup({
  types: {
    context: {} as SecretsContext,
    input: {} as SecretsInput,
    events: {} as SecretsStart | SdsReport | SecretReport | TrustBundleReceived | OutputFailed | OutputWritten,
    children: {} as { probe: 'probeServer'; server: 'serveSecrets'; output: 'writeOutput' } & Record<
      `secret-${number}`,
      'secret'
    >,
  },
  actors: {
    probeServer: promiseEffect<ServerFound, { socket: string }>('probeServer'),
    serveSecrets: callbackEffect<SdsOrder, { socket: string }>('serveSecrets'),
    writeOutput: callbackEffect<OutputWrite, undefined>('writeOutput'),
    secret: secretMachine,
  },
  delays: {
    detectLimit: probeLimitMs,
    openLimit: openLimitMs,
    pause: ({ context }) => firstPauseMs * 2 ** (Math.min(context.failures, maxOpenFailures) - 1),
    trustLimit: trustLimitMs,
    outputPause: ({ context }) => context.outputPauseMs,
  },
  guards: {
    isAnotherServer: (_, { found }: { found: ServerFound }) => found === 'a server',
    isAnotherAgent: (_, { found }: { found: ServerFound }) => found === 'another agent',
    isRetryLimitReached: ({ context }) => context.failures >= maxOpenFailures,
    awaitsRoots: ({ context }, event: SecretObtained) => precedesRoots(event, context),
    canDistribute: ({ context }, event: SecretObtained) => !precedesRoots(event, context),
    rootsAreServed: ({ context }) => rootsInForce(context).parts.authorities === context.parts.authorities,
    rootsAreTrusted: ({ context }) => areRootsTrusted(context),
    obtainsFirst: ({ context }) => context.obtainsFirst === true,
    hasOwnSecrets: ({ context: { held } }) => held.every(({ version }) => version !== ''),
    isKnownSecret: ({ context }, { name }: SdsSubscribed) => context.held.some((one) => one.name === name),
    canAddSecret: ({ context }, { name }: SdsSubscribed) =>
      secretFilesOf(name) !== undefined && context.held.length < maxSecrets,
    isFile: (_, { name }: SdsUnsubscribed) => secretFilesOf(name) !== undefined,
  },
  actions: {
    reportReady: sendParent(
      (_, params: Omit<SecretsReady, 'type'>): SecretsReady => ({ type: 'secrets.ready', ...params }),
    ),
    reportFailed: sendParent(
      (_, params: Omit<SecretsFailed, 'type'>): SecretsFailed => ({ type: 'secrets.failed', ...params }),
    ),
    reportOutput: sendParent({ type: 'output.written' } satisfies OutputWritten),
    openSocket: sendTo('server', { type: 'sds.open' }),
    countFailure: assign({ failures: ({ context }) => Math.min(context.failures + 1, maxOpenFailures) }),
    resetFailures: assign({ failures: 0 }),
    lengthenOutputPause: assign({
      outputPauseMs: ({ context }) => Math.min(maxOutputPauseMs, Math.max(minOutputPauseMs, context.outputPauseMs * 2)),
    }),
    resetOutputPause: assign({ outputPauseMs: 0 }),
    /** Each Envoy requests the workload's certificate and roots, so they are obtained early. */
    addOwnSecrets: enqueueActions(({ context, enqueue }) => {
      if (!provesIdentity(context)) return;
      const { source, certificateDirectory, rootDirectory, parts, grace } = context;
      const identitySecrets = [
        { name: identityName, source, directory: certificateDirectory },
        { name: rootsName, source: source === 'files' ? 'files' : 'roots', directory: rootDirectory },
      ] as const;
      identitySecrets.forEach(({ name, directory, ...from }, number) => {
        const input = { name, source: from.source as SecretSource, directory, number, grace, parts };
        enqueue.spawnChild('secret', { id: `secret-${number}`, input });
      });
      enqueue.assign({
        held: identitySecrets.map(({ name }, number) => newHeldSecret(name, number)),
        started: identitySecrets.length,
      });
    }),
    addSecret: enqueueActions(({ context, enqueue }, { name }: SdsSubscribed) => {
      const number = context.started;
      const input: SecretInput = {
        name,
        source: 'files',
        directory: secretFilesOf(name)?.directory ?? '',
        number,
        grace: context.grace,
        parts: noRootParts,
      };
      enqueue.spawnChild('secret', { id: `secret-${number}`, input });
      enqueue.assign({
        held: [...context.held, { ...newHeldSecret(name, number), isSubscribed: true, wasSubscribed: true }],
        started: number + 1,
      });
    }),
    removeSecret: enqueueActions(({ context, enqueue }, { name }: SdsUnsubscribed) => {
      const one = context.held.find((heldSecret) => heldSecret.name === name);
      if (one === undefined) return;
      enqueue.stopChild(one.actor);
      enqueue.assign({ held: context.held.filter((heldSecret) => heldSecret !== one) });
    }),
    recordSubscribed: assign({
      held: ({ context }, { name }: SdsSubscribed) =>
        withChange(context.held, { name, isSubscribed: true, wasSubscribed: true, acknowledged: '' }),
    }),
    recordUnsubscribed: assign({
      held: ({ context }, { name }: SdsUnsubscribed) =>
        withChange(context.held, { name, isSubscribed: false, acknowledged: '', refused: '' }),
    }),
    recordAcknowledged: assign({
      held: ({ context }, { name, version }: SdsAcknowledged) =>
        withChange(context.held, { name, acknowledged: version, refused: '' }),
    }),
    recordRejected: assign({
      held: ({ context }, { name, reason }: SdsRejected) => withChange(context.held, { name, refused: reason }),
    }),
    recordUnavailable: assign({
      held: ({ context }, { name, reason }: SecretUnavailable) => withChange(context.held, { name, lacking: reason }),
    }),
    recordExpired: assign({
      held: ({ context }, { name }: SecretExpired) => withChange(context.held, { name, version: '', acknowledged: '' }),
    }),
    recordObtained: assign(({ context }, { name, version, serialNumber, parts, root }: SecretObtained) => {
      const isDifferentVersion = context.held.some(
        (heldSecret) => heldSecret.name === name && heldSecret.version !== version,
      );
      const change = {
        name,
        version,
        serialNumber,
        parts,
        lacking: '',
        ...(isDifferentVersion && { acknowledged: '' }),
      };
      return { held: withChange(context.held, change), ...(name === identityName && { root }) };
    }),
    rejectName: sendTo('server', ({ context }, { name }: SdsSubscribed): SdsOrder => {
      const isFile = secretFilesOf(name) !== undefined;
      const reason = isFile ? `limit of ${context.held.length} secrets reached` : 'not a secret name';
      return { type: 'sds.reject', name, reason };
    }),
    serveSecret: sendTo(
      'server',
      (_, { name, version }: SecretObtained): SdsOrder => ({ type: 'sds.serve', name, version }),
    ),
    withdrawSecret: sendTo('server', (_, { name }: SecretExpired): SdsOrder => ({ type: 'sds.withdraw', name })),
    deferCertificate: enqueueActions(
      ({ context, enqueue }, { version, serialNumber, authorities, root }: SecretObtained) => {
        const nextParts = { ...context.parts, authorities };
        enqueue.assign({ deferredCertificate: { version, serialNumber }, parts: nextParts, root });
        if (authorities === context.parts.authorities) return;
        enqueue.sendTo(rootsInForce(context).actor, { type: 'secret.refresh', parts: nextParts });
      },
    ),
    serveDeferredCertificate: enqueueActions(({ context: { held, deferredCertificate }, enqueue }) => {
      if (deferredCertificate === null) return;
      enqueue.sendTo('server', { type: 'sds.serve', name: identityName, version: deferredCertificate.version });
      const change = { name: identityName, ...deferredCertificate, acknowledged: '', lacking: '' };
      enqueue.assign({ held: withChange(held, change), deferredCertificate: null });
    }),
    refreshRoots: sendTo(
      ({ context }) => rootsInForce(context).actor,
      ({ context }): SecretRefresh => ({ type: 'secret.refresh', parts: context.parts }),
    ),
    storeBundle: (_, _params: TrustBundleReceived) => {},
    /**
     * A bundle with the root of the last certificate replaces the roots issued with that certificate, which are older and may include a root that was
     * removed since.
     */
    recordBundle: assign(({ context }, { hash, members }: TrustBundleReceived) => ({
      parts: { authorities: members.includes(context.root) ? '' : context.parts.authorities, bundle: hash },
      reportedBundle: '',
    })),
    reportTainted: enqueueActions(
      ({ context: { held, tainted: previous }, enqueue }, { tainted }: TrustBundleReceived) => {
        if (tainted.join() === previous.join()) return;
        enqueue.assign({ tainted });
        const identity = held.find(({ name }) => name === identityName);
        if (identity !== undefined)
          enqueue.sendTo(identity.actor, { type: 'secret.taint', roots: tainted } satisfies SecretTaint);
      },
    ),
    reportBundleServed: sendTo(
      peer('xds-proxy'),
      (_, { hash }: TrustBundleReceived): TrustBundleServed => ({ type: 'trust-bundle.served', hash }),
    ),
    /** Reports once per version. */
    reportBundleAcknowledged: enqueueActions(({ context, enqueue }) => {
      const { parts, reportedBundle } = context;
      const roots = rootsInForce(context);
      if (parts.bundle === '' || reportedBundle === parts.bundle) return;
      if (roots.parts.bundle !== parts.bundle || !isAcknowledged(roots)) return;
      enqueue.assign({ reportedBundle: parts.bundle });
      enqueue.sendTo(peer('xds-proxy'), { type: 'trust-bundle.served', hash: parts.bundle });
    }),
    /** Reports once per certificate; a root rotation waits for the report. */
    reportCertificateAcknowledged: enqueueActions(({ context: { held, reportedCertificate }, enqueue }) => {
      const identity = held.find(({ name }) => name === identityName);
      if (
        identity === undefined ||
        identity.serialNumber === '' ||
        identity.serialNumber === reportedCertificate ||
        !isDistributed(identity)
      )
        return;
      const { serialNumber } = identity;
      enqueue.assign({ reportedCertificate: serialNumber });
      enqueue.sendTo(peer('xds-proxy'), { type: 'certificate.served', serialNumber } satisfies CertificateServed);
    }),
    writeOutput: enqueueActions(({ context, enqueue }) => {
      const certificate = context.held.find(({ name }) => name === identityName)?.version ?? '';
      const roots = rootsInForce(context).version;
      if (!context.writesOutput || certificate === '' || roots === '') return;
      enqueue.sendTo('output', { type: 'output.write', certificate, roots });
    }),
  },
});

function newHeldSecret(name: string, number: number): HeldSecret {
  return {
    name,
    actor: `secret-${number}`,
    version: '',
    serialNumber: '',
    parts: noRootParts,
    isSubscribed: false,
    wasSubscribed: false,
    acknowledged: '',
    lacking: '',
    refused: '',
  };
}

function rootsInForce({ held }: SecretsContext): HeldSecret {
  return held.find(({ name }) => name === rootsName) ?? newHeldSecret(rootsName, 1);
}

function withChange(heldSecrets: readonly HeldSecret[], change: Partial<HeldSecret> & { name: string }): HeldSecret[] {
  return heldSecrets.map((heldSecret) => (heldSecret.name === change.name ? { ...heldSecret, ...change } : heldSecret));
}

function areRootsTrusted(context: SecretsContext): boolean {
  const roots = rootsInForce(context);
  return roots.version !== '' && roots.parts.authorities === context.parts.authorities && isAcknowledged(roots);
}

/** Whether Envoy may not yet trust the authorities of this certificate. */
function precedesRoots({ name, authorities }: SecretObtained, context: SecretsContext): boolean {
  if (name !== identityName || authorities === '') return false;
  return context.parts.authorities !== authorities || !areRootsTrusted(context);
}
