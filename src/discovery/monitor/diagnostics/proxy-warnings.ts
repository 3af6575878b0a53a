import { type Config, configKeyText, fieldText } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { EnvoyFilter, EnvoyPatch } from '../../../model/kinds/envoy-filter/envoy-filter.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { NodeType } from '../../../model/node/proxy.ts';
import { LabelIndex } from '../../../model/services/label-match.ts';
import { patchSetOf, patchStatus, wasTried } from '../../../networking/index.ts';
import type { PatchSet } from '../../../networking/patches/patch-set.ts';
import { parseCredentialName } from '../../../networking/secrets/credential-name.ts';
import type { ConfigWarning } from '../../references/config-warning.ts';
import { absentCredentialText, locateCredential } from '../../references/gateways/credentials.ts';
import {
  hasOtherDelivery,
  otherTypeText,
  typeWithoutContext,
  unappliedText,
} from '../../references/policies/unapplied-patches.ts';
import type { FinderInput } from './find-diagnostics.ts';
import { unservedCredentials } from './unserved-credentials.ts';

export interface ProxyWarning extends ConfigWarning {
  /** Set if other replicas may have other results. */
  readonly isOfReplica?: true;
  /** Set if the object's status must not contain the warning, because it would disclose information to the object's author. */
  readonly isHidden?: true;
}

type ProxySources = Pick<FinderInput, 'context' | 'configs' | 'proxies'>;

/** Yields `undefined` for each item without a warning. */
export function* findProxyWarnings(sources: ProxySources): Generator<ProxyWarning | undefined> {
  yield* absentCredentials(sources);
  yield* patchesWithoutEffect(sources);
  yield* patchesOfOtherProxies(sources);
  yield* ignoredByGrpc(sources);
}

/** Reports only objects that the gateway may access. */
function* absentCredentials({ configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  for (const unservedCredential of unservedCredentials(proxies)) {
    yield undefined;
    if (unservedCredential?.cause !== 'absent') continue;
    const credentialName = parseCredentialName(unservedCredential.name, unservedCredential.namespace)!;
    for (const { gateway, index, field, isVisibleToAuthor } of unservedCredential.users) {
      const credentialLocation = locateCredential(gateway, index, field, configs);
      if (credentialLocation === undefined) continue;
      yield {
        ...{ code: 'CREDENTIAL_NOT_FOUND', ...credentialLocation },
        message: absentCredentialText(
          `${credentialName.kind} ${credentialName.namespace}/${credentialName.name}`,
          'create it, or correct the name',
        ),
        ...(!isVisibleToAuthor && { isHidden: true }),
      };
    }
  }
}

function* patchesWithoutEffect({ context, configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  const waitingPatches = new Map<EnvoyPatch, { readonly config: Config<EnvoyFilter>; readonly index: number }>();
  for (const config of configs.EnvoyFilter) {
    yield undefined;
    for (const [index, patch] of config.spec.configPatches.entries()) {
      const { isApplied, problem } = patchStatus(patch);
      // This problem applies to all replicas.
      if (problem !== undefined) yield patchWarning(config, index, `cannot be applied at a proxy: ${problem}`);
      else if (!isApplied && wasTried(patch) && !hasOtherDelivery(patch)) waitingPatches.set(patch, { config, index });
    }
  }
  if (waitingPatches.size === 0) return;
  const counts = new Map<EnvoyPatch, number>();
  const appliedPatchesBySet = new Map<unknown, ReadonlySet<EnvoyPatch>>();
  for (const servedProxy of proxies) {
    yield undefined;
    const set = patchSetOf(servedProxy.shape, servedProxy.context);
    if (set === undefined) continue;
    const appliedPatches =
      appliedPatchesBySet.get(set) ??
      new Set(writtenPatches(set).filter((writtenPatch) => waitingPatches.has(writtenPatch)));
    appliedPatchesBySet.set(set, appliedPatches);
    for (const patch of appliedPatches) counts.set(patch, (counts.get(patch) ?? 0) + 1);
    // Responses to the latest change are not generated yet.
    if (servedProxy.context !== context) for (const patch of appliedPatches) waitingPatches.delete(patch);
  }
  for (const [patch, { config, index }] of waitingPatches) {
    const count = counts.get(patch);
    if (count === undefined) continue;
    const proxiesText = `the ${count} connected ${count === 1 ? 'proxy' : 'proxies'} that it is for`;
    yield { ...patchWarning(config, index, unappliedText(proxiesText)), isOfReplica: true };
  }
}

/** Finds patches for sidecars in objects that select only gateways, and vice versa. */
function* patchesOfOtherProxies({ context, configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  const proxiesByNamespace = new Map<string, LabelIndex<ConnectedProxy>>();
  const candidates = configs.EnvoyFilter.filter(
    ({ spec: { workloadSelector = {}, targetRefs = [], configPatches } }) =>
      Object.keys(workloadSelector).length > 0 &&
      targetRefs.length === 0 &&
      configPatches.some(({ match }) => match.context !== 'ANY'),
  );
  if (candidates.length === 0) return;
  let count = 0;
  for (const { shape } of proxies) {
    yield undefined;
    for (const namespace of new Set(['', shape.configNamespace])) {
      const index = proxiesByNamespace.get(namespace) ?? new LabelIndex<ConnectedProxy>();
      proxiesByNamespace.set(namespace, index);
      index.put(String(count++), { labels: shape.labels, type: shape.type });
    }
  }
  for (const config of candidates) {
    yield undefined;
    const { workloadSelector = {}, configPatches } = config.spec;
    const namespace = config.namespace === context.mesh.rootNamespace ? '' : config.namespace;
    const selectedProxies = proxiesByNamespace.get(namespace)?.selectedBy(workloadSelector) ?? [];
    const types = new Set(selectedProxies.map(({ type }) => type));
    for (const [index, patch] of configPatches.entries()) {
      const otherType = typeWithoutContext(patch, types);
      if (otherType === undefined) continue;
      const text = otherTypeText(patch, index, otherType, 'connected proxies');
      yield { code: 'PATCH_NOT_APPLIED', config, ...text, isOfReplica: true };
    }
  }
}

interface ConnectedProxy {
  readonly labels: Readonly<Record<string, string>>;
  readonly type: NodeType;
}

function writtenPatches({ patchesByTarget }: PatchSet): EnvoyPatch[] {
  return [...patchesByTarget.values()].flat().map(({ configuredPatch }) => configuredPatch);
}

function patchWarning(config: Config<EnvoyFilter>, index: number, message: string): ProxyWarning {
  return { code: 'PATCH_NOT_APPLIED', config, field: `spec.configPatches[${index}]`, message };
}

const maxTexts = 5;

/** Fields that connected proxyless clients ignore or apply differently. gRPC itself does not report them. */
function* ignoredByGrpc({ configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  const limitationsByField = new Map<string, { readonly warnedField: WarnedField; readonly texts: Set<string> }>();
  const objects = new Map<KindName, ReadonlyMap<string, Config>>();
  for (const { grpcLimitations = [] } of proxies) {
    yield undefined;
    for (const { origins, text } of grpcLimitations) {
      for (const { key, path = ['spec'] } of origins) {
        const config = objectOf(key.kind as KindName, configKeyText(key), configs, objects);
        if (config === undefined) continue;
        const field = fieldText(path);
        const fieldLimitations = limitationsByField.get(`${configKeyText(key)} ${field}`) ?? {
          warnedField: { config, field },
          texts: new Set(),
        };
        limitationsByField.set(`${configKeyText(key)} ${field}`, fieldLimitations);
        fieldLimitations.texts.add(text);
      }
    }
  }
  for (const { warnedField, texts } of limitationsByField.values()) {
    const omittedTexts = texts.size > maxTexts ? [`and ${texts.size - maxTexts} more`] : [];
    const message = `connected gRPC programs have no proxy: ${[...[...texts].slice(0, maxTexts), ...omittedTexts].join('; ')}`;
    yield { code: 'GRPC_NOT_SUPPORTED', ...warnedField, message };
  }
}

type WarnedField = Pick<ProxyWarning, 'config' | 'field'>;

function objectOf(
  kind: KindName,
  key: string,
  configs: ConfigSet,
  objects: Map<KindName, ReadonlyMap<string, Config>>,
): Config | undefined {
  const objectsOfKind =
    objects.get(kind) ?? new Map((configs[kind] ?? []).map((config) => [configKeyText(config), config]));
  objects.set(kind, objectsOfKind);
  return objectsOfKind.get(key);
}
