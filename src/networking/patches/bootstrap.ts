/** Merges EnvoyFilters with `applyTo: BOOTSTRAP` into one message, which the agent merges into its bootstrap. */
import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { bootstrapPatchesName, bootstrapType } from '../../../machines/discovery/xds/ads-types.ts';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { patchValue } from '../../model/kinds/envoy-filter/envoy-filter.value.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { EnvoyResource } from '../messages/resource.ts';
import type { ActivePatch } from './active-patch.ts';
import { mergeMessages, PatchFailure } from './merge-messages.ts';
import { type PatchSet, patchSetOf } from './patch-set.ts';
import { attemptPatch } from './status.ts';

/**
 * Returns one resource even without patches, because the agent waits for a response. Returns none unless it is requested by name: Istio's agents
 * would start Envoy with only this message.
 */
export function buildBootstrapPatches(shape: ProxyShape, push: PushContext, names: readonly string[]): EnvoyResource[] {
  if (!names.includes(bootstrapPatchesName)) return [];
  const patches = patchSetOf(shape, push);
  return [patches === undefined ? buildUnpatched() : resourceOf(patches)];
}

const resources = new WeakMap<PatchSet, EnvoyResource>();
let unpatchedResource: EnvoyResource | undefined;

function buildUnpatched(): EnvoyResource {
  const schema = bootstrapSchema();
  unpatchedResource ??= new EnvoyResource(bootstrapPatchesName, schema, create(schema));
  return unpatchedResource;
}

function resourceOf(patches: PatchSet): EnvoyResource {
  let resource = resources.get(patches);
  if (resource === undefined) {
    const schema = bootstrapSchema();
    const activePatches = patches.takePatches('BOOTSTRAP');
    const mergedBootstrap = activePatches.reduce<Message>(
      (current, patch) => attemptPatch(patch, current, () => mergeMessages(schema, current, valueOf(patch), 'append')),
      create(schema),
    );
    resource = new EnvoyResource(
      bootstrapPatchesName,
      schema,
      mergedBootstrap,
      activePatches.map(({ origin }) => origin.key),
    );
    resources.set(patches, resource);
  }
  return resource;
}

function bootstrapSchema(): DescMessage {
  return envoyApi().getMessage(bootstrapType.slice(bootstrapType.indexOf('/') + 1))!;
}

function valueOf({ patch }: ActivePatch): Message {
  // Only the agent knows the lists that REPLACE would change.
  if (patch.operation !== 'MERGE')
    throw new PatchFailure(`operation must be MERGE in a bootstrap, got ${patch.operation}`);
  const decodedValue = patchValue(patch);
  if (decodedValue === undefined) throw new PatchFailure('has no value');
  if (E.isLeft(decodedValue)) throw new PatchFailure(decodedValue.left);
  return decodedValue.right.message;
}
