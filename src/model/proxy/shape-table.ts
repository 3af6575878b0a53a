/** Interns shapes, and carries a proxy's shape to the next context at almost no cost. */

import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { WeakValues } from '../collections/weak-values.ts';
import type { Proxy } from '../node/proxy.ts';
import type { Service, ServiceTarget } from '../services/service.ts';
import {
  buildShape,
  emptyProxyFacts,
  isCompleteShape,
  knownProxy,
  type OwnProxyFacts,
  ownProxyFactsOf,
  type ProxyShape,
  type ShapeContext,
} from './proxy-shape.ts';

export class ShapeTable {
  readonly #shapes = new WeakValues<ProxyShape>();
  readonly #fixedKeys = new WeakMap<Proxy, string>();
  readonly #completeness = memoizeByObject((_: ShapeContext) => new WeakMap<ProxyShape, boolean>());
  readonly #lastShapes = new WeakMap<Proxy, ProxyShape>();
  readonly #serviceIds = new WeakMap<Service, number>();
  #lastServiceId = 0;

  get size(): number {
    return this.#shapes.size;
  }

  shapeOf(node: Proxy, context: ShapeContext, previous?: ProxyShape): ProxyShape {
    const proxy = knownProxy(node, context);
    const targets = context.serviceTargetsOf(proxy);
    // For an unchanged proxy, only service targets and active objects can change the shape.
    const previousFacts = previous !== undefined && this.#lastShapes.get(proxy) === previous ? previous : undefined;
    const sameShape =
      previousFacts !== undefined && sameTargets(previousFacts.serviceTargets, targets) ? previousFacts : undefined;
    if (sameShape !== undefined && this.#hasAllFacts(sameShape, context)) return sameShape;
    const facts = ownProxyFactsOf(proxy, context, targets);
    const factsKey = textOf(facts);
    if (sameShape !== undefined && textOf(sameShape) === factsKey) return sameShape;
    const shape = this.#internShape(proxy, targets, facts, factsKey);
    this.#lastShapes.set(proxy, shape);
    return shape;
  }

  #internShape(proxy: Proxy, targets: readonly ServiceTarget[], facts: OwnProxyFacts, factsKey: string): ProxyShape {
    const key = `${this.#staticFactsKey(proxy)}${factsKey} ${this.#targetsKey(targets)}`;
    const cachedShape = this.#shapes.get(key);
    if (cachedShape !== undefined) return cachedShape;
    const shape = buildShape(proxy, targets, facts);
    this.#shapes.set(key, shape);
    return shape;
  }

  #hasAllFacts(shape: ProxyShape, context: ShapeContext): boolean {
    const completenessByProxy = this.#completeness(context);
    let isComplete = completenessByProxy.get(shape);
    if (isComplete === undefined) {
      isComplete = isCompleteShape(shape, context);
      completenessByProxy.set(shape, isComplete);
    }
    return isComplete;
  }

  #staticFactsKey(proxy: Proxy): string {
    let key = this.#fixedKeys.get(proxy);
    if (key === undefined) {
      const { serviceTargets: _, labels, metadata, ...otherFields } = buildShape(proxy, [], emptyProxyFacts);
      // Map order is not significant; Go clients send maps in random order.
      key = JSON.stringify([Object.entries(otherFields), Object.entries(labels).sort(), withSortedKeys(metadata)]);
      this.#fixedKeys.set(proxy, key);
    }
    return key;
  }

  #targetsKey(targets: readonly ServiceTarget[]): string {
    return targets
      .map(({ service, port, targetPort }) => `${this.#serviceId(service)}:${port.number}>${targetPort}`)
      .join();
  }

  /** A changed service is a new object, so the shapes of workloads that serve it also change. */
  #serviceId(service: Service): number {
    let id = this.#serviceIds.get(service);
    if (id === undefined) {
      id = ++this.#lastServiceId;
      this.#serviceIds.set(service, id);
    }
    return id;
  }
}

const cachedTexts = new WeakMap<OwnProxyFacts, string>();

function textOf(facts: OwnProxyFacts): string {
  let text = cachedTexts.get(facts);
  if (text === undefined) {
    const { ownAddresses, nodeName, matchedMetadata, pullSecrets = false } = facts;
    text = JSON.stringify([ownAddresses, nodeName, withSortedKeys(matchedMetadata), pullSecrets]);
    cachedTexts.set(facts, text);
  }
  return text;
}

function sameTargets(a: readonly ServiceTarget[], b: readonly ServiceTarget[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  return a.every((target, index) => {
    const otherTarget = b[index]!;
    return (
      target.service === otherTarget.service &&
      target.port === otherTarget.port &&
      target.targetPort === otherTarget.targetPort
    );
  });
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, entry]) => [key, withSortedKeys(entry)]);
}
