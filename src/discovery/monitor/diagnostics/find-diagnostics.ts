/** Inputs and output of the finders of diagnostics. */
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Proxy } from '../../../model/node/proxy.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Limitation } from '../../../networking/grpc/limitation.ts';
import type { WarningCode } from '../../../runtime/errors.ts';
import type { CredentialReading } from '../../push/mesh-resources.ts';

/** A connected proxy and the context that it is served from. */
export interface ServedProxy {
  readonly proxy: Proxy;
  readonly shape: ProxyShape;
  readonly context: PushContext;
  /** For a proxyless gRPC client or server: configured features that gRPC does not support. */
  readonly grpcLimitations?: readonly Limitation[];
  /** State of the named credential for this client; `undefined`: as in the context. */
  credentialReading?(name: string): CredentialReading | undefined;
}

export interface FinderInput {
  readonly context: PushContext;
  readonly configs: ConfigSet;
  readonly proxies: Iterable<ServedProxy>;
  /** Unreadable configuration files, with the reason. */
  readonly unreadable: ReadonlyMap<string, string>;
  /** Parts of Gateway API objects without effect, with the reason. */
  readonly translationProblems: Iterable<Problem>;
}

/** Subject of a diagnostic, in addition to its key. */
export interface DiagnosticSubject {
  /** The proxy, if the diagnostic concerns exactly one. */
  readonly proxy?: string;
  /** Keys (`Kind/namespace/name`) of objects that take effect only in part; their status reports it. */
  readonly objects?: readonly string[];
  readonly code?: WarningCode;
  /** Field of the first object. */
  readonly field?: string;
  /** The other object involved. */
  readonly other?: { readonly object: string; readonly field?: string };
  /** Another replica may have different information: statuses report it only if no other replica serves proxies. */
  readonly isOfReplica?: true;
}

export type NoteDiagnostic = (key: string, message: string, subject?: DiagnosticSubject) => void;

/** Yields after each checked item, so that the caller can let other tasks run. */
export type FindDiagnostics = (sources: FinderInput, note: NoteDiagnostic) => Iterable<void>;

/** Kinds that restrict access to workloads. */
export const policyKinds = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'] as const;

export type PolicyKind = (typeof policyKinds)[number];
