/**
 * Applies the Deployment, Service and ServiceAccount of each Gateway of this controller by server-side apply. A Gateway with `spec.addresses` uses
 * existing Services and is not deployed.
 */

import { hash } from 'node:crypto';
import * as E from 'fp-ts/lib/Either.js';
import {
  type DeployedGateway,
  gatewayNameLabel,
  gatewayObjects,
  managedBy,
  managedLabel,
} from '../../../injection/gateway/gateway-deployment.ts';
import type { SidecarInjector } from '../../../injection/injector.ts';
import type { Json, Texts } from '../../../injection/pod/pod.ts';
import { withGoTemplates } from '../../../injection/template/go-template.ts';
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';
import { describeFieldErrors } from '../../../model/mesh/proxy-config.ts';
import { controllerName, defaultClass } from '../../../model/translation/gateway-api/translation-context.ts';
import { codeOf, messageOf, reasonError } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { Duty, DutyReport, DutyRun } from '../../election/duty.ts';
import type { WriteGate } from '../../election/write-gate.ts';
import { ApiError, statusOf } from '../../kubernetes/api-failure.ts';
import { type ApiResource, events, resourceOf, serviceAccounts } from '../../kubernetes/api-resource.ts';
import type { InformerEffects } from '../../kubernetes/api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../../kubernetes/api-server.ts';
import { DueKeys } from '../due-keys.ts';
import { warningEventOf } from '../warning-event.ts';
import type { DeploymentFailure, DeploymentFailures } from './deployment-failures.ts';

export interface GatewayDeploymentsOptions {
  readonly informers: Pick<InformerEffects, 'storeOf' | 'addReader' | 'servedResource'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly lease: string;
  readonly injector: () => E.Either<string, SidecarInjector>;
  readonly onInjector: (onChanged: () => void) => void;
  /** Empty for the default revision. */
  readonly revision: string;
  readonly failures: DeploymentFailures;
  readonly identity: string;
}

const gateways = resourceOf('KubernetesGateway');
const classes = resourceOf('GatewayClass');
const configMaps = resourceOf('ConfigMap');
const services = resourceOf('Service');
const deployments: ApiResource = {
  ...{ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', namespaced: true },
};
/** Timeout of reads. Writes use the timeout of the gate. */
const readMs = 5_000;
/** Deployments and ServiceAccounts are not watched, so in each interval, a limited number of Gateways is compared with the deployed objects. */
const maxComparedAtOnce = 100;
const comparisonMs = 30_000;
/** Failures that the Gateway's owner can correct. */
const reportedStatuses: ReadonlySet<number> = new Set([400, 403, 422]);

interface AppliedDeployment {
  /** Digests of the applied object, and of the resulting object in the API server. */
  readonly appliedDigest: string;
  readonly liveDigestAfter: string;
}

export class GatewayDeployments implements Duty {
  readonly lease: string;
  readonly #options: GatewayDeploymentsOptions;
  readonly #dueKeys = new DueKeys();
  readonly #appliedDeployments = new Map<string, AppliedDeployment>();
  readonly #reportedErrors = new Map<string, string>();
  #remainingComparisons: Iterator<string> = [].values();

  constructor(options: GatewayDeploymentsOptions) {
    this.#options = options;
    this.lease = options.lease;
    const { informers } = options;
    informers.addReader(gateways, (changes) => {
      for (const { event, key } of changes) {
        if (event === 'delete') {
          this.#reportedErrors.delete(key);
          options.failures.delete(key);
        }
        this.#dueKeys.add(key);
      }
    });
    informers.addReader(services, (changes) => {
      for (const change of changes) {
        const { key } = change;
        const { metadata } = change.event === 'delete' ? change.previous : change.object;
        const name = metadata.labels?.[gatewayNameLabel];
        if (name !== undefined) this.#dueKeys.add(`${key.slice(0, key.indexOf('/'))}/${name}`);
      }
    });
    const addAll = (): void => {
      for (const key of this.#keys()) this.#dueKeys.add(key);
    };
    informers.addReader(classes, addAll);
    options.onInjector(addAll);
  }

  /** Also detects manual changes of deployed objects. Only the leader calls this. */
  watch(onDue: () => void): () => void {
    const timer = setInterval(() => this.#compareNext(), comparisonMs);
    timer.unref();
    const unwatch = this.#dueKeys.watch(onDue);
    return () => {
      clearInterval(timer);
      unwatch();
    };
  }

  #compareNext(): void {
    let next = this.#remainingComparisons.next();
    if (next.done === true) {
      this.#remainingComparisons = [...this.#keys()].values();
      next = this.#remainingComparisons.next();
    }
    for (let count = 1; next.done !== true; count++) {
      this.#dueKeys.add(next.value);
      if (count === maxComparedAtOnce) return;
      next = this.#remainingComparisons.next();
    }
  }

  get isDue(): boolean {
    return this.#dueKeys.isDue;
  }

  writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    // Another replica may have written since this one's last term.
    if (run.includesAll) {
      this.#appliedDeployments.clear();
      this.#options.failures.clear();
    }
    return this.#dueKeys.write(
      run,
      () => this.#keys(),
      async (key) => {
        try {
          const isWritten = await this.#write(key, writeGate);
          this.#reportedErrors.delete(key);
          this.#options.failures.delete(key);
          return isWritten;
        } catch (error) {
          const failure = failureOf(error);
          if (failure !== undefined && this.#options.informers.storeOf(gateways).get(key) !== undefined)
            this.#options.failures.set(key, failure);
          await this.#report(key, error, writeGate);
          throw error;
        }
      },
    );
  }

  /** The Gateway's owner may not have access to this log, so an Event is written. */
  async #report(key: string, error: unknown, writeGate: WriteGate): Promise<void> {
    const gateway = this.#options.informers.storeOf(gateways).get(key);
    const status = statusOf(error);
    if (gateway === undefined || (error instanceof ApiError && !reportedStatuses.has(status ?? 0))) return;
    const eventFields = {
      reason: 'GatewayNotDeployed',
      identity: this.#options.identity,
      occurredAt: `${new Date().toISOString().slice(0, 19)}Z`,
    };
    const event = warningEventOf(gateway, { ...eventFields, kind: gateways.kind, message: messageOf(error) });
    const { namespace = '', name } = event.metadata;
    if (this.#reportedErrors.get(key) === name) return;
    this.#reportedErrors.set(key, name);
    try {
      await writeGate.write({ verb: 'create', resource: events, namespace, name, object: event });
    } catch {
      // The Event exists, or creating it is forbidden.
    }
  }

  *#keys(): Iterable<string> {
    for (const [key] of this.#options.informers.storeOf(gateways).entries()) yield key;
  }

  async #write(key: string, writeGate: WriteGate): Promise<boolean> {
    const gateway = this.#deploymentOf(this.#options.informers.storeOf(gateways).get(key));
    const injector = this.#options.injector();
    // Without injector settings, the image is unknown. When the settings arrive, all Gateways become due.
    if (gateway === undefined || E.isLeft(injector)) return false;
    const parameters = await this.#parametersOf(gateway);
    const buildResult = await withGoTemplates(injector.right, (readyInjector) =>
      gatewayObjects(gateway, readyInjector, parameters),
    );
    if (E.isLeft(buildResult))
      throw reasonError('CONFIG_INVALID', `Gateway ${key} is not deployed: ${describeFieldErrors(buildResult.left)}`);
    const { serviceAccount, service, deployment } = buildResult.right;
    if (this.#isDeployedByOther(gateway, service)) return false;
    const objects: [ApiResource, Json | undefined][] = [
      [serviceAccounts, serviceAccount],
      [services, service],
      [deployments, deployment],
    ];
    let isWritten = false;
    for (const [resource, object] of objects) {
      if (object !== undefined && (await this.#apply(gateway, resource, object, writeGate))) isWritten = true;
    }
    return isWritten;
  }

  /** `undefined` if the Gateway belongs to another controller, is being deleted, or uses existing Services. */
  #deploymentOf(object: KubernetesObject | undefined): DeployableGateway | undefined {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
    const { metadata, spec } = object;
    if (!isObject(spec) || metadata.namespace === undefined || metadata.uid === undefined) return undefined;
    const revision = metadata.labels?.[revisionLabel];
    const isOtherRevision = revision !== undefined && (revision || 'default') !== (this.#options.revision || 'default');
    const { gatewayClassName: className, addresses, listeners, infrastructure } = spec;
    if (isOtherRevision || typeof className !== 'string' || !this.#isControlledClass(className)) return undefined;
    if (Array.isArray(addresses) && addresses.length > 0) return undefined;
    const { labels, annotations, parametersRef } = isObject(infrastructure) ? infrastructure : {};
    return {
      ...{ apiVersion: object.apiVersion ?? '', className, namespace: metadata.namespace, name: metadata.name },
      uid: metadata.uid,
      annotations: metadata.annotations ?? {},
      listeners: (Array.isArray(listeners) ? listeners : []).flatMap((listener) => {
        const { port, protocol } = isObject(listener) ? listener : {};
        return typeof port === 'number' && typeof protocol === 'string' ? [{ port, protocol }] : [];
      }),
      infrastructure: { labels: textsOf(labels), annotations: textsOf(annotations) },
      ...(parametersRef !== undefined && { parametersRef }),
    };
  }

  #isControlledClass(className: string): boolean {
    const spec = this.#options.informers.storeOf(classes).get(`/${className}`)?.spec;
    return isObject(spec) ? spec.controllerName === controllerName : className === defaultClass;
  }

  /** Whether a Service that this duty did not create selects the Gateway's pods. The deployment is then managed elsewhere. */
  #isDeployedByOther({ namespace, name }: DeployableGateway, { metadata }: Json): boolean {
    const store = this.#options.informers.storeOf(services);
    const gatewayKey = `${namespace}/${(metadata as { readonly name: string }).name}`;
    if (store.get(gatewayKey)?.metadata.labels?.[managedLabel] === managedBy) return false;
    for (const [key, { spec }] of store.entries()) {
      if (!key.startsWith(`${namespace}/`) || !isObject(spec) || !isObject(spec.selector)) continue;
      if (spec.selector[gatewayNameLabel] === name) return true;
    }
    return false;
  }

  async #parametersOf({ namespace, name: gateway, parametersRef }: DeployableGateway): Promise<Texts> {
    if (parametersRef === undefined) return {};
    const { group = '', kind = '', name } = isObject(parametersRef) ? parametersRef : {};
    const messagePrefix = `Gateway ${namespace}/${gateway} is not deployed: spec.infrastructure.parametersRef`;
    if (group !== '' || kind !== 'ConfigMap' || typeof name !== 'string')
      throw reasonError('CONFIG_INVALID', `${messagePrefix}: must name a ConfigMap`);
    const configMapObject = await this.#readObject(configMaps, namespace, name);
    if (configMapObject === undefined)
      throw reasonError('CONFIG_INVALID', `${messagePrefix}: there is no ConfigMap ${namespace}/${name}`);
    return textsOf(configMapObject.data);
  }

  async #apply(
    gateway: DeployableGateway,
    resource: ApiResource,
    object: Json,
    writeGate: WriteGate,
  ): Promise<boolean> {
    const { name } = object.metadata as { readonly name: string };
    const { namespace, uid } = gateway;
    const objectPath = `${resource.plural}/${namespace}/${name}`;
    const appliedDigest = digestOfJson(object);
    const existingObject = await this.#readObject(resource, namespace, name);
    if (existingObject !== undefined && !isOwnedBy(existingObject, uid)) {
      const reason = `Gateway ${namespace}/${gateway.name} is not deployed: ${resource.kind} ${namespace}/${name} exists and is not its own`;
      throw reasonError('OBJECT_FOREIGN', reason);
    }
    const lastApplied = this.#appliedDeployments.get(objectPath);
    if (
      existingObject !== undefined &&
      lastApplied?.appliedDigest === appliedDigest &&
      lastApplied.liveDigestAfter === liveDigest(existingObject)
    )
      return false;
    const version = existingObject?.metadata.resourceVersion;
    const appliedObject = await writeGate.write({
      verb: 'apply',
      resource,
      namespace,
      name,
      object,
      ...(version && { version }),
    });
    this.#appliedDeployments.set(objectPath, { appliedDigest, liveDigestAfter: liveDigest(appliedObject) });
    return true;
  }

  async #readObject(resource: ApiResource, namespace: string, name: string): Promise<KubernetesObject | undefined> {
    try {
      const request = { method: 'GET', resource, namespace, name, timeoutMs: readMs } as const;
      return await this.#options.server.request(request, new AbortController().signal);
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }
}

/** @returns `undefined` if the Gateway is not the cause: the term ended, the object changed, or the server is unreachable */
function failureOf(error: unknown): DeploymentFailure | undefined {
  const message = messageOf(error);
  const status = statusOf(error);
  if (error instanceof ApiError && (status === undefined || status === 409 || status >= 500)) return undefined;
  if (/exceeded quota/.test(message)) return { reason: 'NoResources', message };
  return { reason: codeOf(error) === 'CONFIG_INVALID' ? 'Invalid' : 'DeploymentFailed', message };
}

type DeployableGateway = DeployedGateway & { readonly parametersRef?: unknown };

function textsOf(value: unknown): Texts {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function isOwnedBy({ metadata: { ownerReferences } }: KubernetesObject, uid: string): boolean {
  return Array.isArray(ownerReferences) && ownerReferences.some((owner) => isObject(owner) && owner.uid === uid);
}

/** The digest covers only applied fields, because others change with each ready pod. */
function liveDigest({ metadata: { labels, annotations, ownerReferences }, spec }: KubernetesObject): string {
  return digestOfJson({ labels, annotations, ownerReferences, spec });
}

function digestOfJson(value: unknown): string {
  return hash('sha256', JSON.stringify(value), 'base64');
}
