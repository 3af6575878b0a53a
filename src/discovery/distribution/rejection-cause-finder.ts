import { type ConfigKey, configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { memoize } from '../../runtime/memoized.ts';
import type { ChangedObjects } from './changed-objects.ts';
import type { ObjectDistributionOptions } from './distribution-options.ts';
import { type FollowedProxy, numberOfVersion } from './proxy-progress.ts';
import { findCause, type GeneratedResource, type RejectionCause } from './rejection-origin.ts';
import { generationOf, hasStatus } from './status-objects.ts';

export interface RejectionCauseFinderParts {
  readonly options: Pick<ObjectDistributionOptions, 'configs' | 'generate' | 'objects'>;
  readonly changedObjects: ChangedObjects;
  readonly isRejected: (key: string) => boolean;
}

export class RejectionCauseFinder {
  readonly #finderParts: RejectionCauseFinderParts;

  constructor(finderParts: RejectionCauseFinderParts) {
    this.#finderParts = finderParts;
  }

  causeOf(proxy: FollowedProxy, typeUrl: string): RejectionCause | undefined {
    const { shape, context, watches } = proxy;
    const watch = watches[typeUrl]!;
    const ackedNumber = watch.versionAcked === '' ? undefined : numberOfVersion(watch.versionAcked);
    const changedKeys =
      ackedNumber === undefined
        ? undefined
        : this.#finderParts.changedObjects.keysBetween(ackedNumber, numberOfVersion(watch.versionSent));
    const objectOf = (key: ConfigKey): string | undefined => this.#objectOf(key, context);
    const changedObjects =
      changedKeys && new Set([...changedKeys].flatMap((key) => objectOf(parseConfigKey(key)) ?? []));
    return findCause({
      ...{ typeUrl, reason: watch.lastError, changedKeys: changedObjects },
      names: watch.wildcard || watch.names.length === 0 ? '*' : watch.names,
      generate: (names) =>
        this.#finderParts.options.generate(context, typeUrl, shape, names).map(
          (resource): GeneratedResource => ({
            name: resource.name,
            objects: memoize(() => [...new Set(resource.dependsOn.flatMap((key) => objectOf(key) ?? []))]),
          }),
        ),
      isKnownRejected: (key) => this.#isKnownRejected(key),
    });
  }

  /** The object that defines a service is responsible for it. */
  #objectOf(key: ConfigKey, context: PushContext): string | undefined {
    if (!hasStatus(key.kind)) return undefined;
    const { byKey } = this.#finderParts.options.configs();
    const text = configKeyText(key);
    if (byKey.has(text)) return this.#keepIfHasStatus(text);
    const origin = key.kind === 'ServiceEntry' ? context.servicesOf(key.name, key.namespace)[0]?.origin : undefined;
    return origin && hasStatus(origin.kind) ? this.#keepIfHasStatus(configKeyText(origin)) : undefined;
  }

  #keepIfHasStatus(key: string): string | undefined {
    const config = this.#finderParts.options.configs().byKey.get(key);
    return config && generationOf(config) !== undefined ? key : undefined;
  }

  #isKnownRejected(key: string): boolean {
    if (this.#finderParts.isRejected(key)) return true;
    const config = this.#finderParts.options.configs().byKey.get(key);
    const reportedCondition = this.#finderParts.options.objects.statusOf(key)?.conditions.get('Rejected');
    return (
      reportedCondition !== undefined &&
      config !== undefined &&
      reportedCondition.observedGeneration === generationOf(config)
    );
  }
}
