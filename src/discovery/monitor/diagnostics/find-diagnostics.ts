import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Proxy } from '../../../model/node/proxy.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Limitation } from '../../../networking/grpc/limitation.ts';
import type { WarningCode } from '../../../runtime/errors.ts';
import type { CredentialState } from '../../push/mesh-resources.ts';

export interface ServedProxy {
  readonly proxy: Proxy;
  readonly shape: ProxyShape;
  readonly context: PushContext;
  /** Configured features that gRPC does not support, for proxyless clients. */
  readonly grpcLimitations?: readonly Limitation[];
  /** `undefined` if the credential is as in the push context. */
  credentialReading?(name: string): CredentialState | undefined;
}

export interface FinderInput {
  readonly context: PushContext;
  readonly configs: ConfigSet;
  readonly proxies: Iterable<ServedProxy>;
  readonly unreadable: ReadonlyMap<string, string>;
  /** Gateway API fields without effect. */
  readonly translationProblems: Iterable<Problem>;
}

export interface DiagnosticSubject {
  /** Set if the diagnostic is about exactly one proxy. */
  readonly proxy?: string;
  /** These objects (`Kind/namespace/name`) take only partial effect. Their status contains the diagnostic. */
  readonly objects?: readonly string[];
  readonly code?: WarningCode;
  /** Field of the first object. */
  readonly field?: string;
  readonly other?: { readonly object: string; readonly field?: string };
  /** Set if other replicas may have other results. Statuses then contain the diagnostic only if no other replica serves proxies. */
  readonly isOfReplica?: true;
}

export type NoteDiagnostic = (key: string, message: string, subject?: DiagnosticSubject) => void;

/** Yields after each item, so that the caller can pause. */
export type FindDiagnostics = (sources: FinderInput, reportDiagnostic: NoteDiagnostic) => Iterable<void>;

export const policyKinds = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'] as const;

export type PolicyKind = (typeof policyKinds)[number];
