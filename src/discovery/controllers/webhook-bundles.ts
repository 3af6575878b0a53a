/**
 * Writes the mesh root to the webhook configurations of this revision, so that the API server can verify the webhooks. Validating entries also
 * receive the `failurePolicy` Fail after an observed rejection.
 */
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { reasonError } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import {
  type ApiResource,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '../kubernetes/api-resource.ts';
import type { FollowedKind, InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';
import { DueKeys } from './due-keys.ts';
import { failurePolicyAnnotation, proveValidation, unprovedEntry } from './validation-proof.ts';

export interface WebhookBundlesOptions {
  /** Must not be started yet, and must watch {@link webhookConfigurationsOf}. */
  readonly informers: Pick<InformerEffects, 'storeOf' | 'addReader'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly lease: string;
  /** REVISION. Empty for the default revision. */
  readonly revision: string;
  readonly namespace: string;
  /** DNS names in the webhooks' certificate, for entries with a URL. */
  readonly hosts: readonly string[];
  /** `undefined` without an authority. */
  readonly roots: () => string | undefined;
  readonly onRoots: (onChanged: () => void) => void;
  /** Clock in milliseconds. */
  readonly now: () => number;
}

const changedFields = ['caBundle', 'failurePolicy'] as const;
/** Minimum interval between repairs, which limits the writes of two competing control planes. */
const disputeIntervalMs = 10_000;

/** Includes mutating configurations of all revisions, because another may select the same pods. */
export function webhookConfigurationsOf(revision: string): readonly [mutating: NamedKind, validating: NamedKind] {
  return [
    watchedByLabel(mutatingWebhookConfigurations, revisionLabel),
    watchedByLabel(validatingWebhookConfigurations, `${revisionLabel}=${revision || 'default'}`),
  ];
}

type NamedKind = FollowedKind & { readonly name: string };

function watchedByLabel(resource: ApiResource, labelSelector: string): NamedKind {
  return {
    resource,
    name: `${resource.group}/${resource.version}/${resource.plural}/${labelSelector}`,
    selection: { labelSelector, keepsData: true },
  };
}

interface Change {
  readonly field: (typeof changedFields)[number];
  readonly webhooks: readonly unknown[];
}

export class WebhookBundles implements Duty {
  readonly lease: string;
  readonly #options: WebhookBundlesOptions;
  readonly #followedConfigurations: ReturnType<typeof webhookConfigurationsOf>;
  readonly #dueKeys = new DueKeys();
  /** Time of the last write, by configuration and field. */
  readonly #lastWriteTimes = new Map<string, number>();

  constructor(options: WebhookBundlesOptions) {
    this.#options = options;
    this.lease = options.lease;
    this.#followedConfigurations = webhookConfigurationsOf(options.revision);
    for (const { resource, name } of this.#followedConfigurations) {
      options.informers.addReader(name, (changes) => {
        for (const { event, key } of changes) {
          if (event === 'delete') this.#clearFailure(`${resource.plural}${key}`);
          else this.#dueKeys.add(`${resource.plural}${key}`);
        }
      });
    }
    options.onRoots(() => {
      this.#lastWriteTimes.clear();
      for (const key of this.#allKeys()) this.#dueKeys.add(key);
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
      () => this.#allKeys(),
      (key) => this.#write(key, writeGate),
    );
  }

  #clearFailure(key: string): void {
    for (const field of changedFields) this.#lastWriteTimes.delete(`${key}/${field}`);
  }

  get #revision(): string {
    return this.#options.revision || 'default';
  }

  *#allKeys(): Iterable<string> {
    for (const { resource, name } of this.#followedConfigurations) {
      for (const [key] of this.#options.informers.storeOf(name).entries()) yield `${resource.plural}${key}`;
    }
  }

  async #write(key: string, writeGate: WriteGate): Promise<boolean> {
    const { informers, roots, now } = this.#options;
    const [plural = '', name = ''] = key.split('/');
    const { resource, name: configurationName } = this.#followedConfigurations.find(
      (followedResource) => followedResource.resource.plural === plural,
    )!;
    const object = informers.storeOf(configurationName).get(`/${name}`);
    const pem = roots();
    if (object === undefined || pem === undefined) return false;
    if (object.metadata.labels?.[revisionLabel] !== this.#revision) return false;
    const change = await this.#changeOf(resource, object, Buffer.from(pem).toString('base64'));
    if (change === undefined) return false;
    const { field, webhooks } = change;
    if (now() - (this.#lastWriteTimes.get(`${key}/${field}`) ?? Number.NEGATIVE_INFINITY) < disputeIntervalMs)
      throw reasonError('OBJECT_DISPUTED', `another controller overwrites ${field} of ${resource.kind} ${name}`);
    try {
      const version = object.metadata.resourceVersion ?? '';
      await writeGate.write({ verb: 'patch', resource, name, version, fields: { webhooks } });
      this.#lastWriteTimes.set(`${key}/${field}`, now());
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      throw error;
    }
  }

  /** Writes the root first, because the API server needs it for the proof. */
  async #changeOf(resource: ApiResource, object: KubernetesObject, caBundle: string): Promise<Change | undefined> {
    const bundledWebhooks = this.#withBundle(object.webhooks, caBundle);
    if (bundledWebhooks !== undefined) return { field: 'caBundle', webhooks: bundledWebhooks };
    if (resource !== validatingWebhookConfigurations) return undefined;
    const provedWebhooks = await this.#withProvedPolicy(object);
    return provedWebhooks && { field: 'failurePolicy', webhooks: provedWebhooks };
  }

  /** @returns `undefined` if each entry has the bundle */
  #withBundle(entries: unknown, caBundle: string): readonly unknown[] | undefined {
    if (!Array.isArray(entries)) return undefined;
    let isChanged = false;
    const changedEntries = entries.map((entry: unknown) => {
      const clientConfig = isObject(entry) ? entry.clientConfig : undefined;
      if (!isObject(entry) || !isObject(clientConfig) || !this.#isOwnService(clientConfig)) return entry;
      if (clientConfig.caBundle === caBundle) return entry;
      isChanged = true;
      return { ...entry, clientConfig: { ...clientConfig, caBundle } };
    });
    return isChanged ? changedEntries : undefined;
  }

  /**
   * @returns `undefined` if no entry needs the policy Fail
   * @throws if the proof of an entry fails
   */
  async #withProvedPolicy({ metadata, webhooks }: KubernetesObject): Promise<readonly unknown[] | undefined> {
    if (!Array.isArray(webhooks) || metadata.annotations?.[failurePolicyAnnotation] === 'keep') return undefined;
    const { server, namespace } = this.#options;
    const eventFields = { namespace, revision: this.#revision };
    let isChanged = false;
    const changedEntries: unknown[] = [];
    for (const entry of webhooks) {
      const isOwnWebhook = isObject(entry) && isObject(entry.clientConfig) && this.#isOwnService(entry.clientConfig);
      const unprovedWebhook = isOwnWebhook ? unprovedEntry(entry) : undefined;
      if (unprovedWebhook === undefined) changedEntries.push(entry);
      else {
        await proveValidation(server, unprovedWebhook, eventFields);
        changedEntries.push({ ...entry, failurePolicy: 'Fail' });
        isChanged = true;
      }
    }
    return isChanged ? changedEntries : undefined;
  }

  /** Entries for other services have other roots. */
  #isOwnService({ service, url }: Readonly<Record<string, unknown>>): boolean {
    const { namespace, hosts } = this.#options;
    if (isObject(service)) return service.namespace === namespace && hosts.includes(`${service.name}.${namespace}.svc`);
    return typeof url === 'string' && hosts.includes(URL.parse(url)?.hostname ?? '');
  }
}
