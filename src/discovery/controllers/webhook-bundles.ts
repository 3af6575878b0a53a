/**
 * The duty to write the root of the mesh into the webhook configurations of this revision: the API server trusts the certificate of the webhooks
 * by it (spec/injection.md §5). Only entries that call this control plane are changed, and of them only `caBundle`.
 */
import { reasonError } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { statusOf } from '../kubernetes/api-failure.ts';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../kubernetes/api-resource.ts';
import type { FollowedKind, InformerEffects } from '../kubernetes/api-server.effects.ts';
import { DueKeys } from './due-keys.ts';

export interface WebhookBundlesOptions {
  /** Informers of the cluster, not started yet; they follow {@link webhookConfigurationsOf}. */
  readonly informers: Pick<InformerEffects, 'storeOf' | 'addReader'>;
  readonly lease: string;
  /** REVISION; empty: the default one. */
  readonly revision: string;
  /** Of the control plane. */
  readonly namespace: string;
  /** Host names of the certificate of the webhooks, for entries with a URL. */
  readonly hosts: readonly string[];
  /** PEM of the roots of that certificate; `undefined` until there is an authority. */
  readonly roots: () => string | undefined;
  /** Calls back when they change. */
  readonly onRoots: (changed: () => void) => void;
  /** Milliseconds. */
  readonly now: () => number;
}

const resources = [mutatingWebhookConfigurations, validatingWebhookConfigurations];
/** Two control planes that overwrite each other would write without end. */
const disputeMs = 10_000;

/** Configurations that are labelled for the revision, whole: a list is replaced by a patch as a whole. */
export function webhookConfigurationsOf(revision: string): readonly (FollowedKind & { readonly name: string })[] {
  const labelSelector = `istio.io/rev=${revision || 'default'}`;
  return resources.map((resource) => ({
    resource,
    name: `${resource.group}/${resource.version}/${resource.plural}/${labelSelector}`,
    selection: { labelSelector, keepsData: true },
  }));
}

export class WebhookBundles implements Duty {
  readonly lease: string;
  readonly #options: WebhookBundlesOptions;
  readonly #followed: ReturnType<typeof webhookConfigurationsOf>;
  readonly #due = new DueKeys();
  /** When the bundle of a configuration was written last, by key. */
  readonly #written = new Map<string, number>();

  constructor(options: WebhookBundlesOptions) {
    this.#options = options;
    this.lease = options.lease;
    this.#followed = webhookConfigurationsOf(options.revision);
    for (const { resource, name } of this.#followed) {
      options.informers.addReader(name, (changes) => {
        for (const { event, key } of changes) {
          if (event === 'delete') this.#written.delete(`${resource.plural}${key}`);
          else this.#due.add(`${resource.plural}${key}`);
        }
      });
    }
    options.onRoots(() => {
      this.#written.clear();
      for (const key of this.#all()) this.#due.add(key);
    });
  }

  watch(due: () => void): () => void {
    return this.#due.watch(due);
  }

  get isDue(): boolean {
    return this.#due.isDue;
  }

  writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport> {
    return this.#due.write(
      run,
      () => this.#all(),
      (key) => this.#write(key, gate),
    );
  }

  *#all(): Iterable<string> {
    for (const { resource, name } of this.#followed) {
      for (const [key] of this.#options.informers.storeOf(name).entries()) yield `${resource.plural}${key}`;
    }
  }

  /** @returns whether there was something to write */
  async #write(key: string, gate: WriteGate): Promise<boolean> {
    const { informers, roots, now } = this.#options;
    const [plural = '', name = ''] = key.split('/');
    const { resource, name: followed } = this.#followed.find((one) => one.resource.plural === plural)!;
    const object = informers.storeOf(followed).get(`/${name}`);
    const pem = roots();
    if (object === undefined || pem === undefined) return false;
    const webhooks = this.#withBundle(object.webhooks, Buffer.from(pem).toString('base64'));
    if (webhooks === undefined) return false;
    if (now() - (this.#written.get(key) ?? Number.NEGATIVE_INFINITY) < disputeMs)
      throw reasonError('OBJECT_DISPUTED', `another controller overwrites ${resource.kind} ${name}`);
    try {
      const version = object.metadata.resourceVersion ?? '';
      await gate.write({ verb: 'patch', resource, name, version, fields: { webhooks } });
      this.#written.set(key, now());
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      throw error;
    }
  }

  /** @returns `undefined` if each entry has it */
  #withBundle(entries: unknown, caBundle: string): readonly unknown[] | undefined {
    if (!Array.isArray(entries)) return undefined;
    let isChanged = false;
    const changed = entries.map((entry: unknown) => {
      const clientConfig = isObject(entry) ? entry.clientConfig : undefined;
      if (!isObject(entry) || !isObject(clientConfig) || !this.#isOwn(clientConfig)) return entry;
      if (clientConfig.caBundle === caBundle) return entry;
      isChanged = true;
      return { ...entry, clientConfig: { ...clientConfig, caBundle } };
    });
    return isChanged ? changed : undefined;
  }

  /** A service of the own namespace, or a URL with a name of the own certificate: others have another root. */
  #isOwn({ service, url }: Readonly<Record<string, unknown>>): boolean {
    const { namespace, hosts } = this.#options;
    if (isObject(service)) return service.namespace === namespace && hosts.includes(`${service.name}.${namespace}.svc`);
    return typeof url === 'string' && hosts.includes(URL.parse(url)?.hostname ?? '');
  }
}
