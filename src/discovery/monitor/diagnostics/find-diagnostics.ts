/** What is looked at to find what is odd in the mesh. */
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Proxy } from '../../../model/node/proxy.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Limitation } from '../../../networking/grpc/limitation.ts';
import type { WarningCode } from '../../../runtime/errors.ts';
import type { CredentialReading } from '../../push/mesh-resources.ts';

/** A proxy that is connected, and what it is served from. */
export interface ServedProxy {
  readonly proxy: Proxy;
  readonly shape: ProxyShape;
  readonly context: PushContext;
  /** Of a gRPC client or server without a proxy: what objects configure and gRPC does not do. */
  readonly grpcLimitations?: readonly Limitation[];
  /** What is known of the object of a credential's name, for this client; absent or `undefined`: what the context has. */
  credentialReading?(name: string): CredentialReading | undefined;
}

export interface StatusSources {
  readonly context: PushContext;
  readonly configs: ConfigSet;
  readonly proxies: Iterable<ServedProxy>;
  /** Files of configuration that cannot be read, with the reason. */
  readonly unreadable: ReadonlyMap<string, string>;
  /** What of the Gateway API's objects has no effect, and why. */
  readonly translationProblems: Iterable<Problem>;
}

/** What a diagnostic is about, besides its key. */
export interface DiagnosticSubject {
  /** The proxy; absent if it is not about exactly one. */
  readonly proxy?: string;
  /** Keys (`Kind/namespace/name`) of the objects that take effect only in part: their status reports it. */
  readonly objects?: readonly string[];
  /** What kind of warning it is. */
  readonly code?: WarningCode;
  /** Field of the first object. */
  readonly field?: string;
  /** The other object that it is about. */
  readonly other?: { readonly object: string; readonly field?: string };
  /** Another replica may know that it is otherwise: statuses report it only if no other replica serves proxies. */
  readonly isOfReplica?: true;
}

export type NoteDiagnostic = (key: string, message: string, subject?: DiagnosticSubject) => void;

/** Yields after each thing that was looked at: whoever asks may let others have a turn there. */
export type FindDiagnostics = (sources: StatusSources, note: NoteDiagnostic) => Iterable<void>;

/** Kinds of what restricts access to workloads. */
export const policyKinds = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'] as const;

export type PolicyKind = (typeof policyKinds)[number];
