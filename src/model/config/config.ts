/** The envelope of every configuration object, whatever source it came from. Immutable once made. */
export interface Config<Spec = unknown> {
  readonly kind: string;
  /** `group/version` as written; kinds are told apart by group and kind, versions of one kind mean the same. */
  readonly apiVersion: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Changes whenever the content does; the store's, not the author's. */
  readonly resourceVersion: string;
  /** Milliseconds since the Unix epoch. Older objects win conflicts (spec/discovery.md §4.1). */
  readonly creationTimestamp: number;
  /** Counts the changes of the spec, as the API server of a cluster does; absent for objects of elsewhere. */
  readonly generation?: number;
  /** Told by the API server of a cluster: one that was deleted and made again under its name has another. Absent for objects of elsewhere. */
  readonly uid?: string;
  /** Somebody has told the API server to delete it: it is there until it has ended. */
  readonly isEnding?: true;
  readonly spec: Spec;
  /** The status as written; only a WorkloadEntry's health is read from it. */
  readonly status?: unknown;
  /** Where a person finds it. Absent for objects that did not come from a file. */
  readonly source?: SourcePosition;
  /**
   * Of an object that the control plane made of others: what its parts were written as, by their place in the spec
   * (`http[2]`). Absent for objects as people wrote them.
   */
  readonly madeOf?: Readonly<Record<string, readonly Origin[]>>;
  /** Set where this object stands in force for one that is refused and has no earlier version (refused.ts). */
  readonly standsFor?: StandsFor;
  /**
   * The services of its namespace have too many endpoints (PILOT_MAX_ENDPOINTS_PER_NAMESPACE): those of this object, which it lists or
   * selects, are ignored. Set by the control plane, for a ServiceEntry or Service.
   */
  readonly isWithoutEndpoints?: true;
  /** An Ingress whose paths respond with 503, because Ingresses of its namespace have too many. Set by the control plane. */
  readonly isClosed?: true;
  /** The control plane made the object from objects of this kind, of several namespaces. */
  readonly madeFrom?: 'Ingress';
}

/** What a stand-in says of itself (refused.ts). */
export interface StandsFor {
  /** Kind of the refused object; its stand-in may be of another kind. */
  readonly kind: string;
  /** `AuthorizationPolicy shop/web`, as far as its name could be read. */
  readonly object: string;
  /** Absent: nobody can tell which object it is, so that an earlier version of it may be another one of its file. */
  readonly key?: ConfigKey;
  /** Whether it is known whom the object is for. Of one for which that is not, narrower objects hold all the same. */
  readonly isScopeKnown: boolean;
  /** What is closed, as the end of a sentence: `every request to the workloads of namespace shop is refused`. */
  readonly effect: string;
  /** The same where the object's namespace is the root namespace: what it is for is the whole mesh. */
  readonly effectInRoot: string;
}

export interface SourcePosition {
  readonly file: string;
  /** 1-based line of the document's start; of an item of a List, its own. 0: `file` is the address of a source, as `xds://host:15010`. */
  readonly line: number;
  /** `items[3]`, of an item of a List. */
  readonly item?: string;
}

/** Names one object: what a push says has changed, and what a resource says it was made from. */
export interface ConfigKey {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** `Kind/namespace/name`: a map key, a log field. */
export function configKeyText(key: ConfigKey): string {
  return `${key.kind}/${key.namespace}/${key.name}`;
}

/** The key of an object. */
export function configKeyOf(config: Config): ConfigKey {
  return { kind: config.kind, namespace: config.namespace, name: config.name };
}

/** The reverse of {@link configKeyText}. */
export function parseConfigKey(text: string): ConfigKey {
  const [kind = '', namespace = '', ...name] = text.split('/');
  return { kind, namespace, name: name.join('/') };
}

/** Oldest first, then name, then namespace: the order of everything derived from configuration (§4.1). */
export function byAge(a: Config, b: Config): number {
  return (
    a.creationTimestamp - b.creationTimestamp || compareText(a.name, b.name) || compareText(a.namespace, b.namespace)
  );
}

/** Orders by code unit, the same on every machine whatever its locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Where in an object of configuration something was written. */
export interface Origin {
  readonly key: ConfigKey;
  /** Fields from the document's root down: `['spec', 'http', 2]`; absent: the object as a whole. */
  readonly path?: readonly (string | number)[];
}

/** The path of an origin as people write it: `spec.http[2].route`. */
export function fieldText(path: readonly (string | number)[]): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('');
}
