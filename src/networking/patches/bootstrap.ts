/**
 * What EnvoyFilters say of the proxy's own start (spec/discovery.md §8.9, BOOTSTRAP): merged into one message that the agent merges into
 * the bootstrap that it makes. The order of merging does not matter, so what the agent has need not be known here.
 */
import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { bootstrapPatchesName, bootstrapType } from '../../../machines/discovery/xds/ads-types.ts';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { patchValue } from '../../model/kinds/envoy-filter/envoy-filter.value.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { Resource } from '../messages/resource.ts';
import type { HeldPatch } from './held-patch.ts';
import { merged, PatchFailure } from './merge-messages.ts';
import { type PatchSet, patchSetOf } from './patch-set.ts';
import { attempt } from './status.ts';

/**
 * One resource, also where nothing is patched: who asks waits for the answer. None for who asks without its name: those are agents of
 * Istio's, which would start their Envoy with what they get and nothing else.
 */
export function buildBootstrapPatches(shape: ProxyShape, push: PushContext, names: readonly string[]): Resource[] {
  if (!names.includes(bootstrapPatchesName)) return [];
  const patches = patchSetOf(shape, push);
  return [patches === undefined ? withoutPatches() : resourceOf(patches)];
}

const resources = new WeakMap<PatchSet, Resource>();
let unpatched: Resource | undefined;

function withoutPatches(): Resource {
  const schema = bootstrapSchema();
  unpatched ??= new Resource(bootstrapPatchesName, schema, create(schema));
  return unpatched;
}

function resourceOf(patches: PatchSet): Resource {
  let resource = resources.get(patches);
  if (resource === undefined) {
    const schema = bootstrapSchema();
    const held = patches.of('BOOTSTRAP');
    const all = held.reduce<Message>(
      (before, patch) => attempt(patch, before, () => merged(schema, before, valueOf(patch), 'append')),
      create(schema),
    );
    resource = new Resource(
      bootstrapPatchesName,
      schema,
      all,
      held.map(({ origin }) => origin.key),
    );
    resources.set(patches, resource);
  }
  return resource;
}

function bootstrapSchema(): DescMessage {
  return envoyApi().getMessage(bootstrapType.slice(bootstrapType.indexOf('/') + 1))!;
}

/** @throws PatchFailure when it is none */
function valueOf({ patch }: HeldPatch): Message {
  // What the lists are that would be replaced, the agent knows alone.
  if (patch.operation !== 'MERGE')
    throw new PatchFailure(`operation must be MERGE in a bootstrap, got ${patch.operation}`);
  const decoded = patchValue(patch);
  if (decoded === undefined) throw new PatchFailure('has no value');
  if (E.isLeft(decoded)) throw new PatchFailure(decoded.left);
  return decoded.right.message;
}
