import type { Config } from '../../../model/config/config.ts';
import type { ParentReference } from '../../../model/kinds/gateway-api/http-route.ts';
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';
import {
  computeGatewayApiStatusInSteps,
  type GatewayApiStatusSources,
} from '../../../model/translation/gateway-api/gateway-api-status.ts';
import type {
  ClassStatus,
  GatewayStatus,
  ListenerStatus,
  RouteStatus,
} from '../../../model/translation/gateway-api/object-conditions.ts';
import { controllerName, routeKinds } from '../../../model/translation/gateway-api/translation-context.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { Turns } from '../../../runtime/turns.ts';
import type { DeploymentFailure, DeploymentFailures } from '../gateways/deployment-failures.ts';
import { type DerivedStatus, objectRef, type StatusDerivation } from './derived-status.ts';
import { type ConditionMoment, isObservedLater, withConditions } from './status-conditions.ts';
import type { StatusFields } from './status-writer.ts';

export interface GatewayApiDerivationOptions {
  readonly objects: () => GatewayApiStatusSources;
  readonly onChanged: (onChanged: () => void) => () => void;
  readonly domain: string;
  /** Empty means revision `default`. */
  readonly revision: string;
  readonly failures: Pick<DeploymentFailures, 'failuresByGateway' | 'onChanged'>;
  /** Only objects in the cluster have a status. */
  readonly isWritten: (object: Config) => boolean;
}

export class GatewayApiDerivation implements StatusDerivation {
  readonly #options: GatewayApiDerivationOptions;
  readonly onChanged: GatewayApiDerivationOptions['onChanged'];

  constructor(options: GatewayApiDerivationOptions) {
    this.#options = options;
    this.onChanged = (onChanged) => {
      const stops = [options.onChanged(onChanged), options.failures.onChanged(onChanged)];
      return () => {
        for (const stop of stops) stop();
      };
    };
  }

  inputs(): readonly unknown[] {
    const objects = this.#options.objects();
    // Skips the derivation if there are no such objects.
    const routes = routeKinds.map((kind) => objects[kind]);
    const inputs = [objects.BackendTLSPolicy, objects.GatewayClass, objects.KubernetesGateway, ...routes];
    if (inputs.every(({ length }) => length === 0)) return ['nothing'];
    const { failuresByGateway: failures } = this.#options.failures;
    return [
      ...inputs,
      failures,
      objects.ReferenceGrant,
      objects.Namespace,
      objects.Service,
      objects.Secret,
      objects.ConfigMap,
    ];
  }

  async derive(workTurns: Turns): Promise<ReadonlyMap<string, DerivedStatus>> {
    const { domain, revision, isWritten } = this.#options;
    const objects = this.#options.objects();
    // Objects of other revisions are skipped, because two leaders would overwrite each other's statuses forever (istio#52105).
    const isForeign = ({ labels }: Config): boolean =>
      labels[revisionLabel] !== undefined && (labels[revisionLabel] || 'default') !== (revision || 'default');
    const status = await workTurns.runSteps(computeGatewayApiStatusInSteps(objects, domain, isForeign));
    const derivedStatuses = new Map<string, DerivedStatus>();
    const addStatuses = <Status>(
      configs: readonly Config[],
      statuses: ReadonlyMap<string, Status>,
      deriveStatus: (status: Status, namespace: string) => DerivedFields,
    ): void => {
      for (const config of configs) {
        const { kind, namespace, name } = config;
        const statusOfConfig = statuses.get(`${namespace}/${name}`);
        if (statusOfConfig === undefined || !isWritten(config)) continue;
        derivedStatuses.set(`${kind}/${namespace}/${name}`, {
          ...objectRef(config),
          ...deriveStatus(statusOfConfig, namespace),
        });
      }
    };
    addStatuses(objects.GatewayClass, status.GatewayClass, derivedOfClass);
    const { failuresByGateway: failures } = this.#options.failures;
    addStatuses(objects.KubernetesGateway, withFailures(status.KubernetesGateway, failures), derivedOfGateway);
    for (const kind of routeKinds) addStatuses(objects[kind], status[kind], derivedOfRoute);
    addStatuses(objects.BackendTLSPolicy, status.BackendTLSPolicy, derivedOfPolicy);
    return derivedStatuses;
  }
}

type DerivedFields = Omit<DerivedStatus, 'ref' | 'uid'>;

function derivedOfClass(status: ClassStatus): DerivedFields {
  return {
    ...generationField(status),
    facts: [status.conditions, status.supportedFeatures],
    next: (currentStatus, time) => ({
      ...currentStatus,
      conditions: withConditions(currentStatus.conditions, status.conditions, momentOf(status, time)),
      supportedFeatures: status.supportedFeatures.map((name) => ({ name })),
    }),
  };
}

/** A Gateway that is not deployed serves no requests. */
function withFailures(
  statuses: ReadonlyMap<string, GatewayStatus>,
  failures: ReadonlyMap<string, DeploymentFailure>,
): ReadonlyMap<string, GatewayStatus> {
  const changedStatuses = new Map(statuses);
  for (const [key, { reason, message }] of failures) {
    const status = statuses.get(key);
    if (status === undefined) continue;
    const conditions = status.conditions.map((statusCondition) =>
      statusCondition.type === 'Programmed'
        ? { ...statusCondition, status: 'False' as const, reason, message }
        : statusCondition,
    );
    changedStatuses.set(key, { ...status, conditions });
  }
  return changedStatuses;
}

function derivedOfGateway(status: GatewayStatus): DerivedFields {
  const { conditions, addresses, listeners } = status;
  return {
    ...generationField(status),
    facts: [conditions, addresses, listeners.map(({ attachedRoutes: _, ...listener }) => listener)],
    counts: listeners.map(({ attachedRoutes }) => attachedRoutes),
    next: (currentStatus, time) => {
      const conditionMoment = momentOf(status, time);
      return {
        ...currentStatus,
        // Replaces the transition time 1970 in the API's default conditions.
        conditions: withConditions(currentStatus.conditions, conditions, conditionMoment),
        ...((addresses.length > 0 || currentStatus.addresses !== undefined) && { addresses }),
        listeners: listeners.map((listener) => listenerAfter(currentStatus.listeners, listener, conditionMoment)),
      };
    },
  };
}

function listenerAfter(
  currentListeners: unknown,
  { name, ...ownFields }: ListenerStatus,
  conditionMoment: ConditionMoment,
): StatusFields {
  const presentListener = Array.isArray(currentListeners)
    ? currentListeners.find((listenerEntry) => isObject(listenerEntry) && listenerEntry.name === name)
    : undefined;
  const fields = isObject(presentListener) ? presentListener : {};
  return {
    ...fields,
    name,
    ...ownFields,
    conditions: withConditions(fields.conditions, ownFields.conditions, conditionMoment),
  };
}

const conditionTypesOmittedIfFalse = ['PartiallyInvalid'];

const derivedOfRoute = (status: RouteStatus, namespace: string): DerivedFields =>
  withParents(status, namespace, routeFields);
const derivedOfPolicy = (status: RouteStatus, namespace: string): DerivedFields =>
  withParents(status, namespace, policyFields);

interface ParentFields {
  readonly list: 'parents' | 'ancestors';
  readonly reference: 'parentRef' | 'ancestorRef';
}

const routeFields: ParentFields = { list: 'parents', reference: 'parentRef' };
const policyFields: ParentFields = { list: 'ancestors', reference: 'ancestorRef' };

function withParents(status: RouteStatus, namespace: string, fields: ParentFields): DerivedFields {
  return {
    ...generationField(status),
    facts: status.parents,
    next: (currentStatus, time) => {
      const parents = parentsAfter(currentStatus[fields.list], status, {
        namespace,
        conditionMoment: momentOf(status, time),
        fields,
      });
      return parents === undefined ? undefined : { ...currentStatus, [fields.list]: parents };
    },
  };
}

interface ParentContext {
  readonly namespace: string;
  readonly conditionMoment: ConditionMoment;
  readonly fields: ParentFields;
}

/** Keeps the entries of other controllers in place. `undefined` if no write is necessary. */
function parentsAfter(
  currentParents: unknown,
  status: RouteStatus,
  context: ParentContext,
): readonly unknown[] | undefined {
  const { namespace, conditionMoment, fields } = context;
  const remainingParents = new Map(status.parents.map((parent) => [parentKey(parent.parentRef, namespace), parent]));
  const presentList: readonly unknown[] = Array.isArray(currentParents) ? currentParents : [];
  const nextParents: unknown[] = [];
  for (const presentParent of presentList) {
    if (!isObject(presentParent) || presentParent.controllerName !== controllerName) {
      nextParents.push(presentParent);
      continue;
    }
    const reference = presentParent[fields.reference];
    const key = isObject(reference) ? parentKey(reference, namespace) : '';
    const desiredParent = remainingParents.get(key);
    remainingParents.delete(key);
    if (desiredParent !== undefined) nextParents.push(parentAfter(presentParent, desiredParent, context));
    // Another writer has written a condition for a newer generation.
    else if (hasLaterCondition(presentParent.conditions, conditionMoment)) nextParents.push(presentParent);
  }
  for (const desiredParent of remainingParents.values()) nextParents.push(parentAfter({}, desiredParent, context));
  return nextParents.length === 0 && presentList.length === 0 ? undefined : nextParents;
}

function parentAfter(
  presentFields: StatusFields,
  { parentRef, conditions }: RouteStatus['parents'][number],
  { conditionMoment, fields: { reference } }: ParentContext,
): StatusFields {
  return {
    ...presentFields,
    [reference]: isObject(presentFields[reference]) ? presentFields[reference] : parentRef,
    controllerName,
    conditions: withConditions(presentFields.conditions, conditions, conditionMoment, conditionTypesOmittedIfFalse),
  };
}

function hasLaterCondition(conditions: unknown, { generation }: ConditionMoment): boolean {
  return (
    Array.isArray(conditions) && conditions.some((presentCondition) => isObservedLater(presentCondition, generation))
  );
}

/** Omitted fields have API defaults. */
function parentKey(ref: Partial<Record<keyof ParentReference, unknown>>, routeNamespace: string): string {
  const {
    group = 'gateway.networking.k8s.io',
    kind = 'Gateway',
    namespace = routeNamespace,
    name,
    sectionName,
    port,
  } = ref;
  return JSON.stringify([group, kind, namespace, name, sectionName, port]);
}

function generationField({ generation }: { readonly generation?: number }): Pick<DerivedFields, 'generation'> {
  return generation === undefined ? {} : { generation };
}

function momentOf({ generation }: { readonly generation?: number }, time: string): ConditionMoment {
  return { time, ...(generation !== undefined && { generation }) };
}
