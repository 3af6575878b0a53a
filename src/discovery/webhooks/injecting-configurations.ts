/**
 * If two configurations select a pod, it gets one sidecar, from the configuration whose name sorts last. Overlaps are logged and shown on
 * `/debug/inject`.
 */

import {
  callingConfigurations,
  type InjectingConfiguration,
  type Overlap,
  overlapsOf,
} from '../../injection/decision/overlaps.ts';
import type { Texts } from '../../injection/pod/pod.ts';
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { KubernetesObject, ObjectMeta } from '../kubernetes/api-server.ts';

export interface InjectionCluster {
  readonly configurations: () => Iterable<KubernetesObject>;
  readonly namespace: (name: string) => Pick<ObjectMeta, 'labels' | 'annotations'> | undefined;
  readonly kubelets: () => Iterable<readonly [node: string, version: string]>;
  readonly onChanged: (onChanged: () => void) => void;
}

export interface InjectingConfigurationsOptions {
  readonly source: InjectionCluster;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Suffix of injector webhooks in all versions of Istio. */
const entryName = /(?:^|\.)sidecar-injector\.istio\.io$/;

export class InjectingConfigurations {
  readonly #options: InjectingConfigurationsOptions;
  #configurations: readonly InjectingConfiguration[] = [];
  #overlaps: readonly Overlap[] = [];

  constructor(options: InjectingConfigurationsOptions) {
    this.#options = options;
    options.source.onChanged(() => this.#readConfigurations());
  }

  /** The content of `/debug/inject`. */
  describe(): object {
    return {
      configurations: this.#configurations.map(({ name, revision, entries }) => ({
        ...{ name, revision },
        entries: entries.map((entry) => entry.name),
      })),
      overlaps: this.#overlaps,
    };
  }

  callersOf(namespace: string, podLabels: Texts): readonly string[] {
    if (this.#overlaps.length === 0) return [];
    return callingConfigurations(
      this.#configurations,
      this.#options.source.namespace(namespace)?.labels ?? {},
      podLabels,
    );
  }

  #readConfigurations(): void {
    const { source, log } = this.#options;
    this.#configurations = [...source.configurations()].flatMap(injectingConfiguration);
    const overlaps = overlapsOf(this.#configurations);
    const previousOverlaps = new Set(this.#overlaps.map(keyOf));
    const currentKeys = new Set(overlaps.map(keyOf));
    for (const overlap of overlaps) {
      const { podLabels, namespaceLabels } = overlap;
      if (!previousOverlaps.has(keyOf(overlap)))
        log.warn('injection.overlap', {
          configurations: overlap.configurations.join(', '),
          podLabels: JSON.stringify(podLabels),
          namespaceLabels: JSON.stringify(namespaceLabels),
        });
    }
    for (const overlap of this.#overlaps) {
      if (!currentKeys.has(keyOf(overlap)))
        log.info('injection.overlapEnded', { configurations: overlap.configurations.join(', ') });
    }
    this.#overlaps = overlaps;
  }
}

function keyOf({ configurations }: Overlap): string {
  return configurations.join('/');
}

function injectingConfiguration({ metadata, webhooks }: KubernetesObject): readonly InjectingConfiguration[] {
  const entries = (Array.isArray(webhooks) ? webhooks : []).flatMap((entry: unknown) => {
    const { name, namespaceSelector, objectSelector } = isObject(entry) ? entry : {};
    if (typeof name !== 'string' || !entryName.test(name)) return [];
    return [{ name, namespaceSelector: selectorOf(namespaceSelector), objectSelector: selectorOf(objectSelector) }];
  });
  if (entries.length === 0) return [];
  return [{ name: metadata.name, revision: metadata.labels?.[revisionLabel] ?? '', entries }];
}

/** The selector is valid, because the API server checked it. */
function selectorOf(selector: unknown): LabelSelector {
  return isObject(selector) ? (selector as LabelSelector) : {};
}
