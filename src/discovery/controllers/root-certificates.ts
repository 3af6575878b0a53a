/** Writes the mesh root to a ConfigMap in each namespace of the mesh. Pods mount it, and agents verify the control plane with it. */
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { isDiscovered } from '../../model/services/kubernetes/discovery-namespaces.ts';
import { reasonError } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { FollowedKind, InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { digestOf } from '../kubernetes/store/trim.ts';
import { DueKeys } from './due-keys.ts';

export interface RootCertificatesOptions {
  /** Must not be started yet, and must watch {@link rootConfigMapsOf}. */
  readonly informers: Pick<InformerEffects, 'storeOf' | 'addReader'>;
  /** PILOT_CA_CERT_CONFIGMAP */
  readonly configMap: string;
  readonly lease: string;
  /** `undefined` without an authority. */
  readonly roots: () => string | undefined;
  readonly onRoots: (onChanged: () => void) => void;
  /** Current `discoverySelectors`. Namespaces that they do not select are outside of the mesh. */
  readonly selectors: () => readonly LabelSelector[];
  readonly onSelectors: (onChanged: () => void) => void;
  /** Monotonic clock in milliseconds. */
  readonly now: () => number;
}

const configMaps = resourceOf('ConfigMap');
const namespaces = resourceOf('Namespace');
const rootKey = 'root-cert.pem';
const label = 'istio.io/config';
/** ConfigMaps with this name in all namespaces. Only digests are stored, because tenants can store any content. */
export function rootConfigMapsOf(name: string): FollowedKind & { readonly name: string } {
  const selection = { fieldSelector: `metadata.name=${name}`, digestsData: true };
  return { resource: configMaps, name: `v1/configmaps/*/${name}`, selection };
}

/** Another writer may keep changing a ConfigMap, so repairs have a minimum interval. */
const disputeIntervalMs = 10_000;
const ignoredNamespaces = ['kube-public', 'kube-node-lease', 'local-path-storage'];

export class RootCertificates implements Duty {
  readonly lease: string;
  readonly #options: RootCertificatesOptions;
  readonly #dueKeys = new DueKeys();
  readonly #repairedAt = new Map<string, number>();

  constructor(options: RootCertificatesOptions) {
    this.#options = options;
    this.lease = options.lease;
    const { informers, configMap } = options;
    informers.addReader(namespaces, (changes) => {
      for (const { event, key } of changes) {
        if (event === 'delete') this.#repairedAt.delete(key.slice(1));
        else this.#add(key.slice(1));
      }
    });
    informers.addReader(rootConfigMapsOf(configMap).name, (changes) => {
      for (const { key } of changes) this.#add(key.slice(0, key.indexOf('/')));
    });
    const addAll = (): void => {
      for (const namespace of this.#allNamespaces()) this.#add(namespace);
    };
    options.onRoots(addAll);
    let lastSelectors = options.selectors();
    options.onSelectors(() => {
      // Each push calls this, so namespaces are checked only if the selectors changed.
      const currentSelectors = options.selectors();
      if (currentSelectors !== lastSelectors) addAll();
      lastSelectors = currentSelectors;
    });
  }

  watch(onDue: () => void): () => void {
    return this.#dueKeys.watch(onDue);
  }

  get isDue(): boolean {
    return this.#dueKeys.isDue;
  }

  writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    return this.#dueKeys.write(
      run,
      () => this.#allNamespaces(),
      (namespace) => this.#write(namespace, writeGate),
    );
  }

  #add(namespace: string): void {
    if (!ignoredNamespaces.includes(namespace)) this.#dueKeys.add(namespace);
  }

  *#allNamespaces(): Iterable<string> {
    for (const [key] of this.#options.informers.storeOf(namespaces).entries()) {
      const name = key.slice(1);
      if (!ignoredNamespaces.includes(name)) yield name;
    }
  }

  async #write(namespace: string, writeGate: WriteGate): Promise<boolean> {
    const { informers, configMap: name, roots, selectors, now } = this.#options;
    const pem = roots();
    const namespaceObject = informers.storeOf(namespaces).get(`/${namespace}`);
    if (pem === undefined || namespaceObject === undefined || namespaceObject.metadata.deletionTimestamp !== undefined)
      return false;
    // A namespace that leaves the mesh keeps its ConfigMap, as in Istio.
    if (!isDiscovered(namespace, namespaceObject.metadata.labels, selectors())) return false;
    const existingConfigMap = informers.storeOf(rootConfigMapsOf(name).name).get(`${namespace}/${name}`);
    const fields = { metadata: { labels: { [label]: 'true' } }, data: { [rootKey]: pem } };
    const configMapRef = { resource: configMaps, namespace, name };
    try {
      if (existingConfigMap === undefined) {
        await writeGate.write({ ...configMapRef, verb: 'create', object: fields });
        return true;
      }
      if (isUnchanged(existingConfigMap, pem)) return false;
      if (now() - (this.#repairedAt.get(namespace) ?? Number.NEGATIVE_INFINITY) < disputeIntervalMs)
        throw reasonError('OBJECT_DISPUTED', `another controller overwrites ConfigMap ${namespace}/${name}`);
      await writeGate.write({
        ...configMapRef,
        verb: 'patch',
        version: existingConfigMap.metadata.resourceVersion ?? '',
        fields,
      });
      this.#repairedAt.set(namespace, now());
      return true;
    } catch (error) {
      if (isTerminatingError(error)) return false;
      throw error;
    }
  }
}

function isUnchanged({ data, metadata }: KubernetesObject, pem: string): boolean {
  return isObject(data) && data[rootKey] === digestOf(pem) && metadata.labels?.[label] === 'true';
}

function isTerminatingError(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.failure.kind !== 'status') return false;
  const { code, causes } = error.failure;
  return code === 404 || (code === 403 && causes.includes('NamespaceTerminating'));
}
