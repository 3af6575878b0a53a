/** The immutable envelope of every configuration object, from any source. */
export interface Config<Spec = unknown> {
  readonly kind: string;
  /** `group/version` as written. Objects are identified by group and kind; all versions of a kind are equivalent. */
  readonly apiVersion: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Changes with the content; assigned by the store. */
  readonly resourceVersion: string;
  /** Milliseconds since the Unix epoch. Older objects win conflicts. */
  readonly creationTimestamp: number;
  /** Assigned by the API server, like `uid`; absent for other sources. */
  readonly generation?: number;
  /** A recreated object has a different `uid`. */
  readonly uid?: string;
  /** The object has a deletion timestamp. */
  readonly isEnding?: true;
  readonly spec: Spec;
  /** Only the health of a WorkloadEntry is read from it. */
  readonly status?: unknown;
  readonly source?: SourcePosition;
  /** Sources of each part of a generated object, by path in the spec (`http[2]`). */
  readonly partOrigins?: Readonly<Record<string, readonly Origin[]>>;
  /** Set on a placeholder for a rejected object without an earlier valid version (refused.ts). */
  readonly standsFor?: PlaceholderInfo;
  /**
   * The namespace exceeds PILOT_MAX_ENDPOINTS_PER_NAMESPACE, so the endpoints of this ServiceEntry or Service are ignored. Set by the control
   * plane.
   */
  readonly isWithoutEndpoints?: true;
  /** The paths of this Ingress respond with 503, because its namespace has too many. Set by the control plane. */
  readonly isClosed?: true;
  /** The control plane generated the object, possibly from several namespaces. */
  readonly generatedFrom?: 'Ingress';
}

export interface PlaceholderInfo {
  /** Kind of the rejected object; its placeholder may have another kind. */
  readonly kind: string;
  readonly objectName: string;
  /** Absent if the rejected object cannot be identified. Any object of the same file may then be an earlier version of it. */
  readonly key?: ConfigKey;
  /** If false, the placeholder applies to its whole namespace, and narrower policies apply as well. */
  readonly isScopeKnown: boolean;
  /** The end of a message, such as `every request to the workloads of namespace shop is refused`. */
  readonly effect: string;
  /** {@link effect} if the namespace is the root namespace, so that the placeholder applies to the whole mesh. */
  readonly effectInRoot: string;
}

export interface SourcePosition {
  readonly file: string;
  /** 1-based line of the document's start, or of a List item. 0 if `file` is the address of a source such as `xds://host:15010`. */
  readonly line: number;
  /** Path of an item of a List, such as `items[3]`. */
  readonly item?: string;
}

export interface ConfigKey {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export function configKeyText(key: ConfigKey): string {
  return `${key.kind}/${key.namespace}/${key.name}`;
}

export function configKeyOf(config: Config): ConfigKey {
  return { kind: config.kind, namespace: config.namespace, name: config.name };
}

export function parseConfigKey(text: string): ConfigKey {
  const [kind = '', namespace = '', ...name] = text.split('/');
  return { kind, namespace, name: name.join('/') };
}

/** Oldest first, then by name and namespace: the order of everything derived from configuration. */
export function compareAge(a: Config, b: Config): number {
  return (
    a.creationTimestamp - b.creationTimestamp || compareText(a.name, b.name) || compareText(a.namespace, b.namespace)
  );
}

/** Compares code units, independent of the locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export interface Origin {
  readonly key: ConfigKey;
  /** Fields from the document's root; absent for the object as a whole. */
  readonly path?: readonly (string | number)[];
}

export function fieldText(path: readonly (string | number)[]): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('');
}
