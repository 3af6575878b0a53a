import { type DescMessage, fromBinary, type Message, type MessageShape, toBinary } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { identityText, WeakValues } from '../../model/collections/weak-values.ts';
import { type Config, configKeyOf } from '../../model/config/config.ts';
import { type Re2Expression, re2Expression } from '../../model/fields/re2.ts';
import type {
  EnvoyFilter,
  EnvoyPatch,
  PatchContext,
  PatchTarget,
} from '../../model/kinds/envoy-filter/envoy-filter.ts';
import { patchValue } from '../../model/kinds/envoy-filter/envoy-filter.value.ts';
import type { NodeType } from '../../model/node/proxy.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ActivePatch } from './active-patch.ts';
import { PatchFailure } from './merge-messages.ts';
import { recordAttempted } from './status.ts';
import { withoutWasm } from './without-wasm.ts';

export type ListenerContext = Exclude<PatchContext, 'ANY'>;

/** Immutable. Equal sets share one object while it is referenced, so results can be cached by identity. */
export interface PatchSet {
  readonly nodeType: NodeType;
  /** EnvoyFilters whose Wasm code is withheld, because the proxy's Envoy cannot run it. */
  readonly withheldFrom: readonly Config<EnvoyFilter>[];
  /** Returns the patches of a target for its generator, and records that they were tried. */
  takePatches(target: PatchTarget): readonly ActivePatch[];
  readonly patchesByTarget: ReadonlyMap<PatchTarget, readonly ActivePatch[]>;
}

export function patchSetOf(shape: ProxyShape, push: PushContext): PatchSet | undefined {
  const { envoyFilters } = push.policiesFor(shape);
  if (envoyFilters.length === 0) return undefined;
  const sets = setsOfLists(envoyFilters);
  let set = sets.get(shape);
  if (set === undefined) {
    set = buildPatchSet(envoyFilters, shape);
    sets.set(shape, set);
  }
  return set;
}

export function haveSamePatches(a: PatchSet | undefined, b: PatchSet | undefined, target: PatchTarget): boolean {
  if (a === b) return true;
  const [patchesOfA, patchesOfB] = [a, b].map((set) =>
    (set?.patchesByTarget.get(target) ?? []).map(({ patch }) => patch),
  );
  return sameItems(patchesOfA!, patchesOfB!);
}

/** The inner keys are weakly held shapes, because clients choose the properties that patches match. */
const setsOfLists = memoizeByObject((_: readonly Config[]) => new WeakMap<ProxyShape, PatchSet>());

/** Sets that are still referenced, by their objects. Lists with the same objects share a set. */
const cachedSets = new WeakValues<PatchSet>();

function buildPatchSet(filters: readonly Config<EnvoyFilter>[], shape: ProxyShape): PatchSet {
  const { type, runsWasm } = shape;
  const activePatches = filters.flatMap((filter) =>
    filter.spec.configPatches.map((patchSpec, index) => ({
      configuredPatch: patchSpec,
      filter,
      origin: { key: configKeyOf(filter), path: ['spec', 'configPatches', index] },
    })),
  );
  const activePatchIndexes = [...activePatches.keys()].filter((patchIndex) =>
    isForProxy(activePatches[patchIndex]!.configuredPatch, shape),
  );
  const text = `${type} ${runsWasm} ${identityText(filters)} ${activePatchIndexes.length === activePatches.length ? 'all' : activePatchIndexes.join()}`;
  const cachedSet = cachedSets.get(text);
  if (cachedSet !== undefined) return cachedSet;
  const withheldFrom = new Set<Config<EnvoyFilter>>();
  const appliedPatches = activePatchIndexes.flatMap((patchIndex) => {
    const writtenPatch = activePatches[patchIndex]!;
    const { patch } = runsWasm ? { patch: writtenPatch.configuredPatch } : withoutWasm(writtenPatch.configuredPatch);
    if (patch !== writtenPatch.configuredPatch) withheldFrom.add(writtenPatch.filter);
    return patch === undefined ? [] : [{ ...writtenPatch, patch }];
  });
  const patchesByTarget = Map.groupBy(
    appliedPatches.map((appliedPatch, index): ActivePatch => ({ ...appliedPatch, index })),
    ({ patch }) => patch.applyTo,
  );
  const set: PatchSet = {
    nodeType: type,
    withheldFrom: [...withheldFrom],
    takePatches: (target) => {
      const patches = patchesByTarget.get(target) ?? [];
      recordAttempted(patches);
      return patches;
    },
    patchesByTarget,
  };
  cachedSets.set(text, set);
  return set;
}

/** A condition on version or metadata does not match a node that reports none. */
function isForProxy(patch: EnvoyPatch, { type, matchedMetadata }: ProxyShape): boolean {
  const { match } = patch;
  const { proxyVersion = '', metadata = {} } = match.proxy ?? {};
  if (match.context === 'WAYPOINT') return false;
  if (match.context !== 'ANY' && (match.context === 'GATEWAY') !== (type === 'router')) return false;
  const version = matchedMetadata.ISTIO_VERSION;
  if (proxyVersion !== '' && (typeof version !== 'string' || !expressionOf(patch).hasMatchIn(version))) return false;
  return Object.entries(metadata).every(([key, value]) => matchedMetadata[key] === value);
}

/** The expression may match anywhere in the version. */
const expressionOf = memoizeByObject(
  ({ match }: EnvoyPatch): Re2Expression => re2Expression(match.proxy?.proxyVersion ?? ''),
);

export function matchesPlace({ patch }: ActivePatch, context: ListenerContext): boolean {
  return patch.match.context === 'ANY' || patch.match.context === context;
}

const values = new WeakMap<EnvoyPatch, Message>();

/**
 * Returns a cached message, which must not be modified.
 *
 * @throws PatchFailure if the value does not have the type
 */
export function messageOfPatch<Desc extends DescMessage>(schema: Desc, { patch }: ActivePatch): MessageShape<Desc> {
  const cachedValue = values.get(patch);
  if (cachedValue !== undefined) return cachedValue as MessageShape<Desc>;
  const decodedValue = patchValue(patch);
  if (decodedValue === undefined) throw new PatchFailure('has no value');
  if (E.isLeft(decodedValue)) throw new PatchFailure(decodedValue.left);
  const { schema: wideSchema, message } = decodedValue.right;
  const value = fromBinary(schema, toBinary(wideSchema, message));
  values.set(patch, value);
  return value;
}

export function routePatches(patches: PatchSet): readonly ActivePatch[] {
  return [
    ...patches.takePatches('ROUTE_CONFIGURATION'),
    ...patches.takePatches('VIRTUAL_HOST'),
    ...patches.takePatches('HTTP_ROUTE'),
  ];
}

export function isMerge({ patch: { operation } }: ActivePatch): boolean {
  return operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST';
}
