/** Which object of the cluster led to what a proxy rejects. */
import { type ConfigKey, configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { memoized } from '../../runtime/memoized.ts';
import type { ChangedObjects } from './changed-objects.ts';
import type { ObjectDistributionOptions } from './distribution-options.ts';
import { type FollowedProxy, numberOfVersion } from './proxy-progress.ts';
import { type Blame, blameOf, type MadeResource } from './rejection-origin.ts';
import { generationOf, hasStatus } from './status-objects.ts';

export interface RejectionBlameParts {
  readonly options: Pick<ObjectDistributionOptions, 'configs' | 'made' | 'objects'>;
  /** What changed with which context. */
  readonly steps: ChangedObjects;
  /** Whether a rejection of the object is reported already. */
  readonly isRejected: (key: string) => boolean;
}

export class RejectionBlame {
  readonly #parts: RejectionBlameParts;

  constructor(parts: RejectionBlameParts) {
    this.#parts = parts;
  }

  /** @returns `undefined` if Envoy's message does not tell */
  of(proxy: FollowedProxy, typeUrl: string): Blame | undefined {
    const { shape, context, watches } = proxy;
    const watch = watches[typeUrl]!;
    const acked = watch.versionAcked === '' ? undefined : numberOfVersion(watch.versionAcked);
    const changed =
      acked === undefined ? undefined : this.#parts.steps.between(acked, numberOfVersion(watch.versionSent));
    const objectOf = (key: ConfigKey): string | undefined => this.#objectOf(key, context);
    const changedObjects = changed && new Set([...changed].flatMap((key) => objectOf(parseConfigKey(key)) ?? []));
    return blameOf({
      ...{ typeUrl, reason: watch.lastError, changed: changedObjects },
      names: watch.wildcard || watch.names.length === 0 ? '*' : watch.names,
      made: (names) =>
        this.#parts.options.made(context, typeUrl, shape, names).map(
          (resource): MadeResource => ({
            name: resource.name,
            objects: memoized(() => [...new Set(resource.dependsOn.flatMap((key) => objectOf(key) ?? []))]),
          }),
        ),
      isSuspect: (key) => this.#isSuspect(key),
    });
  }

  /** The object of the cluster that something is made from: a service is one of the object that it was made from. */
  #objectOf(key: ConfigKey, context: PushContext): string | undefined {
    if (!hasStatus(key.kind)) return undefined;
    const { byKey } = this.#parts.options.configs();
    const text = configKeyText(key);
    if (byKey.has(text)) return this.#tellable(text);
    const origin = key.kind === 'ServiceEntry' ? context.servicesOf(key.name, key.namespace)[0]?.origin : undefined;
    return origin && hasStatus(origin.kind) ? this.#tellable(configKeyText(origin)) : undefined;
  }

  #tellable(key: string): string | undefined {
    const config = this.#parts.options.configs().byKey.get(key);
    return config && generationOf(config) !== undefined ? key : undefined;
  }

  #isSuspect(key: string): boolean {
    if (this.#parts.isRejected(key)) return true;
    const config = this.#parts.options.configs().byKey.get(key);
    const said = this.#parts.options.objects.toldOf(key)?.conditions.get('Rejected');
    return said !== undefined && config !== undefined && said.observedGeneration === generationOf(config);
  }
}
